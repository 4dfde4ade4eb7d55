"""libarchive by its C interface, as streams: what one of its filters gives, and the members of one of its formats.

Laws:
- One filter or one format is named, and what libarchive would undo beside it is refused: it would not be paid for.
- The body is read by a callback, CHUNK bytes at a time. What it raises is kept, and is what the reader of the archive gets.
- What libarchive says of an entry is the fault of that entry; what it says of the archive ends it, after the members before.
- Names are turned into UTF-8 whatever the locale of the process is.

libarchive-c finds and loads the library; its own reading is not used: it takes names as UTF-8 only, logs, and loses the bytes
that stood before an error.
"""

from __future__ import annotations

import ctypes
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_long, c_size_t, c_ssize_t, c_void_p, c_wchar_p
from typing import Any, BinaryIO

from libarchive import ffi

from processors.unnest import Budget, Damaged, Member, MemberKind, Reader, Refused, UnnestError
from processors.unnest._streams import CHUNK, sought

EOF, OK, WARN, FATAL = 1, 0, -20, -30
LZIP, COMPRESS, LZ4 = 9, 3, 13
"""Filters (archive.h)."""
RAW, ISO9660, CAB, LHA, RAR, RAR5, SEVENZIP = 0x90000, 0x40000, 0xC0000, 0xB0000, 0xD0000, 0x100000, 0xE0000
"""Formats (archive.h)."""
MAX_BAD = 100
"""Headers of one archive that may be unreadable before it is given up."""
ENCRYPTED = "ncrypt"
UNSUPPORTED = ("upport", "unavailable", "an't decompress", "Unknown")
"""What libarchive says of what it does not know; all else is damage."""

Archive = c_void_p
Callback = ctypes.CFUNCTYPE(c_ssize_t, c_void_p, c_void_p, POINTER(c_void_p))
Seek = ctypes.CFUNCTYPE(c_int64, c_void_p, c_void_p, c_int64, c_int)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    # By index: a function of our own, without the error checks (and the log) of libarchive-c.
    found = ffi.libarchive[name]
    found.argtypes, found.restype = arguments, result
    return found


_new = _function("archive_read_new", Archive)
_free = _function("archive_read_free", c_int, Archive)
_error = _function("archive_error_string", c_char_p, Archive)
_set_format = _function("archive_read_set_format", c_int, Archive, c_int)
_add_format = _function("archive_read_support_format_by_code", c_int, Archive, c_int)
_add_filter = _function("archive_read_support_filter_by_code", c_int, Archive, c_int)
_filters = _function("archive_filter_count", c_int, Archive)
_set_seek = _function("archive_read_set_seek_callback", c_int, Archive, Seek)
_open = _function("archive_read_open", c_int, Archive, c_void_p, c_void_p, Callback, c_void_p)
_header = _function("archive_read_next_header", c_int, Archive, POINTER(c_void_p))
_block = _function("archive_read_data_block", c_int, Archive, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_int64))
_name = _function("archive_entry_pathname", c_char_p, c_void_p)
_name_w = _function("archive_entry_pathname_w", c_wchar_p, c_void_p)
_symlink = _function("archive_entry_symlink", c_char_p, c_void_p)
_hardlink = _function("archive_entry_hardlink", c_char_p, c_void_p)
_mode = _function("archive_entry_mode", c_int, c_void_p)
_sized = _function("archive_entry_size_is_set", c_int, c_void_p)
_size = _function("archive_entry_size", c_int64, c_void_p)
_encrypted = _function("archive_entry_is_data_encrypted", c_int, c_void_p)
_timed = _function("archive_entry_mtime_is_set", c_int, c_void_p)
_mtime = _function("archive_entry_mtime", c_int64, c_void_p)
_mtime_ns = _function("archive_entry_mtime_nsec", c_long, c_void_p)
_owner = _function("archive_entry_uname", c_char_p, c_void_p)
_group = _function("archive_entry_gname", c_char_p, c_void_p)

_libc = ctypes.CDLL(None)
_libc.newlocale.restype = _libc.uselocale.restype = c_void_p
_libc.newlocale.argtypes, _libc.uselocale.argtypes = (c_int, c_char_p, c_void_p), (c_void_p,)
_UTF8 = _libc.newlocale(1, b"C.UTF-8", None)
"""LC_CTYPE_MASK; None where the system lacks this locale: then names are in that of the process."""


@contextmanager
def _utf8() -> Iterator[None]:
    """For libarchive, which takes the charset of names from the locale of the thread."""
    before = _libc.uselocale(_UTF8) if _UTF8 else None
    try:
        yield
    finally:
        if before:
            _libc.uselocale(before)


class Opened:
    """A stream that libarchive reads, of one format behind at most one filter."""

    def __init__(self, body: Reader, codes: tuple[int, ...], filtered: int = 0) -> None:
        self._body = body
        self._file: BinaryIO | None = sought(body)
        self._raised: UnnestError | None = None
        self._buffer = ctypes.create_string_buffer(CHUNK)
        # Kept: the library holds their addresses only.
        self._callbacks = (Callback(self._read), Seek(self._seek))
        self._archive = Archive(_new())
        # A warning: libarchive was built without it, and would start a program.
        if filtered and _add_filter(self._archive, filtered) != OK:
            raise Refused("libarchive was built without this compression")
        for code in codes:
            # What the others need of their stream they find out when they are asked whether they know it.
            self.checked((_set_format if code == RAW else _add_format)(self._archive, code))
        if self._file:
            _set_seek(self._archive, self._callbacks[1])
        self.checked(_open(self._archive, None, None, self._callbacks[0], None))
        # libarchive asks whether its filter fits until it does not; the last one is the stream itself.
        if filtered and (count := _filters(self._archive)) != 2:
            raise Refused("compressed more than once") if count > 2 else Damaged("no such compressed data")

    def __del__(self) -> None:
        _free(self._archive)

    def _read(self, _archive: int, _data: int, where: Any) -> int:
        try:
            data = self._body.read(CHUNK)
            ctypes.memmove(self._buffer, data, len(data))
            where[0] = ctypes.addressof(self._buffer)
            return len(data)
        except UnnestError as error:
            self._raised = error
        except Exception as error:  # noqa: BLE001 - nothing may pass through C code
            self._raised = Damaged(f"{type(error).__name__}: {error}")
        return FATAL

    def _seek(self, _archive: int, _data: int, offset: int, whence: int) -> int:
        try:
            return self._file.seek(offset, whence) if self._file else FATAL
        except (OSError, ValueError, OverflowError):
            return FATAL

    def problem(self) -> UnnestError:
        """What went wrong, as an error of ours."""
        if self._raised:
            return self._raised
        said = (_error(self._archive) or b"damaged").decode("utf-8", "replace")
        if ENCRYPTED in said:
            return Refused("encrypted")
        return Refused(said) if any(word in said for word in UNSUPPORTED) else Damaged(said)

    def checked(self, result: int) -> int:
        """The result of a call. Raises UnnestError unless it is OK, EOF or a warning."""
        if result >= OK or (result == WARN and not self._raised):
            return result
        raise self.problem()

    def header(self) -> tuple[int, c_void_p]:
        """What reading the next header gave, and the entry."""
        entry = c_void_p()
        return _header(self._archive, byref(entry)), entry

    def block(self) -> tuple[int, int, int, int]:
        """What reading the next block gave: the result, its address, its length and its offset in the file."""
        at, size, offset = c_void_p(), c_size_t(), c_int64()
        result = _block(self._archive, byref(at), byref(size), byref(offset))
        return result, at.value or 0, size.value, offset.value


class Data:
    """The body of an entry; holes are zeros. Raises UnnestError, and then does so again.

    `size`: what the entry says; -1: nothing. `encrypted`: it is refused before it is read.
    """

    def __init__(self, opened: Opened, size: int = -1, *, encrypted: bool = False) -> None:
        self._opened = opened
        self._size = size
        self._at = self._left = self._hole = self._given = 0
        self._end = encrypted
        self._error: UnnestError | None = Refused("encrypted") if encrypted else None

    def read(self, size: int, /) -> bytes:
        """At most CHUNK bytes: what libarchive holds stays there until it is asked for."""
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
        if result == OK and offset < self._given:
            self._error = Damaged("a body whose pieces overlap")
        elif result not in {OK, EOF}:
            # A warning on data is a checksum that fails.
            self._error = self._opened.problem()
        else:
            self._at, self._left, self._hole = at, size, max(offset - self._given, 0) if size else 0
        if result == EOF and self._given < self._size:
            # What goes on in another volume ends so.
            self._error = Damaged("truncated: the body ends early")
        self._end = result == EOF or self._error is not None
        if self._end:
            self._left = self._hole = 0


class Filtered:
    """What a compressed stream gives; it is opened when first read."""

    def __init__(self, body: Reader, code: int) -> None:
        self._body = body
        self._code = code
        self._data: Data | None = None
        self._error: UnnestError | None = None

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        if self._error:
            raise self._error
        try:
            self._data = self._data or self._open()
        except UnnestError as error:
            self._error = error
            raise
        return self._data.read(size)

    def _open(self) -> Data:
        opened = Opened(self._body, (RAW,), self._code)
        opened.checked(opened.header()[0])
        return Data(opened)


KINDS: dict[int, MemberKind] = {stat.S_IFREG: "file", 0: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink"}


def _member(entry: c_void_p, opened: Opened) -> tuple[Member, Data]:
    with _utf8():
        name = _name(entry) or (_name_w(entry) or "").encode("utf-8", "replace")
        hard, soft = _hardlink(entry), _symlink(entry)
    mode = _mode(entry)
    kind: MemberKind = "hardlink" if hard else KINDS.get(stat.S_IFMT(mode), "device")
    size = _size(entry) if _sized(entry) else -1
    body = Data(opened, size if kind == "file" else -1, encrypted=_encrypted(entry) == 1)
    member = Member(
        name=name,
        kind=kind,
        size=size,
        mtime=_mtime(entry) * 1_000_000_000 + _mtime_ns(entry) if _timed(entry) else 0,
        owner=(_owner(entry) or b"").decode("utf-8", "replace"),
        group=(_group(entry) or b"").decode("utf-8", "replace"),
        mode=stat.S_IMODE(mode),
        target=hard or (soft or b"" if kind == "symlink" else b"device" if kind == "device" else b""),
        body=body if kind == "file" else None,
    )
    return member, body


def members(body: Reader, budget: Budget, *codes: int) -> Iterator[Member]:
    """The members of an archive of one of some formats. Raises UnnestError where it cannot be read on.

    What a reader left of a body is read and paid for: in a solid archive it must be decompressed all the same.
    """
    opened, bad = Opened(body, codes), 0
    problem: UnnestError | None = None
    while bad < MAX_BAD:
        with _utf8():
            result, entry = opened.header()
        if result == EOF:
            break
        if result not in {OK, WARN}:
            problem = problem or opened.problem()
            bad = MAX_BAD if result == FATAL else bad + 1
            continue
        member, data = _member(entry, opened)
        yield member
        _drain(data, budget)
    if problem:
        raise problem


def _drain(data: Data, budget: Budget) -> None:
    try:
        while found := data.read(CHUNK):
            budget.spend(len(found))
    except (Damaged, Refused):
        # Told to whoever read the body; whether the archive goes on, its next header says.
        return
