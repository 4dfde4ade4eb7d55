"""The FTP adapter against real servers: pyftpdlib and proftpd (MLSD), vsftpd (LIST only)."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from processors.essence.listings.ftp import parse
from processors.ftp_urls import ftp_path
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Record
from streams.fetch import Fetcher, FetchSettings
from tests.servers.ftp import FtpServer, Name, ftp_server

SERVERS: tuple[Name, ...] = ("pyftpdlib", "proftpd", "vsftpd")
FILES = {
    b"a.txt": b"hello\n",
    b"sp ace;type=i#?%41.txt": b"x",
    b"-la": b"no option",
    b"*.txt": b"no pattern",
    "\u00e4.txt".encode(): b"UTF-8",
    b"empty": b"",
    b"sub/dir/big.bin": bytes(range(256)) * 2_000,
}
LATIN = b"\xff.txt"
"""A name that is not UTF-8; pyftpdlib lists it as another one."""


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FtpServer]:
    """Each server, with the files."""
    tree, work = tmp_path / "tree", tmp_path / "work"
    work.mkdir()
    for name, body in (FILES if request.param == "pyftpdlib" else {**FILES, LATIN: b"latin"}).items():
        path = os.fsencode(tree) + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(body)
    (tree / "nothing").mkdir()
    with ftp_server(request.param, work, tree) as running:
        yield running


def test_tree_is_read_and_the_second_time_not_transferred(
    server: FtpServer, blobs: Any, now: int, make_request: Callable[..., FetchRequest], run: Any
) -> None:
    """Every file has its content, whatever its name; unchanged files are not transferred again; one connection serves all."""

    async def scenario() -> None:
        bodies: dict[bytes, str] = {}
        async with Fetcher(FetchSettings(pause=0.0, allow=("127.0.0.0/8",)), blobs, lambda: now) as fetcher:
            waiting, known = [server.url], {}
            while waiting:
                url = waiting.pop()
                got, event = cast("tuple[FetchedObject, CrawlEvent]", await fetcher.fetch(make_request(url)))
                known[url] = event.validators
                if url.endswith("/"):
                    found = parse(io.BytesIO(got.body or b""), url)
                    assert (found.whole, found.coverage) == (True, "complete")
                    assert all(bool(child.mark) == (child.kind == "page") for child in found.children)
                    waiting += [child.url for child in found.children]
                else:
                    path = path_of(url, server)
                    bodies[path] = got.md5
                    assert event.validators is not None
                    assert event.validators.mtime // 10**9 == int(os.stat(os.fsencode(server.tree) + b"/" + path).st_mtime)
            seen = len(server.commands())
            again: list[Record] = []
            for url, validators in known.items():
                again += await fetcher.fetch(make_request(url, validators=validators))
        assert bodies == {name: hashlib.md5(body).hexdigest() for name, body in expected(server).items()}
        assert {cast("CrawlEvent", record).kind for record in again} == {"unchanged"}
        later = server.commands()[seen:]
        assert not [command for command in later if command.startswith(("RETR", "USER"))]
        assert len(server.commands("USER")) == 1
        assert len([command for command in later if command.startswith(("MLSD", "LIST"))]) == 4

    run(scenario())


def test_missing_file_and_directory_are_failures(
    server: FtpServer, blobs: Any, now: int, make_request: Callable[..., FetchRequest], run: Any
) -> None:
    """What does not exist is a failure that is not retried; a directory without its slash has moved; the connection serves on."""

    async def scenario() -> None:
        async with Fetcher(FetchSettings(pause=0.0, allow=("127.0.0.0/8",)), blobs, lambda: now) as fetcher:
            for path in ("nope", "nope/", "a.txt/"):
                (event,) = await fetcher.fetch(make_request(server.url + path))
                assert isinstance(event, CrawlEvent)
                assert (event.kind, event.retryable, "550" in event.reason) == ("failed", False, True)
            *_, found = await fetcher.fetch(make_request(f"{server.url}sub"))
            assert cast("CrawlEvent", found).links[0].url == f"{server.url}sub/"
        assert len(server.commands("USER")) == 1

    run(scenario())


def path_of(url: str, server: FtpServer) -> bytes:
    """Return the path of a URL below the root of the server."""
    assert url.startswith(server.url)
    return ftp_path(url)[1]


def expected(server: FtpServer) -> dict[bytes, bytes]:
    """Return the files of the server's tree."""
    top = os.fsencode(server.tree)
    found = (os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names)
    return {path[len(top) + 1 :]: Path(os.fsdecode(path)).read_bytes() for path in found}


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_recursive_listing_replaces_the_listings_below_it(
    suffix: str, tmp_path: Path, blobs: Any, make_request: Callable[..., FetchRequest], run: Any
) -> None:
    """An ls-lR that is young and unchanged answers for the directories below; an old one, or one that is gone, does not."""
    tree, work, day = tmp_path / "tree", tmp_path / "work", 86_400
    for folder in (work, tree / "sub" / "deep", tree / "other"):
        folder.mkdir(parents=True)
    (tree / "sub" / "deep" / "a.txt").write_text("hello")
    listing, made = tree / f"ls-lR{suffix}", 1_700_000_000

    def make() -> None:
        text = subprocess.run(["ls", "-lR"], cwd=tree, env={"LC_ALL": "C"}, capture_output=True, check=True).stdout
        listing.write_bytes(gzip.compress(text) if suffix else text)
        os.utime(listing, (made, made))

    make()
    clock = [(made + day) * 1_000]

    async def scenario(server: FtpServer) -> None:
        async with Fetcher(FetchSettings(pause=0.0, allow=("127.0.0.0/8",)), blobs, lambda: clock[0]) as fetcher:

            async def listed(*paths: str) -> tuple[list[bytes], int]:
                seen = len(server.commands("LIST"))
                found = [await fetcher.fetch(make_request(server.url + path)) for path in paths]
                assert all(records[-1].kind == "fetched" for records in found if isinstance(records[-1], CrawlEvent))
                return [cast("FetchedObject", records[0]).body or b"" for records in found], len(server.commands("LIST")) - seen

            bodies, requests = await listed("", "sub/", "sub/deep/", "other/")
            assert (requests, bodies[1], bodies[3]) == (1, b"type=dir; deep\n", b"")
            assert bodies[2].endswith(b"; a.txt\n")
            (tree / "new").mkdir()
            assert (await listed("", "new/", "sub/"))[1] == 2, "what it does not have is requested"
            make()
            os.utime(listing, (made + 60, made + 60))
            assert (await listed("", "new/", "sub/"))[1] == 1, "a new one is fetched"
            assert len([command for command in server.commands("RETR") if "ls-lR" in command]) == 2
            clock[0] += 29 * day * 1_000
            assert (await listed("sub/", "", "sub/"))[1] == 3, "it is older than the refresh-rate"
            clock[0] = (made + day) * 1_000
            assert (await listed("", "sub/"))[1] == 1
            listing.unlink()
            assert (await listed("", "sub/"))[1] == 2, "it is gone"

    with ftp_server("vsftpd", work, tree) as server:
        run(scenario(server))
