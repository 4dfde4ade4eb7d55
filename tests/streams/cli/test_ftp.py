"""Directories of real FTP servers that change between runs, and FTP servers that break."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.samples.site_server import Site
from tests.servers.ftp import FtpServer, Name, ftp_server

ALLOW = ("--allow", "127.0.0.0/8", "--pause", "0", "--data", "d")
OLD = 1_700_000_000
PAGE = "<title>Moby</title><body>The white whale again, and again the whale.</body>"
FILES = {"page.html": PAGE, "notes/a.txt": "Call me Ishmael.\n", "notes/old/b.txt": "A thistle.\n", "c d;e.txt": "Ocelots.\n"}
LISTED, SENT = ("MLSD", "LIST"), ("RETR", "SIZE", "MDTM")


def write(tree: Path, files: dict[str, str], at: int = OLD) -> None:
    """Write files with a time of their own."""
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (at, at))


@pytest.fixture(params=["pyftpdlib", "proftpd", "vsftpd"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harvest: Any) -> Iterator[FtpServer]:
    """Each server, with the files; no file is requested for a sample of the marks."""
    monkeypatch.setenv("HARVEST_ROOTS_LASTMOD", "trust")
    with serving(request.param, tmp_path) as running:
        yield running


def serving(name: Name, folder: Path) -> Any:
    """Serve the files by a server."""
    write(folder / "tree", FILES)
    (folder / "server").mkdir()
    return ftp_server(name, folder / "server", folder / "tree")


def gather(harvest: Any, root: str, code: int = 0) -> dict[str, Any]:
    """Run `harvest gather`; return its closing table."""
    if code:
        harvest("gather", root, *ALLOW, code=code)
        return {}
    return harvest.lines("gather", root, *ALLOW)[0]  # type: ignore[no-any-return]


def digests(harvest: Any, root: str) -> dict[str, str]:
    """Return the MD5 of each summary below a root, by the rest of its URL."""
    found: dict[str, str] = {}
    for line in harvest.lines("cat", "summaries", "--data", "d"):
        value = line["value"] or {}
        if value.get("url", "").startswith(root):
            found.pop(value["url"].removeprefix(root), None)
            if not value.get("removed"):
                found[value["url"].removeprefix(root)] = value["md5"]
    return found


def test_directory_is_gathered_and_follows_its_changes(server: FtpServer, harvest: Any) -> None:
    """Files that are added, changed, removed or listed again are added, changed, removed and added; others are not requested."""
    table = gather(harvest, server.url)
    names = {"page.html", "notes/a.txt", "notes/old/b.txt", "c%20d%3Be.txt"}
    assert (set(digests(harvest, server.url)), table["added"]) == (names, 4)

    seen = len(server.commands())
    assert gather(harvest, server.url)["nothing_changed"]
    later = [command.partition(" ")[0] for command in server.commands()[seen:]]
    assert (sum(verb in LISTED for verb in later), [verb for verb in later if verb in SENT]) == (3, [])

    write(server.tree, {"notes/a.txt": "Call me Ahab now.\n", "new/f.txt": "Zanzibar.\n"}, OLD + 86_400)
    write(server.tree, {"notes/old/b.txt": "A whistle.\n"[:10] + "\n"}, OLD + 86_400)
    (server.tree / "c d;e.txt").unlink()
    seen = len(server.commands())
    table = gather(harvest, server.url)
    assert (table["changed"], table["added"], table["removed"]) == (2, 1, 1)
    sent = {command.rpartition("/")[2] for command in server.commands()[seen:] if command.startswith("RETR")}
    assert sent == {"a.txt", "f.txt", "b.txt"}

    (server.tree / "new" / "f.txt").unlink()
    (server.tree / "new").rmdir()
    write(server.tree, {"c d;e.txt": "Ocelots.\n"})
    table = gather(harvest, server.url)
    assert (table["changed"], table["added"], table["removed"]) == (0, 1, 1)
    assert set(digests(harvest, server.url)) == names
    assert [hit["url"] for hit in harvest.lines("search", "ahab", "--data", "d")] == [f"{server.url}notes/a.txt"]


@pytest.mark.parametrize("server", ["proftpd"], indirect=True)
def test_same_tree_by_http_and_ftp_has_the_same_digests(server: FtpServer, harvest: Any) -> None:
    """Files have the same digests by FTP, by HTTP and from the disk."""
    gather(harvest, server.url)
    gather(harvest, str(server.tree))
    with Site() as site:
        site.files = {f"/{name}": content.encode() for name, content in FILES.items()}
        site.files = {name.replace("c d;e", "c%20d%3Be"): content for name, content in site.files.items()}
        site.files["/"] = "".join(f"<a href='{name}'>x</a>" for name in site.files).encode()
        gather(harvest, site.url)
        by_http = digests(harvest, site.url)
    del by_http[""]
    by_ftp = digests(harvest, server.url)
    by_disk = digests(harvest, server.tree.as_uri() + "/")
    assert len(by_ftp) == len(FILES)
    assert by_ftp == by_http == {name.replace(";", "%3B"): md5 for name, md5 in by_disk.items()}


def test_server_that_is_down_or_empty_loses_nothing(harvest: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a server is down, or its root is suddenly empty or missing, nothing is removed; a single file is."""
    monkeypatch.setenv("HARVEST_FRONTIER_TRIES", "1")
    with serving("pyftpdlib", tmp_path) as server:
        gather(harvest, server.url)
        before = digests(harvest, server.url)
        moved = server.tree.rename(tmp_path / "away")
        server.tree.mkdir()
        gather(harvest, server.url, code=1)
        assert digests(harvest, server.url) == before
        server.tree.rmdir()
        gather(harvest, server.url, code=1)
        assert digests(harvest, server.url) == before
        moved.rename(server.tree)
        assert gather(harvest, server.url)["removed"] == 0
        (server.tree / "page.html").unlink()
        assert gather(harvest, server.url)["removed"] == 1
    gather(harvest, server.url, code=1)
    assert len(before) == len(digests(harvest, server.url)) + 1


def test_name_that_is_no_name_is_rejected_and_others_are_gathered(harvest: Any, tmp_path: Path) -> None:
    """A listing that cannot be read to its end is rejected once with a reason; its files are gathered, and none is removed."""
    with serving("vsftpd", tmp_path) as server:
        gather(harvest, server.url)
        (server.tree / "page.html").unlink()
        (server.tree / "two\nlines").write_text("x")
        write(server.tree, {"new.txt": "Zanzibar.\n"})
        table = gather(harvest, server.url)
        assert (table["added"], table["removed"]) == (1, 0)
        (letter,) = (line for line in harvest.lines("rejected", "list", "--data", "d") if line["stage"] == "essence")
        assert (letter["url"], letter["reason"]) == (server.url, "a line that is no entry: 'lines'")
        (server.tree / "two\nlines").unlink()
        assert gather(harvest, server.url)["removed"] == 1
