"""Names of files, URLs and queries on the command line: links, empty names, URLs of files, several words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def linked(harvest: Any, tree: Path) -> Path:
    """The sample tree, gathered, with a link to a file outside of it and a dangling link."""
    (tree.parent / "outside.txt").write_text("Queequeg\n")
    (tree / "sym").symlink_to(tree.parent / "outside.txt")
    (tree / "dangling").symlink_to("nowhere")
    harvest("gather", tree, "--quiet")
    return tree


@pytest.mark.parametrize("name", ["sym", "dangling"])
@pytest.mark.parametrize("prefix", ["tree/", "file://{}/"])
def test_link_in_a_folder_keeps_its_own_name(harvest: Any, linked: Path, name: str, prefix: str) -> None:
    """A link within a folder is shown, explained and annotated under its own name, whatever its target."""
    named, url = prefix.format(linked) + name, f"file://{linked}/{name}"
    (shown,) = harvest.lines("show", named)
    assert (shown["url"], shown["type"]) == (url, "SymbolicLink")
    assert "SymbolicLink" in harvest("why", named).stdout
    assert not harvest("annotate", named, "said=leviathan").stderr
    assert [hit["url"] for hit in harvest.lines("search", "leviathan")] == [url]


def test_root_given_as_link_is_found_under_the_link(harvest: Any, tree: Path) -> None:
    """A root that was given as a link is found under the link's name, and so are the objects in it."""
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
def test_empty_name_is_refused(harvest: Any, tree: Path, command: tuple[str, ...]) -> None:
    """An empty name does not mean the current folder: an error of one line, exit code 2, and nothing is gathered."""
    harvest("gather", tree / "notes", "--quiet")
    result = harvest(*command, code=2)
    assert result.stderr == "harvest: an empty ROOT or URL (the current folder is .)\n"
    assert [root["url"] for root in harvest.lines("roots", "list")] == [f"file://{tree}/notes/"]


@pytest.mark.parametrize("tail", ["?x=1", "#y", "?x=1#y"])
def test_file_url_with_query_or_fragment_is_refused(harvest: Any, tree: Path, tail: str) -> None:
    """A file URL with a query or a fragment is refused in one line, and is not read as the URL without it."""
    result = harvest("gather", f"file://{tree}{tail}", code=1)
    assert "the URL of a file has neither query nor fragment" in result.stderr
    assert result.stderr.count("\n") == 1


def test_several_arguments_form_one_query(harvest: Any, tree: Path) -> None:
    """Several arguments form one query; after -- a query may begin with a minus."""
    harvest("gather", tree, "--quiet")
    assert [hit["title"] for hit in harvest.lines("search", "white", "whale")] == ["Moby"]
    assert harvest("search", "--", "-whale", "Ishmael").stderr == "1 found\n"
    assert "--" in harvest("search", "--help").stdout


def test_malformed_query_is_marked_at_its_error(harvest: Any, tree: Path) -> None:
    """The error about a malformed query marks the position, as processors/query/README.md describes."""
    harvest("gather", tree, "--quiet")
    assert harvest("search", "whale OR", code=2).stderr == "harvest: a search term is missing after OR: whale OR^\n"
    assert (
        harvest("search", "(whale", code=2).stderr == "harvest: this parenthesis is never closed (did you mean (whale)?): ^(whale\n"
    )


def test_annotate_without_data_folder_is_an_error(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """`annotate` without a data folder is an error of one line, exit code 1, and creates no folder."""
    assert harvest("annotate", tree, "a=b", code=1).stderr == "harvest: harvest-data: no data of harvest here\n"
    assert not (tmp_path / "harvest-data").exists()


def test_annotation_of_unknown_url_is_stored(harvest: Any, tree: Path) -> None:
    """An annotation of an unknown URL is stored until the URL is gathered, and a note says so."""
    harvest("gather", tree, "--quiet")
    late = tree / "late.txt"
    told = f"harvest: file://{late}: unknown URL; the annotation is stored until it is gathered\n"
    assert harvest("annotate", late, "said=leviathan").stderr == told
    assert not harvest.lines("search", "leviathan")
    late.write_text("late\n")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "leviathan")) == 1
    assert not harvest("annotate", late, "said=again").stderr


def test_annotation_of_a_folder_is_refused(harvest: Any, tree: Path) -> None:
    """An annotation of a folder is refused and not stored, since a folder has no summary."""
    harvest("gather", tree, "--quiet")
    for name in (tree, f"file://{tree}/"):
        assert "a folder has no summary" in harvest("annotate", name, "said=leviathan", code=1).stderr
    assert not harvest("cat", "annotations").stdout


def test_search_names_attributes_that_no_summary_has(harvest: Any, tree: Path) -> None:
    """A search without hits names the attributes that no summary has; an attribute that exists is not named."""
    harvest("gather", tree, "--quiet")
    told = harvest("search", "autor:melville OR (title:Ahab -Type:HTML -(fo\x07o:bar))").stderr
    assert told == "0 found\nharvest: no summary has the attribute autor\nharvest: no summary has the attribute fo o\n"
    told = harvest("search", "sha256:*").stderr
    assert told == "0 found\nharvest: no summary has the attribute sha256; `harvest show` prints it, but it is not searchable\n"
    assert harvest("search", "title:Moby OR autor:melville").stderr == "1 found\n"


def test_search_without_data_folder_does_not_advise_a_rebuild(harvest: Any) -> None:
    """The error about a missing data folder does not advise a rebuild."""
    told = "harvest: none: no such data folder; gather something first, or name another one: --data DIR\n"
    assert harvest("search", "x", "--data", "none", code=1).stderr == told


@pytest.mark.parametrize("name", ["weird name", "größe", 'a "quoted" one', "a:b"])
def test_annotation_name_may_be_any_quotable_name(harvest: Any, tree: Path, name: str) -> None:
    """Attributes may have any name that a query can quote; a search finds them, and SOIF preserves them."""
    harvest("gather", tree, "--quiet")
    harvest("annotate", tree / "page.html", f"{name}=leviathan")
    quoted = name.replace('"', '\\"')
    assert len(harvest.lines("search", f'"{quoted}":leviathan')) == 1
    assert "leviathan" in harvest("show", tree / "page.html").stdout


@pytest.mark.parametrize("value", ["a\x07b=c", "x" * 201 + "=c", "\udcff=c"])
def test_unstorable_attribute_name_is_refused(harvest: Any, tree: Path, value: str) -> None:
    """An attribute name that cannot be stored is refused, and the error states the rule."""
    assert "printable text" in " ".join(harvest("annotate", tree, value, code=2).stderr.replace("│", "").split())


def test_member_may_be_named_as_in_its_archive(
    harvest: Any, tmp_path: Path, nested: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    """The path of an archive member may be typed as in the archive, with spaces and percent signs, instead of URL-escaped."""
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


def test_annotation_value_that_is_not_utf8_is_stored_as_bytes(harvest: Any, tree: Path) -> None:
    """A value that is not UTF-8 (from an old terminal, for instance) is stored as the given bytes."""
    harvest("gather", tree, "--quiet")
    harvest("annotate", tree / "page.html", "said=leviathan \udcff")
    assert len(harvest.lines("search", "said:leviathan")) == 1
    (record,) = (each["value"] for each in harvest.lines("cat", "annotations"))
    assert record["attributes"] == {"said": [{"base64": "bGV2aWF0aGFuIP8="}]}


@pytest.mark.parametrize("start", ["http://a.test/x.tar", "tree/page.html"])
def test_member_with_non_utf8_name_is_found(harvest: Any, tree: Path, start: str) -> None:
    """A member whose name is not UTF-8 is found under its bytes as the terminal passes them."""
    harvest("gather", tree, "--quiet")
    member = f"{start}#é/caf\udce9#b%23"
    assert "no summary of it" in harvest("show", member, code=1).stderr
    harvest("annotate", member, "said=leviathan")
    (record,) = (each["value"] for each in harvest.lines("cat", "annotations"))
    assert record["url"].endswith("#%C3%A9/caf%E9#b%23")
    assert harvest("why", member).stdout


def test_data_folder_with_non_utf8_name_is_refused(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder whose name is not UTF-8 is refused in one line, since not every library accepts it."""
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
def test_time_out_of_range_selects_all_or_none(harvest: Any, tree: Path, time: str, all_since: bool) -> None:
    """A time out of range counts as the beginning or the end of all records."""
    harvest("gather", tree, "--quiet")
    assert bool(harvest.lines("cat", "summaries", "--since", time)) is all_since
    assert bool(harvest.lines("cat", "summaries", "--before", time)) is not all_since


def test_root_event_of_all_partitions_is_listed_once(harvest: Any, tree: Path) -> None:
    """A root event that every partition of the topic contains is listed once per run."""
    for _ in range(2):
        harvest("gather", tree, "--partitions", 4, "--quiet")
    assert [event["event"] for event in harvest.lines("why", tree)].count("seeded") == 2


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("www.example.org", True),
        ("example.org/docs/", True),
        ("localhost:8380", True),
        ("http:/example.org", True),
        ("notes.txt", False),
        ("no/such", False),
    ],
)
def test_url_without_its_scheme_is_explained(harvest: Any, name: str, meant: bool) -> None:
    """A root that is no file here, and looks like a URL, gets the reason why it was taken for a file."""
    error = harvest("gather", name, code=1).stderr
    assert f"{name}: No such file or directory" in error
    assert ("a URL begins with its scheme" in error) == meant
