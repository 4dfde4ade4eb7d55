"""Local mapping: objects of a server read from a folder that has its files."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from processors.frontier.plans.options import RootOptions
from processors.identity import file_url
from schemas.codec import decode, encode
from schemas.plan import NO_FOLDER, NOT_LOCAL
from schemas.records import CrawlEvent, FetchedObject, LocalMap, Plan, Validators
from streams.fetch import Fetcher, FetchSettings, StoreError
from streams.fetch.adapters import Tools
from streams.fetch.adapters.mapped import Mapped
from streams.fetch.pace import Pace
from streams.fetch.settings import INLINE

NOW = 1_700_000_000_000
SITE = "http://www.example.org/docs/"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A mapped folder beside a file that is outside of it."""
    (tmp_path / "outside.txt").write_text("outside")
    folder = tmp_path / "docs"
    (folder / "a").mkdir(parents=True)
    (folder / "index.html").write_text("<title>top</title>")
    (folder / "a" / "b c.txt").write_text("whale")
    return folder


@pytest.fixture
def read(top: Path, blobs: Any, make_request: Any) -> Any:
    """A function that fetches a URL below SITE, and returns its object and its last event."""
    options = RootOptions(Plan(map=(LocalMap(url=SITE, folder=file_url(bytes(top), folder=True)),)))

    def run(path: str, own: Path | None = None, **fields: Any) -> Any:
        found = options.local(SITE + path)
        assert found is not None
        request = make_request(SITE + path, **{"local": found.url, "within": found.within, **fields})

        async def fetch() -> Any:
            async with Fetcher(FetchSettings(), blobs, lambda: NOW, own=own) as fetcher:
                return await fetcher.fetch(request)

        records = asyncio.run(fetch())
        assert [decode(encode(record)) for record in records] == records
        objects = [record for record in records if isinstance(record, FetchedObject)]
        event = next(record for record in records if isinstance(record, CrawlEvent))
        assert all(record.url.startswith(SITE) for record in records)
        return (objects[0] if objects else None), event

    return run


def test_file_keeps_the_url_of_the_server(read: Any) -> None:
    """A mapped file is an object with the URL of the server, without owner and mode."""
    found, event = read("a/b%20c.txt")
    assert (found.url, found.body, found.headers, found.sha256) == (
        *(f"{SITE}a/b%20c.txt", b"whale", {}),
        hashlib.sha256(b"whale").hexdigest(),
    )
    assert (event.kind, event.url) == ("fetched", f"{SITE}a/b%20c.txt")


def test_unchanged_file_is_unchanged(read: Any) -> None:
    """A file with the same bytes as before is unchanged, whoever delivered them."""
    known = Validators(etag="x", md5=hashlib.md5(b"whale").hexdigest(), size=5)
    found, event = read("a/b%20c.txt", validators=known)
    assert (found, event.kind) == (None, "unchanged")


def test_folder_is_its_default_document_or_a_redirect(read: Any) -> None:
    """A folder is its index page; without a slash it redirects, as on a server; without an index page it is missing."""
    found, _ = read("")
    assert found.body == b"<title>top</title>"
    gone, event = read("a")
    assert (gone.outcome, gone.status, event.reason) == ("gone", 301, "moved")
    assert read("a/")[1].reason == NOT_LOCAL


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("a/b c.txt", b"whale"),
        ("a/../index.html", b"<title>top</title>"),
        ("{top}/a/b c.txt", b"whale"),
        ("../outside.txt", None),
        ("{top}/../outside.txt", None),
        ("/etc/passwd", None),
        ("link", None),
        ("a/missing", None),
    ],
)
def test_link_is_followed_inside_only(read: Any, top: Path, target: str, body: bytes | None) -> None:
    """A link to something in the mapped folder is followed; one that leads outside, in a circle or nowhere is a missing file."""
    (top / "link").symlink_to(target.format(top=top))
    found, event = read("link")
    assert (found.body if found else None) == body
    assert event.reason == ("" if body else NOT_LOCAL)


def test_link_to_a_folder_outside_is_not_followed(read: Any, top: Path) -> None:
    """Neither is a link to a folder, above the file."""
    (top / "up").symlink_to("..")
    (top / "in").symlink_to("a")
    assert read("up/outside.txt")[1].reason == NOT_LOCAL
    assert read("in/b%20c.txt")[0].body == b"whale"


@pytest.mark.parametrize("path", ["missing", "missing/x", "a/b%20c.txt/x", "a/b%20c.txt/", "%2E%2E/outside.txt", "pipe"])
def test_missing_file_is_gone_for_its_reason(read: Any, top: Path, path: str) -> None:
    """A file that is not there is gone for the reason that the frontier decides on."""
    os.mkfifo(top / "pipe")
    assert (read(path)[1].kind, read(path)[1].reason) == ("gone", NOT_LOCAL)


def test_missing_or_empty_folder_is_a_failure(read: Any, top: Path, make_request: Any) -> None:
    """Where no disk is mounted nothing is gone, unless removals are accepted."""
    top.rename(top.with_name("elsewhere"))
    for exists in (False, True):
        if exists:
            top.mkdir()
        for path in ("a/b%20c.txt", "index.html", ""):
            event = read(path)[1]
            assert (event.kind, event.reason, event.retryable) == ("failed", NO_FOLDER, False)
        accepted = msgspec.structs.replace(make_request(SITE).root, accept=NOW)
        assert (read("index.html", root=accepted)[1].kind, read("index.html", root=accepted)[1].reason) == ("gone", NOT_LOCAL)


def test_full_disk_ends_the_run(top: Path, blobs: Any, make_request: Any) -> None:
    """A body that the blob store cannot store is not the failure of its file: the run has to stop."""
    blobs.full = OSError(errno.ENOSPC, "No space left on device")
    (top / "large").write_bytes(b"x" * (INLINE + 1))
    request = make_request(f"{SITE}large", local=file_url(bytes(top / "large")), within=file_url(bytes(top), folder=True))

    async def fetch() -> Any:
        async with Fetcher(FetchSettings(), blobs, lambda: NOW) as fetcher:
            await fetcher.fetch(request)
            return fetcher.store_error

    assert asyncio.run(fetch()).errno == errno.ENOSPC
    with pytest.raises(StoreError):
        list(Mapped(Tools(FetchSettings(), blobs, lambda: NOW, Pace(0.0), asyncio.Semaphore())).read_all([request]))


def test_data_folder_is_not_read(read: Any, top: Path) -> None:
    """A mapped folder that is the data folder, in it, or contains it does not show its files."""
    (top / "data").mkdir()
    (top / "data" / "x").write_text("x")
    assert read("data/x", own=top / "data")[1].kind == "refused"
    assert read("index.html", own=top)[1].kind == "refused"
    assert read("index.html", own=top.parent)[1].kind == "refused"
    assert read("index.html", own=top / "data")[1].kind == "fetched"


def test_query_and_escaped_slash_are_not_mapped(top: Path) -> None:
    """A URL with a query, or with a name that no file can have, is left to the server."""
    options = RootOptions(Plan(map=(LocalMap(url=SITE, folder="file:///x/"), LocalMap(url=f"{SITE}a/", folder="file:///y/"))))
    assert [options.local(SITE + path) for path in ("a?b", "a%2Fb", "a%00")] == [None, None, None]
    assert options.local("http://www.example.org/") is None
    found = [options.local(SITE + path) for path in ("b/c", "a/c")]
    assert [each and (each.url, each.within) for each in found] == [("file:///x/b/c", "file:///x/"), ("file:///y/c", "file:///y/")]
