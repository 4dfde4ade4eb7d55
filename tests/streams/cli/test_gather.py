"""`harvest gather`, end to end: what is indexed, what a second run does, and what happens to earlier content."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import tarfile
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
def test_word_in_nested_archive_is_found_and_removed(harvest: Any, tmp_path: Path, nested: Nested, partitions: int) -> None:
    """A word in a nested archive is found with its member path and removed with the file; copies are listed and promoted."""
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


def test_second_run_of_unchanged_root_summarizes_nothing(harvest: Any, tree: Path) -> None:
    """A second run summarizes nothing, counts the unchanged objects and reports that nothing changed."""
    (first,) = harvest.lines("gather", tree)
    assert (first["objects"], first["added"], first["summaries"], first["copies"]) == (3, 3, 3, 1)
    assert not first["nothing_changed"]
    (second,) = harvest.lines("gather", tree)
    assert (second["objects"], second["summaries"], second["unchanged"], second["nothing_changed"]) == (0, 0, 3, True)
    assert "nothing changed" in harvest("gather", tree).stderr


def _overwrite(path: Path, old: bytes, new: bytes) -> None:
    """Write other bytes of the same number into a file in place, and set its mtime back."""
    facts, body = path.stat(), path.read_bytes()
    path.write_bytes(body.replace(old, new))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    now = path.stat()
    assert (now.st_size, now.st_mtime_ns, now.st_ino) == (facts.st_size, facts.st_mtime_ns, facts.st_ino)


def test_content_under_an_old_mtime_is_found(harvest: Any, tmp_path: Path) -> None:
    """Files overwritten in place under their old size and mtime are summarized anew: short, long, in folders, in an archive."""
    corpus = tmp_path / "corpus"
    (corpus / "a" / "b").mkdir(parents=True)
    filler = b"Nothing of interest here.\n" * 8_000
    (corpus / "short.txt").write_bytes(b"ledger total wombat\n")
    (corpus / "long.txt").write_bytes(b"A report about the wombat.\n" + filler)
    (corpus / "a" / "b" / "page.html").write_bytes(b"<title>The wombat digs</title><p>It digs.")
    with tarfile.open(corpus / "bundle.tar", "w") as tar:
        info = tarfile.TarInfo("note.txt")
        info.size = 20
        tar.addfile(info, io.BytesIO(b"A wombat in a tar..\n"))
    harvest("gather", corpus)
    assert len(found(harvest, "wombat")) == 4
    for name in ("short.txt", "long.txt", "a/b/page.html", "bundle.tar"):
        _overwrite(corpus / name, b"wombat", b"kakapo")
    (second,) = harvest.lines("gather", corpus)
    assert second["objects"] == 4
    assert (len(found(harvest, "wombat")), len(found(harvest, "kakapo"))) == (0, 4)


def test_changed_mode_alone_makes_no_summary(harvest: Any, tree: Path) -> None:
    """A run after a chmod of every file reads them, finds them unchanged, and makes no summary."""
    harvest("gather", tree)
    for path in tree.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    (second,) = harvest.lines("gather", tree)
    assert (second["objects"], second["summaries"], second["changed"], second["unchanged"]) == (0, 0, 0, 3)
    assert second["nothing_changed"]


def test_table_counts_added_changed_removed_and_renamed(harvest: Any, tree: Path) -> None:
    """The closing table counts added, changed and removed objects; a renamed file counts as one added and one removed."""
    harvest("gather", tree)
    (tree / "new.txt").write_text("new\n")
    (tree / "page.html").write_text("<html><title>Moby</title>Changed.</html>")
    (tree / "notes" / "copy.txt").unlink()
    (tree / "notes" / "a.txt").rename(tree / "b.txt")
    (table,) = harvest.lines("gather", tree)
    assert (table["added"], table["changed"], table["removed"], table["unchanged"]) == (2, 1, 2, 0)


def test_web_site_is_gathered_and_revalidated(harvest: Any, site: Site) -> None:
    """A site is gathered as robots.txt allows; a deleted page leaves the index, and an unchanged one is not summarized again."""
    options = ("--pause", "0", "--allow", "127.0.0.0/8")
    (first,) = harvest.lines("gather", site.url, *options)
    assert first["refused"]["robots.txt"] == 1
    assert [h["url"] for h in found(harvest, "title:glimpse")] == [f"{site.url}glimpse.html"]
    del site.files["/glimpse.html"]
    (second,) = harvest.lines("gather", site.url, *options)
    assert (second["removed"], second["summaries"]) == (1, 0)
    assert second["unchanged"] == first["objects"] - 1
    assert not found(harvest, "title:glimpse")


def test_limits_of_a_root_are_enforced(harvest: Any, site: Site) -> None:
    """A root is followed up to its depth and its number of URLs; a URL beyond a limit is refused, and the table names the limit."""
    options = ("--pause", "0", "--allow", "127.0.0.0/8")
    (table,) = harvest.lines("gather", site.url, "--depth", 0, *options)
    assert (table["objects"], set(table["refused"])) == (1, {"depth limit of the root"})
    (table,) = harvest.lines("gather", site.url, "--max-urls", 2, *options)
    assert "URL limit of the root" in table["refused"]


def test_redirected_root_is_no_failure(harvest: Any, site: Site) -> None:
    """A root that redirects is no failure if the target was fetched."""
    harvest("gather", f"{site.url}old/harvest.html", "--pause", "0", "--allow", "127.0.0.0/8")


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ("missing", "No such file or directory"),
        ("wais://a/", "wais: is not a scheme"),
        ("http://[::", "not a URL"),
        ("pipe", "neither"),
    ],
)
def test_invalid_root_is_an_error_and_others_are_gathered(harvest: Any, tree: Path, tmp_path: Path, root: str, reason: str) -> None:
    """A root that cannot be gathered is an error of one line, exit code 1; the others are gathered."""
    os.mkfifo(tmp_path / "pipe")
    result = harvest("gather", root, tree, code=1)
    assert f"harvest: {root}: " in result.stderr
    assert reason in result.stderr
    assert len(found(harvest, "Ishmael")) == 1
    assert harvest("gather", root, code=1).stderr.count("\n") == 1


def test_unreachable_root_is_named_with_the_reason(harvest: Any, tree: Path, site: Site, tmp_path: Path) -> None:
    """A root that could not be fetched is named with the reason, exit code 1; the others are gathered."""
    (tmp_path / "harvest.toml").write_text('[frontier]\ntries = 1\n[fetch]\nallow = ["127.0.0.0/8"]\n')
    result = harvest("gather", f"{site.url}lost.html", tree, "--pause", "0", code=1)
    assert f"harvest: {site.url}lost.html: status 404" in result.stderr
    result = harvest("gather", "http://127.0.0.1:1/", "--pause", "0", code=1)
    assert "harvest: http://127.0.0.1:1/: " in result.stderr


def test_loopback_address_needs_permission(harvest: Any, site: Site) -> None:
    """A loopback address is not connected to unless it is allowed; the error states that."""
    assert "loopback" in harvest("gather", site.url, "--pause", "0", code=1).stderr
    assert not site.asked


def test_large_folder_is_counted_completely_in_a_second_run(harvest: Any, tmp_path: Path) -> None:
    """A second run at once over a large folder counts it completely, though versions, one a ms, are ahead of the clock."""
    (tmp_path / "large").mkdir()
    for number in range(4_000):
        (tmp_path / "large" / f"{number}.txt").touch()
    assert harvest.lines("gather", "large")[0]["added"] == 4_000
    for number in range(0, 4_000, 40):
        (tmp_path / "large" / f"{number}.txt").unlink()
    (table,) = harvest.lines("gather", "large")
    assert (table["unchanged"], table["removed"], table["objects"]) == (3_900, 100, 0)


def test_empty_data_option_is_refused(harvest: Any, tree: Path) -> None:
    """An empty --data, as from an unset shell variable, does not make the working folder the data folder."""
    said = harvest("gather", tree, "--data", "", code=2).stderr
    assert "a folder has to be named" in said
    assert not (harvest.folder / "store.sqlite").exists()


def test_gather_with_kafka_brokers_names_roots_add(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Kafka brokers are configured, `gather` notes that the workers do not gather its roots, and names `roots add`."""
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "127.0.0.1:1")
    assert "harvest roots add" in harvest("gather", tree).stderr


def test_data_folder_is_not_gathered(harvest: Any, tree: Path) -> None:
    """A root that contains the data folder is gathered without it."""
    (table,) = harvest.lines("gather", tree.parent)
    assert table["refused"] == {"the data folder itself": 1}
    (table,) = harvest.lines("gather", tree.parent)
    assert table["nothing_changed"]


def test_data_folder_is_not_gathered_through_a_link(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """The data folder is left out also if a link in the path of the root hides that one of them contains the other."""
    (tmp_path / "link").symlink_to(tmp_path)
    table = harvest.lines("gather", "link/tree", "--data", tree / "data")[0]
    assert table["refused"] == {"the data folder itself": 1}
    assert {hit["url"] for hit in harvest.lines("search", "*", "--data", tree / "data")} == {
        f"file://{tmp_path}/link/tree/{name}" for name in ("page.html", "notes/a.txt")
    }
    for inside in ("data", "data/index"):
        assert "the data folder itself" in harvest("gather", f"link/tree/{inside}", "--data", tree / "data", code=1).stderr


def test_root_that_is_the_data_folder_is_refused(harvest: Any, tree: Path) -> None:
    """A root that is the data folder is refused before anything is written."""
    before = sorted(tree.rglob("*"))
    told = "harvest: .: the data folder itself (--data names another one)\n"
    os.chdir(tree)
    assert harvest("gather", ".", "--data", ".", code=1).stderr == told
    assert harvest("roots", "add", ".", "--data", ".", code=1).stderr == told
    assert sorted(tree.rglob("*")) == before


def test_folder_replaced_by_a_link_is_not_followed(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """If a link replaces a folder, the objects below it are removed, and nothing is read from the target."""
    outside = tmp_path / "outside"
    harvest("gather", tree)
    (tree / "notes").rename(outside)
    (outside / "a.txt").write_text("Of other people: okapi.\n")
    (tree / "notes").symlink_to(outside)
    harvest("gather", tree)
    assert {hit["url"] for hit in harvest.lines("search", "*")} == {f"file://{tree}/page.html", f"file://{tree}/notes"}
    assert "okapi" not in harvest("cat", "objects").stdout


def test_root_given_as_link_is_its_folder(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A root that is a link to a folder is gathered as that folder."""
    (tmp_path / "link").symlink_to(tree)
    harvest("gather", "link")
    assert [root["url"] for root in harvest.lines("roots", "list")] == [f"file://{tree}/"]


def test_file_with_non_utf8_name_is_gathered(harvest: Any, tmp_path: Path) -> None:
    """A file whose name is not UTF-8 is gathered and found like any other."""
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / b"caf\xe9 #1%.txt".decode("utf-8", "surrogateescape")).write_text("absinthe\n")
    harvest("gather", folder)
    (hit,) = found(harvest, "absinthe")
    assert hit["url"] == f"file://{folder}/caf%E9%20%231%25.txt"
    assert "absinthe" in harvest("show", hit["url"]).stdout


def test_progress_and_table_go_to_standard_error(harvest: Any, tree: Path) -> None:
    """`gather` writes nothing to standard output; with --quiet it writes nothing at all, with --json one object."""
    result = harvest("gather", tree)
    assert result.stdout == ""
    assert "summaries made" in result.stderr
    assert result.stderr.endswith("\nharvest: to search: harvest search WORDS; in a browser: harvest serve\n")
    quiet = harvest("gather", tree, "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    report = harvest("gather", tree, "--json")
    assert "harvest search" not in report.stderr
    assert set(json.loads(report.stdout)) >= {
        *("objects", "members", "summaries", "copies", "added", "changed", "unchanged", "removed", "refused", "rejected"),
        *("bytes_in", "bytes_summaries", "ratio", "seconds"),
    }


@pytest.fixture
def share(harvest: Any, tmp_path: Path) -> Path:
    """A gathered folder of two folders with three files each."""
    folder = tmp_path / "share"
    for number in range(6):
        (folder / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        (folder / "ab"[number % 2] / f"{number}.txt").write_text(f"Report {number} of the quillwort.\n")
    harvest("gather", folder, "--quiet")
    return folder


@pytest.mark.parametrize("there", [True, False], ids=["empty", "missing"])
def test_vanished_tree_is_kept_until_back(harvest: Any, share: Path, there: bool) -> None:
    """An unmounted disk removes nothing: gather, why and doctor say so; once it is mounted again all is as before."""
    away = share.rename(share.with_name("away"))
    if there:
        share.mkdir()
    for command in (("gather", share), ("gather",)):
        said = harvest(*command, code=1).stderr
        assert said.count("removal in doubt: ") >= 1
        assert f"harvest gather --accept-removals file://{share}/" in said
    assert len(found(harvest, "quillwort")) == 6
    assert "its removal is in doubt" in harvest("why", share / "a" / "0.txt").stderr
    assert "NOT OK  removals: " in harvest("doctor", code=1).stdout
    if there:
        share.rmdir()
    away.rename(share)
    harvest("gather", "--quiet")
    assert len(found(harvest, "quillwort")) == 6
    assert [check["ok"] for check in harvest.lines("doctor") if check["check"] == "removals"] == [True]


@pytest.mark.parametrize("there", [True, False], ids=["empty", "missing"])
def test_accepted_removals_are_removed(harvest: Any, share: Path, there: bool) -> None:
    """`--accept-removals` removes what is missing, with or without a run before that held it."""
    shutil.rmtree(share)
    if there:
        share.mkdir()
    harvest("gather", share, "--quiet", code=1)
    harvest("gather", share, "--quiet", "--accept-removals")
    assert not found(harvest, "quillwort")


def test_setting_switches_doubts_off(harvest: Any, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `frontier.doubt = false` an emptied root is empty at once."""
    for path in share.rglob("*.txt"):
        path.unlink()
    monkeypatch.setenv("HARVEST_FRONTIER_DOUBT", "false")
    harvest("gather", share, "--quiet")
    assert not found(harvest, "quillwort")


def test_file_that_becomes_a_folder_is_no_doubt(harvest: Any, tmp_path: Path) -> None:
    """A root that names a folder instead of a file now is removed as a file: its place can be read."""
    root = tmp_path / "thing"
    root.write_text("The quillwort.\n")
    harvest("gather", root, "--quiet")
    root.unlink()
    root.mkdir()
    (root / "z.txt").write_text("Another quillwort.\n")
    harvest("gather", root, "--quiet")
    assert "removal in doubt" not in harvest("gather", code=1).stderr
    assert [hit["url"] for hit in found(harvest, "quillwort")] == [f"file://{root}/z.txt"]
