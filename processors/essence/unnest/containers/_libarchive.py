"""libarchive as streams: the decoded data of one of its filters, and the members of one of its formats.

Laws:
- One filter or one format is named; any other layer that libarchive would decode is refused, as its output would not be charged.
- The body is read by a callback, CHUNK bytes at a time. An exception in the callback is kept, and raised to the reader of the
  archive.
- An error of libarchive about an entry concerns that entry alone; an error about the archive ends it, after the members before.
- Names are converted to UTF-8 whatever the locale of the process is.
"""

from __future__ import annotations

import ctypes
import stat
from collections.abc import Iterator
from ctypes import byref, c_int64, c_size_t, c_void_p
from itertools import count
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from processors.essence.formats.container import Budget, Damaged, Member, MemberKind, Reader, Refused, UnnestError
from processors.essence.formats.streams import CHUNK, Failing, sought
from processors.essence.unnest.containers import _libarchive_c as c

MAX_BAD = 100
"""Number of unreadable headers after which an archive is given up."""
ENCRYPTED = "ncrypt"
UNSUPPORTED = ("upport", "unavailable", "an't decompress", "Unknown")
"""Parts of libarchive's messages about unsupported features; all other errors are damage."""

_OPENED: WeakValueDictionary[int, Opened] = WeakValueDictionary()
_KEYS = count(1)
# Created once, early: creating a callback may need files of the system that a sandbox denies.
_READ = c.Callback(lambda _archive, key, where: _OPENED[key].fill(where))
_SEEK = c.Seek(lambda _archive, key, offset, whence: _OPENED[key].seek(offset, whence))


class Opened:
    """A stream read by libarchive, of one format behind at most one filter."""

    def __init__(self, body: Reader, codes: tuple[int, ...], filtered: int = 0) -> None:
        self._body = body
        self._file: BinaryIO | None = sought(body)
        self.raised: UnnestError | None = None
        """Exception raised by reading the body."""
        self._fatal = c.OK
        self._buffer = ctypes.create_string_buffer(CHUNK)
        self._archive = c.Archive(c.new())
        key = next(_KEYS)
        _OPENED[key] = self
        # A warning means that libarchive was built without this filter, and would start a program instead.
        if filtered and c.add_filter(self._archive, filtered) != c.OK:
            raise Refused("libarchive was built without this compression")
        for code in codes:
            # Formats other than RAW are added, not set: they examine their stream when libarchive asks whether they support it.
            self.checked((c.set_format if code == c.RAW else c.add_format)(self._archive, code))
            if code == c.LHA:
                # Names in an unknown charset would end the archive (`lha.py`).
                with c.utf8():
                    c.set_option(self._archive, b"lha", b"hdrcharset", c.BYTES)
        if self._file:
            c.set_seek(self._archive, _SEEK)
        self.checked(c.open_with(self._archive, key, None, _READ, None))
        # libarchive repeats its filter as long as it fits; the last element of the chain is the stream itself.
        if filtered and (chain := c.filters(self._archive)) != 2:
            raise Refused("compressed more than once") if chain > 2 else Damaged("no such compressed data")

    def __del__(self) -> None:
        c.free(self._archive)

    def fill(self, where: Any) -> int:
        """Callback: read the next bytes, store their address in `where`, and return their number."""
        try:
            data = self._body.read(CHUNK)
            ctypes.memmove(self._buffer, data, len(data))
            where[0] = ctypes.addressof(self._buffer)
            return len(data)
        except UnnestError as error:
            self.raised = error
        except Exception as error:  # noqa: BLE001 - nothing may pass through C code
            self.raised = Damaged(f"{type(error).__name__}: {error}")
        return c.FATAL

    def seek(self, offset: int, whence: int) -> int:
        """Callback: move to another position, and return it."""
        try:
            return self._file.seek(offset, whence) if self._file else c.FATAL
        except (OSError, ValueError, OverflowError):
            return c.FATAL

    def problem(self) -> UnnestError:
        """Return the latest failure as an UnnestError."""
        if self.raised:
            return self.raised
        said = (c.error(self._archive) or b"damaged").decode("utf-8", "replace")
        if ENCRYPTED in said:
            return Refused("encrypted")
        return Refused(said) if any(word in said for word in UNSUPPORTED) else Damaged(said)

    def checked(self, result: int) -> int:
        """Return the result of a call. Raises UnnestError unless it is OK, EOF or a warning."""
        if result >= c.OK or (result == c.WARN and not self.raised):
            return result
        raise self.problem()

    def header(self) -> tuple[int, c_void_p]:
        """Read the next header; return the result and the entry."""
        entry = c_void_p()
        return self._fatal or self._noted(c.next_header(self._archive, byref(entry))), entry

    def _noted(self, result: int) -> int:
        # After a fatal error, another read would let libarchive access memory that it has freed or never allocated.
        self._fatal = result if result == c.FATAL else c.OK
        return result

    def block(self) -> tuple[int, int, int, int]:
        """Read the next block; return the result, its address, its length in bytes and its offset in the file."""
        at, size, offset = c_void_p(), c_size_t(), c_int64()
        result = self._fatal or self._noted(c.data_block(self._archive, byref(at), byref(size), byref(offset)))
        return result, at.value or 0, size.value, offset.value


class Data:
    """The body of an entry; holes are zeros. Raises UnnestError, and raises it again on further reads.

    `size`: size stated by the entry; -1: none. `encrypted`: the entry is refused before it is read.
    """

    def __init__(self, opened: Opened, size: int = -1, *, encrypted: bool = False) -> None:
        self._opened = opened
        self._size = size
        self._at = self._left = self._hole = self._given = 0
        self._end = encrypted
        self._error: UnnestError | None = Refused("encrypted") if encrypted else None

    def read(self, size: int, /) -> bytes:
        """Return at most CHUNK bytes: libarchive keeps further data until the next call."""
        while not (self._hole or self._left or self._end):
            self._next()
        size = min(size, CHUNK)
        if self._hole:
            data = bytes(min(size, self._hole))
            self._hole -= len(data)
        elif self._left:
            data = ctypes.string_at(self._at, min(size, self._left))
            self._at += len(data)
            self._left -= len(data)
        elif self._error:
            raise self._error
        else:
            return b""
        self._given += len(data)
        return data

    def _next(self) -> None:
        result, at, size, offset = self._opened.block()
        if result == c.OK and offset < self._given:
            self._error = Damaged("a body whose pieces overlap")
        elif result not in {c.OK, c.EOF}:
            # A warning about data means that a checksum fails.
            self._error = self._opened.problem()
        else:
            self._at, self._left, self._hole = at, size, max(offset - self._given, 0) if size else 0
        if result == c.EOF and (self._opened.raised or self._given < self._size):
            # A file that continues in another volume ends early.
            self._error = self._opened.raised or Damaged("truncated: the body ends early")
        self._end = result == c.EOF or self._error is not None
        if self._end:
            self._left = self._hole = 0


class Filtered:
    """Decoded data of a compressed stream; opened at the first read."""

    def __init__(self, body: Reader, code: int) -> None:
        self._body = body
        self._code = code
        self._data: Data | None = None
        self._error: UnnestError | None = None

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        if self._error:
            raise self._error
        try:
            self._data = self._data or self._open()
        except UnnestError as error:
            self._error = error
            raise
        return self._data.read(size)

    def _open(self) -> Data:
        opened = Opened(self._body, (c.RAW,), self._code)
        opened.checked(opened.header()[0])
        return Data(opened)


KINDS: dict[int, MemberKind] = {stat.S_IFREG: "file", 0: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink"}


def _member(entry: c_void_p, opened: Opened) -> tuple[Member, Data]:
    with c.utf8():
        name = c.name(entry) or (c.name_w(entry) or "").encode("utf-8", "replace")
        hard, soft = c.hardlink(entry), c.symlink(entry)
    mode = c.mode(entry)
    kind: MemberKind = "hardlink" if hard else KINDS.get(stat.S_IFMT(mode), "device")
    size = c.size(entry) if c.sized(entry) else -1
    body = Data(opened, size if kind == "file" else -1, encrypted=c.encrypted(entry) == 1)
    member = Member(
        name=name,
        kind=kind,
        size=size,
        mtime=c.mtime(entry) * 1_000_000_000 + c.mtime_ns(entry) if c.timed(entry) else 0,
        owner=(c.owner(entry) or b"").decode("utf-8", "replace"),
        group=(c.group(entry) or b"").decode("utf-8", "replace"),
        mode=stat.S_IMODE(mode),
        target=hard or (soft or b"" if kind == "symlink" else b"device" if kind == "device" else b""),
        body=body if kind == "file" else None,
    )
    return member, body


def members(body: Reader, budget: Budget, *codes: int) -> Iterator[Member]:
    """Yield the members of an archive in one of the given formats. Raises UnnestError if reading cannot continue.

    The unread rest of a body is read and charged to the budget: in a solid archive it must be decompressed anyway.
    """
    opened, bad = Opened(body, codes), 0
    problem: UnnestError | None = None
    given = 0
    while bad < MAX_BAD:
        with c.utf8():
            result, entry = opened.header()
        if result == c.EOF:
            problem = problem or opened.raised
            break
        if result not in {c.OK, c.WARN}:
            problem = problem or opened.problem()
            bad = MAX_BAD if result == c.FATAL else bad + 1
            continue
        member, data = _member(entry, opened)
        given += 1
        yield member
        _drain(data, budget)
    if problem and codes == (c.SEVENZIP,):
        yield from _unread(body, codes, given, problem)
    if problem:
        raise problem


def _unread(body: Reader, codes: tuple[int, ...], given: int, problem: UnnestError) -> Iterator[Member]:
    """Yield the members behind a fatal error by their headers; reading any of them raises `problem`.

    Only for formats whose headers are read without decoding the bodies between them: nothing is decoded that is not charged.
    """
    if not (given and (file := sought(body))):
        return
    file.seek(0)
    opened = Opened(body, codes)
    for at in count():
        with c.utf8():
            result, entry = opened.header()
        if result not in {c.OK, c.WARN}:
            return
        if at >= given:
            member, _ = _member(entry, opened)
            yield member._replace(body=member.body and Failing(problem))


def _drain(data: Data, budget: Budget) -> None:
    try:
        while found := data.read(CHUNK):
            budget.spend(len(found))
    except (Damaged, Refused):
        # The reader of the body gets this error; the next header shows whether the archive continues.
        return
