from __future__ import annotations

import errno
import hashlib
import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from processors.identity import file_url
from schemas.codec import decode, encode
from schemas.records import CrawlEvent, FetchedObject, Listing, Root, Validators
from streams.fetch import FetchError, StoreError, fetch_local, reopened
from streams.fetch.adapters import local
from streams.fetch.adapters.places import Places

NOW = 1_700_000_000_000


@pytest.fixture
def fetch(blobs: Any, make_request: Any) -> Any:
    """A function that fetches a path and asserts that the records survive encoding."""

    def run(
        path: Path | bytes, *, folder: bool = False, known: Validators | None = None, root: Root | None = None, **options: Any
    ) -> Any:
        url = file_url(os.fsencode(path), folder=folder)
        given = {"root": root} if root else {}
        records = fetch_local(make_request(url, validators=known, **given), blobs, NOW, **options)
        assert [decode(encode(r)) for r in records] == records
        objects = [r for r in records if isinstance(r, FetchedObject)]
        return (objects[0] if objects else None), records[-1]

    return run


def test_small_file_is_inline(fetch: Any, tmp_path: Path, blobs: Any) -> None:
    """A file up to 64 kB is inline in its record, with digests, size, times and inode as validators, owner and mode as headers."""
    path = tmp_path / "a b#c"
    path.write_bytes(b"x" * 65_536)
    path.chmod(0o640)
    got, event = fetch(path)
    facts = path.stat()
    assert (got.outcome, got.body, got.size, got.blob, got.time) == ("fetched", b"x" * 65_536, 65_536, "", NOW)
    assert got.md5 == hashlib.md5(got.body).hexdigest()
    assert got.sha256 == hashlib.sha256(got.body).hexdigest()
    assert got.validators == Validators(
        md5=got.md5, size=65_536, mtime=facts.st_mtime_ns, inode=facts.st_ino, ctime=facts.st_ctime_ns
    )
    assert got.headers["mode"] == "0640"
    assert got.headers["owner"] in (path.owner(), str(facts.st_uid))
    assert set(got.headers) == {"owner", "group", "mode"}
    assert (event.kind, event.validators, event.listing, event.rules) == ("fetched", got.validators, False, "r1")
    assert not blobs.bodies


def test_large_file_is_a_blob(fetch: Any, tmp_path: Path, blobs: Any) -> None:
    """A file above 64 kB is in the blob store; if it is unchanged, it is read but not stored again."""
    path = tmp_path / "large"
    body = os.urandom(200_000)
    path.write_bytes(body)
    got, event = fetch(path)
    assert (got.body, got.size, got.blob) == (None, 200_000, hashlib.sha256(body).hexdigest())
    assert (got.sha256, got.md5) == (got.blob, hashlib.md5(body).hexdigest())
    assert blobs.bodies.pop(got.blob) == body
    os.utime(path, ns=(1, 2))
    got, again = fetch(path, known=event.validators)
    assert (got, again.kind, again.validators.mtime) == (None, "unchanged", 2)
    assert not blobs.bodies
    path.write_bytes(body[::-1])
    got, again = fetch(path, known=event.validators)
    assert (again.kind, blobs.bodies[got.blob]) == ("fetched", body[::-1])


def test_same_bytes_are_unchanged(fetch: Any, tmp_path: Path) -> None:
    """A file with the same bytes is unchanged, with its current validators; other bytes of the same size are a change."""
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    _, event = fetch(path)
    os.utime(path, ns=(5, 7))
    got, again = fetch(path, known=event.validators)
    assert (got, again.kind, again.validators.mtime, again.validators.md5) == (None, "unchanged", 7, event.validators.md5)
    path.write_bytes(b"abd")
    got, again = fetch(path, known=event.validators)
    assert (got.body, again.kind) == (b"abd", "fetched")


@pytest.mark.parametrize("size", [3, 200_000])
def test_changed_mode_alone_is_unchanged(size: int, fetch: Any, tmp_path: Path, blobs: Any) -> None:
    """A chmod costs a reading and no object: the file is unchanged, with its new ctime; no body is stored again."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    _, event = fetch(path)
    blobs.bodies.clear()
    path.chmod(0o600)
    before = msgspec.structs.replace(event.validators, ctime=1)
    got, again = fetch(path, known=before)
    assert (got, again.kind, again.validators.ctime) == (None, "unchanged", path.stat().st_ctime_ns)
    assert not blobs.bodies


def test_overwritten_file_is_not_reopened(fetch: Any, make_request: Any, tmp_path: Path) -> None:
    """A file overwritten under its old size and mtime is not opened for a second reading; an unknown ctime is not compared."""
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    _, event = fetch(path)
    request = make_request(file_url(os.fsencode(path)))
    for same in (event.validators, msgspec.structs.replace(event.validators, ctime=0)):
        with reopened(request, same) as body:
            assert body.read() == b"abc"
    with pytest.raises(FetchError, match="changed"), reopened(request, msgspec.structs.replace(event.validators, ctime=1)):
        pass


def test_link_is_an_object_and_not_followed(fetch: Any, tmp_path: Path) -> None:
    """A link is an object whose body is its target, whether the target exists or not."""
    path = tmp_path / "link"
    path.symlink_to("/etc/passwd")
    got, event = fetch(path)
    assert (got.body, got.content_type, got.size) == (b"/etc/passwd", "inode/symlink", 11)
    assert event.kind == "fetched"
    assert fetch(path, known=event.validators)[1].kind == "unchanged"
    folder = tmp_path / "to-folder"
    folder.symlink_to(tmp_path)
    got, event = fetch(folder, folder=True)
    assert (got, event.kind, event.reason) == (None, "gone", "not a folder")


def test_links_below_the_root_are_not_followed(fetch: Any, tmp_path: Path) -> None:
    """Files and folders under a link below the root are gone; links in the path of the root itself are followed."""
    (tmp_path / "real" / "root" / "a" / "sub").mkdir(parents=True)
    (tmp_path / "outside" / "sub").mkdir(parents=True)
    for folder in (tmp_path / "real" / "root" / "a" / "sub", tmp_path / "outside" / "sub"):
        (folder / "f").write_bytes(bytes(folder))
    (tmp_path / "by").symlink_to("real")
    top = tmp_path / "by" / "root"
    root = Root(url=file_url(os.fsencode(top), folder=True), run="1")
    ways = ((top / "a" / "sub" / "f", False), (top / "a" / "sub", True), (top / "a", True), (top, True))
    assert [fetch(path, folder=folder, root=root)[1].kind for path, folder in ways] == ["fetched"] * 4
    (top / "a").rename(tmp_path / "away")
    (top / "a").symlink_to(tmp_path / "outside")
    assert [fetch(path, folder=folder, root=root)[1].kind for path, folder in ways] == ["gone"] * 3 + ["fetched"]


def test_bulk_reads_files_of_several_folders(blobs: Any, make_request: Any, tmp_path: Path) -> None:
    """In one bulk of requests, files of several folders and roots are read from their own folders."""
    paths = [tmp_path / name / "sub" / file for name in "ab" for file in "xy"]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(path))
    roots = [Root(url=file_url(os.fsencode(folder), folder=True), run="1") for folder in (tmp_path, tmp_path / "a", tmp_path / "b")]
    with Places() as places:
        for path in (*paths, *paths[::-2]):
            for root in roots:
                request = make_request(file_url(os.fsencode(path)), root=root)
                got = fetch_local(request, blobs, NOW, places=places)[0]
                assert isinstance(got, FetchedObject)
                assert got.body == bytes(path)


def test_excluded_folder_is_recognized_by_its_inode(blobs: Any, make_request: Any, tmp_path: Path) -> None:
    """A folder excluded by its inode is refused under any name; its siblings are listed."""
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    found = (tmp_path / "own").stat()
    requests = [make_request(file_url(bytes(tmp_path / name), folder=True)) for name in ("own", "other")]
    with Places(frozenset({(found.st_dev, found.st_ino)})) as places:
        events = [fetch_local(request, blobs, NOW, places=places)[-1] for request in requests]
    assert [event.kind for event in events if isinstance(event, CrawlEvent)] == ["refused", "fetched"]


def test_special_files_are_refused(fetch: Any, tmp_path: Path) -> None:
    """A fifo, a socket and a device are not opened."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        found = [fetch(p)[1] for p in (tmp_path / "fifo", tmp_path / "s", Path("/dev/zero"))]
    assert [e.kind for e in found] == ["refused"] * 3
    assert [e.reason for e in found] == ["not a file: a fifo", "not a file: a socket", "not a file: a device"]


def test_missing_or_replaced_path_is_gone(fetch: Any, tmp_path: Path) -> None:
    """A missing path is reported to the frontier alone, which decides; so is a file that became a folder, and the reverse."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for name, folder in (("x", False), ("x", True), ("file/x", False), ("file", True), ("folder", False)):
        got, event = fetch(tmp_path / name, folder=folder)
        assert (got, event.kind) == (None, "gone")


def test_folder_is_its_sorted_listing(fetch: Any, tmp_path: Path) -> None:
    """The body of a folder is its entries by lstat, sorted by the bytes of their names; it changes when an entry changes."""
    for name in (b"b", b"a\xff", b"\xc3\xa4", b"B"):
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    (tmp_path / "c").mkdir()
    (tmp_path / "l").symlink_to("nowhere")
    os.mkfifo(tmp_path / "p")
    got, event = fetch(tmp_path, folder=True)
    listing = decode(got.body)
    assert isinstance(listing, Listing)
    kinds = {b"B": "file", b"a\xff": "file", b"b": "file", b"c": "folder", b"l": "symlink", b"p": "other", b"\xc3\xa4": "file"}
    assert [(e.name, e.kind) for e in listing.entries] == sorted(kinds.items())
    facts = (tmp_path / "b").stat()
    entry = next(e for e in listing.entries if e.name == b"b")
    assert (entry.size, entry.mtime, entry.inode, entry.ctime) == (1, facts.st_mtime_ns, facts.st_ino, facts.st_ctime_ns)
    assert (got.content_type, event.listing, got.md5) == ("inode/directory", True, hashlib.md5(got.body).hexdigest())
    assert [fetch(tmp_path, folder=True, known=event.validators)[1].kind for _ in range(2)] == ["unchanged"] * 2
    assert fetch(tmp_path, folder=True, known=event.validators)[1].listing
    (tmp_path / "b").write_bytes(b"bb")
    assert fetch(tmp_path, folder=True, known=event.validators)[1].kind == "fetched"


def test_large_listing_is_a_blob(fetch: Any, tmp_path: Path, blobs: Any) -> None:
    """A listing above 64 kB is in the blob store, and stored once."""
    for n in range(2_000):
        (tmp_path / f"{n:040}").touch()
    got, event = fetch(tmp_path, folder=True)
    assert got.body is None
    listing = decode(blobs.bodies.pop(got.blob))
    assert isinstance(listing, Listing)
    assert len(listing.entries) == 2_000
    assert fetch(tmp_path, folder=True, known=event.validators)[1].kind == "unchanged"
    assert not blobs.bodies


def test_root_folder_is_listed(fetch: Any) -> None:
    """The folder / is listed."""
    got, event = fetch(b"/", folder=True)
    assert (event.kind, event.listing, got.url) == ("fetched", True, "file:///")


ERRORS = [
    (errno.EACCES, "failed", False),
    (errno.EPERM, "failed", False),
    (errno.EIO, "failed", True),
    (errno.EMFILE, "failed", True),
    (errno.ESTALE, "failed", True),
    (errno.ENOENT, "gone", False),
]


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("case", ERRORS)
def test_read_errors_are_failures(case: tuple[int, str, bool], folder: bool, fetch: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A path that cannot be read or listed is a failure that removes nothing; it is retried unless permissions are the reason."""
    number, kind, retryable = case

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / "x").write_bytes(b"x")
    monkeypatch.setattr(os, "open", refuse)
    got, event = fetch(tmp_path if folder else tmp_path / "x", folder=folder)
    assert (event.kind, event.retryable, got) == (kind, retryable, None)


def test_interrupted_listing_is_a_failure(fetch: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A folder whose reading fails halfway is a failure, never an incomplete listing."""

    def broken(fd: int) -> Any:
        yield from ()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(local, "_entries", broken)
    got, event = fetch(tmp_path, folder=True)
    assert (got, event.kind, event.retryable) == (None, "failed", True)


def test_file_or_folder_changed_during_read_is_a_failure(fetch: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A file that grows, shrinks or is rewritten during the read is a failure to retry; so is a folder that keeps changing."""
    real = os.read
    path = tmp_path / "x"
    for change in (b"grown and grown", b"", b"same"):
        path.write_bytes(b"x123")

        def read(fd: int, size: int, change: bytes = change) -> bytes:
            path.write_bytes(change)
            os.utime(path, ns=(3, 3))
            return real(fd, size)

        with monkeypatch.context() as patched:
            patched.setattr(os, "read", read)
            got, event = fetch(path)
        assert (got, event.kind, event.retryable, event.reason) == (None, "failed", True, "changed while reading")
    names = iter(range(100))
    entries = local._entries

    def busy(fd: int) -> Any:
        (tmp_path / f"new{next(names)}").touch()
        os.utime(tmp_path, ns=(1, next(names)))
        return entries(fd)

    monkeypatch.setattr(local, "_entries", busy)
    got, event = fetch(tmp_path, folder=True)
    assert (got, event.kind, event.retryable, event.reason) == (None, "failed", True, "changed while reading")


def test_too_large_file_is_a_permanent_failure(fetch: Any, tmp_path: Path) -> None:
    """A file beyond the size limit is a permanent failure, without a read."""
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 40)
    got, event = fetch(path)
    assert (got, event.kind, event.retryable) == (None, "failed", False)
    assert "larger than" in event.reason


def test_kernel_file_of_size_0_is_not_empty(fetch: Any) -> None:
    """A file of the kernel with size 0 that has bytes is not taken for an empty one."""
    _, event = fetch(b"/proc/self/status")
    assert (event.kind, event.reason) == ("failed", "changed while reading")


@pytest.mark.parametrize("url", ["file:///a%00b", "file:///" + "x" * 300, "file://host/x", "file:///a%00b/"])
def test_impossible_file_url_is_a_permanent_failure(url: str, blobs: Any, make_request: Any) -> None:
    """A URL that no file can have is a permanent failure."""
    (event,) = fetch_local(make_request(url), blobs, NOW)
    assert isinstance(event, CrawlEvent)
    assert (event.kind, event.retryable) == ("failed", False)


def test_full_store_raises_store_error(fetch: Any, tmp_path: Path, blobs: Any) -> None:
    """If the blob store cannot store a body, a StoreError with the system's errno is raised, since the run has to stop."""
    (tmp_path / "x").write_bytes(bytes(70_000))
    for n in range(2_000):
        (tmp_path / f"{n:040}").touch()
    blobs.full = OSError(errno.ENOSPC, "No space left on device")
    for path, folder in ((tmp_path / "x", False), (tmp_path, True)):
        with pytest.raises(StoreError) as error:
            fetch(path, folder=folder)
        assert error.value.errno == errno.ENOSPC


def test_read_error_is_a_failure_of_the_file(fetch: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A read error of a large file is a failure of that file."""

    def readv(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "x").write_bytes(bytes(70_000))
    monkeypatch.setattr(os, "readv", readv)
    _, event = fetch(tmp_path / "x")
    assert (event.kind, event.retryable, event.reason) == ("failed", True, "Input/output error")


def test_fetcher_gives_the_records_of_fetch_local(edge: Any, run: Any, split: Any, tmp_path: Path, make_request: Any) -> None:
    """The fetcher gives the same records for files as fetch_local, from a thread for slow ones, and reports a full store."""
    (tmp_path / "small").write_bytes(b"s")
    (tmp_path / "large").write_bytes(bytes(100_000))

    async def scenario() -> None:
        async with edge() as world:
            for url in (file_url(os.fsencode(tmp_path / "small")), file_url(os.fsencode(tmp_path), folder=True)):
                request = make_request(url)
                assert await world.fetcher.fetch(request) == fetch_local(request, world.blobs, NOW)
            world.blobs.full = OSError(errno.ENOSPC, "No space left on device")
            _, event = split(await world.fetcher.fetch(make_request(file_url(os.fsencode(tmp_path / "large")))))
            assert (event.kind, event.retryable) == ("failed", True)
            assert world.fetcher.store_error.errno == errno.ENOSPC

    run(scenario())
