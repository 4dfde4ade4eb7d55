"""`harvest gather`, end to end: what is found, what a second run does, what becomes of what was there."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.samples.site_server import Site

pytestmark = pytest.mark.slow

Nested = Callable[[Mapping[str, bytes]], bytes]


def found(harvest: Any, query: str) -> list[dict[str, Any]]:
    """The hits of a query."""
    hits: list[dict[str, Any]] = harvest.lines("search", query)
    return hits


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_planted_word(harvest: Any, tmp_path: Path, nested: Nested, partitions: int) -> None:
    """A word in an archive in an archive is found with its member path, goes with the file, and copies are listed and promoted."""
    word, folder = f"z{secrets.token_hex(8)}", tmp_path / "corpus"
    folder.mkdir()
    planted = {"deep/note.txt": f"A note about {word}.\n".encode(), "other.txt": b"Nothing of interest.\n"}
    (folder / "bundle.zip").write_bytes(nested(planted))
    harvest("gather", folder, "--partitions", partitions)
    (hit,) = found(harvest, word)
    assert hit["url"] == f"file://{folder}/bundle.zip#inner.tar.gz#deep/note.txt"

    (folder / "bundle.zip").write_bytes(nested({"other.txt": planted["other.txt"]}))
    harvest("gather", folder)
    assert not found(harvest, word)

    (folder / "first.txt").write_bytes(planted["deep/note.txt"])
    (folder / "second.zip").write_bytes(nested(planted))
    harvest("gather", folder)
    (hit,) = found(harvest, word)
    copy = f"file://{folder}/second.zip#inner.tar.gz#deep/note.txt"
    assert (hit["url"], hit["copies"]) == (f"file://{folder}/first.txt", [copy])
    assert len(harvest("search", word, "--copies").stdout.split("file://")) > 2

    (folder / "first.txt").unlink()
    harvest("gather", folder)
    assert [h["url"] for h in found(harvest, word)] == [copy]


def test_second_run_of_an_unchanged_root(harvest: Any, tree: Path) -> None:
    """A second run summarizes nothing again, counts what is unchanged, and says that nothing changed."""
    (first,) = harvest.lines("gather", tree)
    assert (first["objects"], first["added"], first["summaries"], first["copies"]) == (3, 3, 3, 1)
    assert not first["nothing_changed"]
    (second,) = harvest.lines("gather", tree)
    assert (second["objects"], second["summaries"], second["unchanged"], second["nothing_changed"]) == (0, 0, 3, True)
    assert "nothing changed" in harvest("gather", tree).stderr


def test_added_changed_removed_and_renamed(harvest: Any, tree: Path) -> None:
    """The closing table counts what was added, changed and removed; a file that was renamed is one of each."""
    harvest("gather", tree)
    (tree / "new.txt").write_text("new\n")
    (tree / "page.html").write_text("<html><title>Moby</title>Changed.</html>")
    (tree / "notes" / "copy.txt").unlink()
    (tree / "notes" / "a.txt").rename(tree / "b.txt")
    (table,) = harvest.lines("gather", tree)
    assert (table["added"], table["changed"], table["removed"], table["unchanged"]) == (2, 1, 2, 0)


def test_a_web_site(harvest: Any, site: Site) -> None:
    """A site is gathered as robots.txt allows; a page that is gone leaves the index, and one that is as it was costs nothing."""
    options = ("--pause", "0", "--allow", "127.0.0.0/8")
    (first,) = harvest.lines("gather", site.url, *options)
    assert first["refused"]["robots.txt"] == 1
    assert [h["url"] for h in found(harvest, "title:glimpse")] == [f"{site.url}glimpse.html"]
    del site.files["/glimpse.html"]
    (second,) = harvest.lines("gather", site.url, *options)
    assert (second["removed"], second["summaries"]) == (1, 0)
    assert second["unchanged"] == first["objects"] - 1
    assert not found(harvest, "title:glimpse")


def test_limits_of_a_root(harvest: Any, site: Site) -> None:
    """A root is followed as deep and as far as it was said; what lies beyond is refused, with the limit."""
    options = ("--pause", "0", "--allow", "127.0.0.0/8")
    (table,) = harvest.lines("gather", site.url, "--depth", 0, *options)
    assert (table["objects"], set(table["refused"])) == (1, {"depth limit of the root"})
    (table,) = harvest.lines("gather", site.url, "--max-urls", 2, *options)
    assert "URL limit of the root" in table["refused"]


def test_a_root_that_moved(harvest: Any, site: Site) -> None:
    """A root that redirects has not failed if what it leads to was fetched."""
    harvest("gather", f"{site.url}old/harvest.html", "--pause", "0", "--allow", "127.0.0.0/8")


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ("missing", "No such file or directory"),
        ("ftp://a/", "ftp: is not a scheme"),
        ("http://[::", "not a URL"),
        ("pipe", "neither"),
    ],
)
def test_a_root_that_cannot_be(harvest: Any, tree: Path, tmp_path: Path, root: str, reason: str) -> None:
    """A root that cannot be gathered is one line and exit code 1; the others are gathered all the same."""
    os.mkfifo(tmp_path / "pipe")
    result = harvest("gather", root, tree, code=1)
    assert f"harvest: {root}: " in result.stderr
    assert reason in result.stderr
    assert len(found(harvest, "Ishmael")) == 1
    assert harvest("gather", root, code=1).stderr.count("\n") == 1


def test_a_server_that_is_not_there(harvest: Any, tree: Path, site: Site, tmp_path: Path) -> None:
    """A root that could not be fetched is named with the reason, exit code 1; the others are gathered."""
    (tmp_path / "harvest.toml").write_text('[frontier]\ntries = 1\n[fetch]\nallow = ["127.0.0.0/8"]\n')
    result = harvest("gather", f"{site.url}lost.html", tree, "--pause", "0", code=1)
    assert f"harvest: {site.url}lost.html: status 404" in result.stderr
    result = harvest("gather", "http://127.0.0.1:1/", "--pause", "0", code=1)
    assert "harvest: http://127.0.0.1:1/: " in result.stderr


def test_a_target_that_is_not_allowed(harvest: Any, site: Site) -> None:
    """An address of this machine is not dialled unless it is allowed, and the line says so."""
    assert "loopback" in harvest("gather", site.url, "--pause", "0", code=1).stderr
    assert not site.asked
    # A reason stays on the line of its count, however long it is.
    assert re.search(r"(?m)^rejected: 127\.0\.0\.1.* have to be allowed .*--allow.* 1$", harvest("gather", site.url, code=1).stderr)


def test_many_files_at_once(harvest: Any, tmp_path: Path) -> None:
    """A large folder that is gathered again at once is told whole, though versions, one a ms, have run ahead of the clock."""
    (tmp_path / "large").mkdir()
    for number in range(4_000):
        (tmp_path / "large" / f"{number}.txt").touch()
    assert harvest.lines("gather", "large")[0]["added"] == 4_000
    for number in range(0, 4_000, 40):
        (tmp_path / "large" / f"{number}.txt").unlink()
    (table,) = harvest.lines("gather", "large")
    assert (table["unchanged"], table["removed"], table["objects"]) == (3_900, 100, 0)


def test_a_data_folder_without_a_name(harvest: Any, tree: Path) -> None:
    """A variable of a shell that is not set does not make the working folder the data folder."""
    said = harvest("gather", tree, "--data", "", code=2).stderr
    assert "a folder has to be named" in said
    assert not (harvest.folder / "store.sqlite").exists()


def test_gather_where_workers_are(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where brokers are set, gather says that these learn nothing of it."""
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "127.0.0.1:1")
    assert "harvest roots add" in harvest("gather", tree).stderr


def test_the_data_folder_is_not_gathered(harvest: Any, tree: Path) -> None:
    """A root that holds the data folder is gathered without it."""
    (table,) = harvest.lines("gather", tree.parent)
    assert table["refused"] == {"the data folder itself": 1}
    (table,) = harvest.lines("gather", tree.parent)
    assert table["nothing_changed"]


def test_the_data_folder_by_another_path(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """The data folder is not gathered either where a link in the path of the root hides that it is in there, or around it."""
    (tmp_path / "link").symlink_to(tmp_path)
    table = harvest.lines("gather", "link/tree", "--data", tree / "data")[0]
    assert table["refused"] == {"the data folder itself": 1}
    assert {hit["url"] for hit in harvest.lines("search", "*", "--data", tree / "data")} == {
        f"file://{tmp_path}/link/tree/{name}" for name in ("page.html", "notes/a.txt")
    }
    for inside in ("data", "data/index"):
        assert "the data folder itself" in harvest("gather", f"link/tree/{inside}", "--data", tree / "data", code=1).stderr


def test_a_root_that_is_the_data_folder(harvest: Any, tree: Path) -> None:
    """What would gather itself is refused before anything is written."""
    before = sorted(tree.rglob("*"))
    told = "harvest: .: the data folder itself (--data names another one)\n"
    os.chdir(tree)
    assert harvest("gather", ".", "--data", ".", code=1).stderr == told
    assert harvest("roots", "add", ".", "--data", ".", code=1).stderr == told
    assert sorted(tree.rglob("*")) == before


def test_a_folder_that_becomes_a_link(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """Where a link has taken the place of a folder, what was below is gone, and nothing is read where the link leads."""
    outside = tmp_path / "outside"
    harvest("gather", tree)
    (tree / "notes").rename(outside)
    (outside / "a.txt").write_text("Of other people: okapi.\n")
    (tree / "notes").symlink_to(outside)
    harvest("gather", tree)
    assert {hit["url"] for hit in harvest.lines("search", "*")} == {f"file://{tree}/page.html", f"file://{tree}/notes"}
    assert "okapi" not in harvest("cat", "objects").stdout


def test_a_link_to_a_folder(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A root that is a link to a folder is that folder."""
    (tmp_path / "link").symlink_to(tree)
    harvest("gather", "link")
    assert [root["url"] for root in harvest.lines("roots", "list")] == [f"file://{tree}/"]


def test_names_that_are_no_text(harvest: Any, tmp_path: Path) -> None:
    """A file whose name is not UTF-8 is gathered and found like any other."""
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / b"caf\xe9 #1%.txt".decode("utf-8", "surrogateescape")).write_text("absinthe\n")
    harvest("gather", folder)
    (hit,) = found(harvest, "absinthe")
    assert hit["url"] == f"file://{folder}/caf%E9%20%231%25.txt"
    assert "absinthe" in harvest("show", hit["url"]).stdout


def test_progress_and_table_go_to_standard_error(harvest: Any, tree: Path) -> None:
    """Standard output has nothing but what was asked for; --quiet says nothing at all; --json is one object."""
    result = harvest("gather", tree)
    assert result.stdout == ""
    assert "summaries made" in result.stderr
    quiet = harvest("gather", tree, "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert set(json.loads(harvest("gather", tree, "--json").stdout)) >= {
        *("objects", "members", "summaries", "copies", "added", "changed", "unchanged", "removed", "refused", "rejected"),
        *("bytes_in", "bytes_summaries", "ratio", "seconds"),
    }
