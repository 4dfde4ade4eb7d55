"""Fetches files and folders of this machine.

Strategy: fstat before and after reading must agree, otherwise the attempt fails: a file that changes while it is read yields no
object. A folder is an object whose body is its Listing. No link is followed, including those on the path from the root
(`places.py`). Only regular files are opened, with flags under which opening cannot block.

Laws:
- A folder that cannot be listed completely is a failure, and removes nothing.
- A missing file is gone; a permission error is a permanent failure; other errors of the device or the system are retryable.
- A file of up to 64 kB costs a handful of system calls and no thread: cheap enough for an event loop.
"""

from __future__ import annotations

import asyncio
import errno
import grp
import hashlib
import io
import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import BinaryIO, cast

from processors.identity import file_path, file_url
from schemas.codec import encode
from schemas.ports import Blobs
from schemas.records import Entry, FetchRequest, LinkKind, Listing, Record, Validators
from streams.faults import fault
from streams.fetch.adapters import Tools
from streams.fetch.adapters.places import Places
from streams.fetch.answers import Answers, FetchError, Stored, StoreError
from streams.fetch.settings import INLINE, FetchSettings

FOLDER_TYPE = "inode/directory"
SYMLINK_TYPE = "inode/symlink"
CHANGED = "changed while reading"
OWN = "the data folder itself"
MAX_ENTRIES = 1_000_000
"""Maximum number of entries in a listed folder: their records have to fit in memory."""
LISTINGS = 3
"""Attempts to list a folder that keeps changing."""
STEP = 1024 * 1024

EntryPath = tuple[int, bytes]
"""An open folder (descriptor), and the name of an entry in it."""

MISSING = (errno.ENOENT, errno.ENOTDIR)
_LASTING = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL)
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def fetch_local(
    request: FetchRequest, blobs: Blobs, now_ms: int, max_file: int = FetchSettings().max_file, places: Places | None = None
) -> list[Record]:
    """Read the target of a `file:` URL and return the records that answer the request.

    `places`: the `Places` of the bulk that the request belongs to, if any. Raises StoreError if the blob store cannot write a body,
    which is not the object's fault, and nothing else.
    """
    answers = Answers(request, now_ms)
    if request.kind == "resolve":
        return answers.resolved("", b"")
    try:
        if places is not None:
            return _answers(answers, blobs, max_file, places)
        with Places() as alone:
            return _answers(answers, blobs, max_file, alone)
    except FetchError as failure:
        return answers.failed(failure)
    except StoreError:
        raise
    except OSError as error:
        return answers.gone("no such file or folder") if error.errno in MISSING else answers.failed(failure_of(error))
    except ValueError as error:  # an embedded NUL, or not a path
        return answers.failed(FetchError(f"not a path: {error}", retryable=False))


def failure_of(error: OSError) -> FetchError:
    """Return the failure that an error of the system is to an object."""
    return FetchError(error.strerror or str(error), retryable=error.errno not in _LASTING)


class Local:
    """An `Adapter` and `BulkAdapter` for the files and folders of this machine."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._own: tuple[str, ...] = ()
        self._identity: frozenset[tuple[int, int]] = frozenset()
        if tools.own is not None:
            ways = (os.path.abspath(tools.own), os.path.realpath(tools.own))
            self._own = tuple(file_url(os.fsencode(way), folder=True) for way in ways)
            found = os.stat(tools.own)
            self._identity = frozenset({(found.st_dev, found.st_ino)})

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return a resolved event without address and robots.txt: a folder has neither."""
        return Answers(request, self._tools.clock()).resolved("", b"")

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request; reads on a thread if it could block an event loop for too long."""
        return await asyncio.to_thread(self._read, request) if weighs(request) else self._read(request)

    def read_all(self, requests: Sequence[FetchRequest]) -> Iterator[list[Record]]:
        """Yield the records that answer each request; a folder stays open for consecutive files in it. Raises StoreError."""
        with Places(self._identity) as places:
            for request in requests:
                fault("fetch.read")
                yield self._read(request, places)

    def _read(self, request: FetchRequest, places: Places | None = None) -> list[Record]:
        tools = self._tools
        if self._is_own(request):
            return Answers(request, tools.clock()).refused(OWN)
        return fetch_local(request, tools.blobs, tools.clock(), tools.settings.max_file, places)

    def _is_own(self, request: FetchRequest) -> bool:
        """Return whether a file or folder is in the data folder. Only for a root, symbolic links in its path are resolved."""
        if not self._own:
            return False
        if request.url.startswith(self._own):
            return True
        if request.depth:
            return False
        try:
            real = os.path.realpath(file_path(request.url))
        except ValueError:  # not a path: `fetch_local` reports it
            return False
        return file_url(real, folder=True).startswith(self._own)

    async def close(self) -> None:
        """Do nothing: no resources stay open."""


@contextmanager
def reopened(request: FetchRequest, seen: Validators) -> Iterator[BinaryIO]:
    """Open a file that was fetched before for a second reading, and check that it is unchanged before and after.

    Raises OSError, and FetchError if it was replaced or has changed.
    """
    with Places() as places:
        at, name = places.of(request)
        fd = os.open(name, _OPEN, dir_fd=at)
    with open(fd, "rb") as file:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode) or not _validators(before, "", before.st_size).same_file(seen):
            raise FetchError(CHANGED, retryable=True)
        yield file
        if _facts(before) != _facts(os.fstat(fd)):
            raise FetchError(CHANGED, retryable=True)


def _answers(answers: Answers, blobs: Blobs, max_file: int, places: Places) -> list[Record]:
    place = places.of(answers.request)
    if answers.request.url.endswith("/"):
        return _folder(answers, place, blobs, places.own)
    return _leaf(answers, place, blobs, max_file)


def weighs(request: FetchRequest) -> bool:
    """Return whether a request may block an event loop for too long: a folder, or a file that goes to the blob store."""
    if request.kind == "resolve":
        return False
    if request.url.endswith("/"):
        return True
    try:
        return os.lstat(file_path(request.url)).st_size > INLINE
    except (OSError, ValueError):
        return False


def _leaf(answers: Answers, place: EntryPath, blobs: Blobs, max_file: int) -> list[Record]:
    at, name = place
    found = os.stat(name, dir_fd=at, follow_symlinks=False)
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG:
        return read_regular(answers, place, blobs, max_file)
    if kind == stat.S_IFLNK:
        body = os.readlink(name, dir_fd=at)
        return _answer(answers, _stored(body), found, SYMLINK_TYPE)
    if kind == stat.S_IFDIR:
        return answers.gone("a folder now")
    return answers.refused(f"not a file: {_SPECIAL.get(kind, 'special')}")


_SPECIAL = {stat.S_IFIFO: "a fifo", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def read_regular(answers: Answers, place: EntryPath, blobs: Blobs, max_file: int) -> list[Record]:
    """Return the records for a regular file. Raises FetchError, StoreError and OSError."""
    fd = os.open(place[1], _OPEN, dir_fd=place[0])
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise FetchError(CHANGED, retryable=True)
        if before.st_size > max_file:
            raise FetchError(f"larger than {max_file:,} bytes", retryable=False)
        if before.st_size <= INLINE:
            stored = _stored(_read(fd, before.st_size))
        elif (same := _same(answers, fd, before.st_size)) is not None:
            stored = same
        else:
            stored = _store(fd, before.st_size, blobs)
        after = os.fstat(fd)
        if _facts(before) != _facts(after) or stored.size != before.st_size:
            raise FetchError(CHANGED, retryable=True)
    finally:
        os.close(fd)
    return _answer(answers, stored, before, "")


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _facts(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(fd: int, size: int) -> bytes:
    """Read a small file completely, plus one byte if there is more: then it has grown."""
    data = os.read(fd, size + 1)
    # A short read means the end of the file (read(2)), except on file systems that return partial reads.
    while len(data) < size:
        more = os.read(fd, size + 1 - len(data))
        if not more:
            break
        data += more
    return data


def _stored(body: bytes) -> Stored:
    return Stored(body, "", len(body), hashlib.md5(body).hexdigest(), hashlib.sha256(body).hexdigest())


def _same(answers: Answers, fd: int, size: int) -> Stored | None:
    """Read a large file of unchanged size and compare its MD5; return it if unchanged, so that nothing is written, else None."""
    known = answers.request.validators
    if known is None or not known.md5 or known.size != size:
        return None
    md5, read = hashlib.md5(), 0
    while read <= size and (chunk := os.read(fd, STEP)):
        md5.update(chunk)
        read += len(chunk)
    if md5.hexdigest() == known.md5:
        return Stored(None, "", read, known.md5, "")
    os.lseek(fd, 0, os.SEEK_SET)
    return None


class _Window(io.RawIOBase):
    """The first `size + 1` bytes of an open file: a file that grows faster than it is read must not fill the disk."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._left = size + 1
        self.error: OSError | None = None
        """The error in reading the file, as opposed to an error of the store in writing."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = cast("memoryview", memoryview(buffer))[: self._left]  # type: ignore[arg-type]
        try:
            read = os.readv(self._fd, [view]) if len(view) else 0
        except OSError as error:
            self.error = error
            raise
        self._left -= read
        return read


def _store(fd: int, size: int, blobs: Blobs) -> Stored:
    window = _Window(fd, size)
    try:
        sha256, md5, length = blobs.put(io.BufferedReader(window, STEP))
    except OSError as error:
        if window.error is not None:
            raise window.error from None
        raise StoreError(error.errno, f"the blob store: {error.strerror}") from error
    return Stored(None, sha256, length, md5, sha256)


def _folder(answers: Answers, place: EntryPath, blobs: Blobs, own: frozenset[tuple[int, int]]) -> list[Record]:
    at, name = place
    if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        return answers.gone("not a folder")
    fd = os.open(name, _OPEN | os.O_DIRECTORY, dir_fd=at)
    try:
        # Compared by device and inode: the path may lead through a link or a mount.
        if _identity(fd) in own:
            return answers.refused(OWN)
        for _ in range(LISTINGS):
            before = os.fstat(fd)
            entries = sorted(_entries(fd), key=lambda entry: entry.name)
            # An entry that is renamed during the listing may be missed under both names, and would wrongly count as removed.
            if _facts(before) == _facts(os.fstat(fd)):
                break
        else:
            raise FetchError(CHANGED, retryable=True)
    finally:
        os.close(fd)
    return _listing(answers, encode(Listing(entries=tuple(entries), device=before.st_dev, inode=before.st_ino)), before, blobs)


def _entries(fd: int) -> Iterator[Entry]:
    with os.scandir(fd) as entries:
        for count, entry in enumerate(entries, 1):
            if count > MAX_ENTRIES:
                raise FetchError(f"a folder of more than {MAX_ENTRIES:,} entries", retryable=False)
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except PermissionError:  # readable, but not searchable: only the names are available
                yield Entry(name=os.fsencode(entry.name), kind=_guess(entry), size=-1, mtime=0, inode=entry.inode())
                continue
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
            name = os.fsencode(entry.name)
            yield Entry(
                name=name,
                kind=kind,
                size=found.st_size,
                mtime=found.st_mtime_ns,
                inode=found.st_ino,
                ctime=found.st_ctime_ns,
            )


_KINDS: dict[int, LinkKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink"}


def _guess(entry: os.DirEntry[str]) -> LinkKind:
    """Return the kind that the directory entry itself gives."""
    if entry.is_symlink():
        return "symlink"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _listing(answers: Answers, body: bytes, found: os.stat_result, blobs: Blobs) -> list[Record]:
    stored = _stored(body)
    known = answers.request.validators
    if stored.size > INLINE and (known is None or known.md5 != stored.md5):
        try:
            blobs.put(io.BytesIO(body))
        except OSError as error:
            raise StoreError(error.errno, f"the blob store: {error.strerror}") from error
        stored = stored._replace(body=None, blob=stored.sha256)
    return _answer(answers, stored, found, FOLDER_TYPE, listing=True)


def _validators(found: os.stat_result, md5: str, size: int) -> Validators:
    return Validators(md5=md5, size=size, mtime=found.st_mtime_ns, inode=found.st_ino, ctime=found.st_ctime_ns)


def _answer(answers: Answers, stored: Stored, found: os.stat_result, content_type: str, *, listing: bool = False) -> list[Record]:
    validators = _validators(found, stored.md5, stored.size)
    known = answers.request.validators
    if known is not None and (known.md5, known.size) == (stored.md5, stored.size):
        return answers.unchanged(validators, listing=listing)
    headers = {
        "owner": _owner(found.st_uid),
        "group": _group(found.st_gid),
        "mode": f"{stat.S_IMODE(found.st_mode):04o}",
    }
    return answers.fetched(stored, validators, content_type, headers, listing=listing)


@lru_cache(maxsize=1024)
def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@lru_cache(maxsize=1024)
def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
