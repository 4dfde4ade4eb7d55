"""What a user may call a file, a URL or a query: links, empty names, URLs of files, several words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def linked(harvest: Any, tree: Path) -> Path:
    """The small tree, with a link to a file outside of it and one that leads nowhere, gathered."""
    (tree.parent / "outside.txt").write_text("Queequeg\n")
    (tree / "sym").symlink_to(tree.parent / "outside.txt")
    (tree / "dangling").symlink_to("nowhere")
    harvest("gather", tree, "--quiet")
    return tree


@pytest.mark.parametrize("name", ["sym", "dangling"])
@pytest.mark.parametrize("prefix", ["tree/", "file://{}/"])
def test_a_link_is_named_itself(harvest: Any, linked: Path, name: str, prefix: str) -> None:
    """A link of a folder is shown, explained and described under its own name, wherever it leads."""
    named, url = prefix.format(linked) + name, f"file://{linked}/{name}"
    (shown,) = harvest.lines("show", named)
    assert (shown["url"], shown["type"]) == (url, "SymbolicLink")
    assert "SymbolicLink" in harvest("why", named).stdout
    assert not harvest("annotate", named, "said=leviathan").stderr
    assert [hit["url"] for hit in harvest.lines("search", "leviathan")] == [url]


def test_a_root_that_is_a_link_is_named_by_it(harvest: Any, tree: Path) -> None:
    """What was gathered by the name of a link to it is found by that name: the root itself, and what is in it."""
    (tree.parent / "link").symlink_to(tree)
    (tree.parent / "page").symlink_to(tree / "page.html")
    harvest("gather", "link", "page", "--quiet")
    assert harvest.lines("show", "link/notes/a.txt")[0]["url"] == f"file://{tree}/notes/a.txt"
    assert harvest.lines("show", "page")[0]["url"] == f"file://{tree}/page.html"
    harvest("annotate", "page", "said=leviathan")
    assert len(harvest.lines("search", "leviathan")) == 1
    harvest("roots", "remove", "link")


@pytest.mark.parametrize(
    "command",
    [
        *(("gather", ""), ("summarize", ""), ("roots", "add", ""), ("show", ""), ("why", ""), ("annotate", "", "a=b")),
        *(("gather", "tree", ""), ("rejected", "show", ""), ("roots", "remove", "")),
    ],
)
def test_an_empty_name(harvest: Any, tree: Path, command: tuple[str, ...]) -> None:
    """An empty name is no name of the current folder: one line and exit code 2, and nothing is gathered."""
    harvest("gather", tree / "notes", "--quiet")
    result = harvest(*command, code=2)
    assert result.stderr == "harvest: an empty ROOT or URL (the current folder is .)\n"
    assert [root["url"] for root in harvest.lines("roots", "list")] == [f"file://{tree}/notes/"]


@pytest.mark.parametrize("tail", ["?x=1", "#y", "?x=1#y"])
def test_a_file_has_no_query(harvest: Any, tree: Path, tail: str) -> None:
    """The URL of a file with a query or a fragment is refused in one line, and is not taken for the file without it."""
    result = harvest("gather", f"file://{tree}{tail}", code=1)
    assert "the URL of a file has neither query nor fragment" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_query_of_several_words(harvest: Any, tree: Path) -> None:
    """Words that the shell has parted are one query, and -- lets one begin with a minus."""
    harvest("gather", tree, "--quiet")
    assert [hit["title"] for hit in harvest.lines("search", "white", "whale")] == ["Moby"]
    assert harvest("search", "--", "-whale", "Ishmael").stderr == "1 found\n"
    assert "--" in harvest("search", "--help").stdout


def test_a_query_that_is_none_shows_where(harvest: Any, tree: Path) -> None:
    """A malformed query is shown with a mark where it is at fault, as processors/query/README.md has it."""
    harvest("gather", tree, "--quiet")
    assert harvest("search", "whale OR", code=2).stderr == "harvest: a search term is missing after OR: whale OR^\n"
    assert harvest("search", "(whale", code=2).stderr == "harvest: this parenthesis is never closed: ^(whale\n"


def test_annotate_without_data(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """Describing where nothing was gathered is one line and exit code 1, and makes no folder."""
    assert harvest("annotate", tree, "a=b", code=1).stderr == "harvest: harvest-data: no data of harvest here\n"
    assert not (tmp_path / "harvest-data").exists()


def test_annotate_what_is_not_known_yet(harvest: Any, tree: Path) -> None:
    """What is said of a URL that nothing is known of is kept for when it comes, and the user is told so."""
    harvest("gather", tree, "--quiet")
    late = tree / "late.txt"
    told = f"harvest: file://{late}: unknown URL; the annotation is stored until it is gathered\n"
    assert harvest("annotate", late, "said=leviathan").stderr == told
    assert not harvest.lines("search", "leviathan")
    late.write_text("late\n")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "leviathan")) == 1
    assert not harvest("annotate", late, "said=again").stderr


def test_annotate_a_folder(harvest: Any, tree: Path) -> None:
    """A folder has no summary that could be described, and what is said of it is not kept for one that never comes."""
    harvest("gather", tree, "--quiet")
    for name in (tree, f"file://{tree}/"):
        assert "a folder has no summary" in harvest("annotate", name, "said=leviathan", code=1).stderr
    assert not harvest("cat", "annotations").stdout


def test_an_attribute_that_no_summary_has(harvest: Any, tree: Path) -> None:
    """Where nothing is found, the user is told what cannot be found at all; a name that is known is not at fault."""
    harvest("gather", tree, "--quiet")
    told = harvest("search", "autor:melville OR (title:Ahab -Type:HTML -(fo\x07o:bar))").stderr
    assert told == "0 found\nharvest: no summary has the attribute autor\nharvest: no summary has the attribute fo o\n"
    told = harvest("search", "sha256:*").stderr
    assert told == "0 found\nharvest: no summary has the attribute sha256; `harvest show` prints it, but it is not searchable\n"
    assert harvest("search", "title:Moby OR autor:melville").stderr == "1 found\n"


def test_search_in_no_folder(harvest: Any) -> None:
    """A data folder that is not there is told of, and no rebuild is offered."""
    told = "harvest: none: no such data folder; gather something first, or name another one: --data DIR\n"
    assert harvest("search", "x", "--data", "none", code=1).stderr == told


@pytest.mark.parametrize("name", ["weird name", "größe", 'a "quoted" one', "a:b"])
def test_annotate_with_any_name_that_can_be_asked_for(harvest: Any, tree: Path, name: str) -> None:
    """Attributes may have the names that a query can have in quotes; they are found by them, and survive SOIF."""
    harvest("gather", tree, "--quiet")
    harvest("annotate", tree / "page.html", f"{name}=leviathan")
    quoted = name.replace('"', '\\"')
    assert len(harvest.lines("search", f'"{quoted}":leviathan')) == 1
    assert "leviathan" in harvest("show", tree / "page.html").stdout


@pytest.mark.parametrize("value", ["a\x07b=c", "x" * 201 + "=c", "\udcff=c"])
def test_a_name_that_no_attribute_may_have(harvest: Any, tree: Path, value: str) -> None:
    """A name that cannot be kept is refused for what it is."""
    assert "printable text" in " ".join(harvest("annotate", tree, value, code=2).stderr.replace("│", "").split())


def test_a_member_is_named_as_in_its_archive(harvest: Any, tmp_path: Path, nested: Callable[[Mapping[str, bytes]], bytes]) -> None:
    """The path of a member may be typed as its archive has it, where its URL escapes it: spaces and all."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.zip").write_bytes(nested({"sp ace/100% ü.txt": b"Queequeg\n"}))
    harvest("gather", "x")
    (hit,) = harvest.lines("search", "Queequeg")
    inside = hit["url"].partition("#")[2]
    outer = inside.rpartition("#")[0]
    plain = f"x/a.zip#{outer}{'#' * bool(outer)}sp ace/100% ü.txt"
    assert harvest.lines("show", plain)[0]["path"] == harvest.lines("show", f"x/a.zip#{inside}")[0]["path"] == inside
    assert harvest("why", plain).stdout == harvest("why", hit["url"]).stdout
    assert not harvest("annotate", plain, "said=leviathan").stderr
    assert harvest.lines("search", "said:leviathan")[0]["url"] == hit["url"]


def test_what_is_said_in_bytes(harvest: Any, tree: Path) -> None:
    """A value that is no text (an old terminal's, say) is kept as the bytes that were given."""
    harvest("gather", tree, "--quiet")
    harvest("annotate", tree / "page.html", "said=leviathan \udcff")
    assert len(harvest.lines("search", "said:leviathan")) == 1
    (record,) = (each["value"] for each in harvest.lines("cat", "annotations"))
    assert record["attributes"] == {"said": [{"base64": "bGV2aWF0aGFuIP8="}]}


@pytest.mark.parametrize("start", ["http://a.test/x.tar", "tree/page.html"])
def test_a_member_whose_name_is_no_text(harvest: Any, tree: Path, start: str) -> None:
    """Members are named as they stand on a terminal, too, where their names are no UTF-8."""
    harvest("gather", tree, "--quiet")
    member = f"{start}#é/caf\udce9#b%23"
    assert "no summary of it" in harvest("show", member, code=1).stderr
    harvest("annotate", member, "said=leviathan")
    (record,) = (each["value"] for each in harvest.lines("cat", "annotations"))
    assert record["url"].endswith("#%C3%A9/caf%E9#b%23")
    assert harvest("why", member).stdout


def test_a_data_folder_whose_name_is_no_text(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder has a name that every library takes: another is refused in one line."""
    for command in (("gather", tree), ("search", "whale"), ("run",)):
        told = harvest(*command, "--data", "d\udcff", code=2).stderr
        assert "UTF-8" in told
        assert "Traceback" not in told
    monkeypatch.setenv("HARVEST_DATA", "d\udcff")
    assert "UTF-8" in harvest("gather", tree, code=2).stderr


@pytest.mark.parametrize(
    ("time", "all_since"),
    [
        ("9" * 23, False),
        ("9" * 5_000, False),
        ("9999-12-31T23:59:59-23:59", False),
        ("9" * 23 + "d", True),
        ("9" * 5_000 + "s", True),
        ("0001-01-01T00:00:00+23:59", True),
    ],
)
def test_a_time_that_no_record_has(harvest: Any, tree: Path, time: str, all_since: bool) -> None:
    """Times without bounds are as good as the beginning, or the end, of all."""
    harvest("gather", tree, "--quiet")
    assert bool(harvest.lines("cat", "summaries", "--since", time)) is all_since
    assert bool(harvest.lines("cat", "summaries", "--before", time)) is not all_since


def test_an_order_is_told_once(harvest: Any, tree: Path) -> None:
    """What is said of a root in every partition is told once, and each time that it is said anew."""
    for _ in range(2):
        harvest("gather", tree, "--partitions", 4, "--quiet")
    assert [event["event"] for event in harvest.lines("why", tree)].count("seeded") == 2
