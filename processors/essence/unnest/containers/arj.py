"""ARJ (R. Jung's technical note): stored files, methods 1 to 3 (those of LHA by another name) and method 4, which is its own.

Headers and contents have checksums, which are verified. Of a file that continues in another volume, the present part is given.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from processors.essence.formats.container import Budget, Damaged, Member, Reader, Refused, UnnestError
from processors.essence.formats.streams import CHUNK, Slice, need
from processors.essence.formats.zip_names import charset_of
from processors.essence.unnest import Container
from processors.essence.unnest.containers._lzh import LH7, Lzh

MAGIC = b"\x60\xea"
FIXED, MAX_HEADER = 30, 2_600
"""Bytes of a header: the part common to all versions, and the maximum."""
GARBLED, CONTINUES, CONTINUED, SLASHES = 0x01, 0x04, 0x08, 0x10
STORED, FASTEST = 0, 4
MAIN, FOLDER, FILES = 2, 3, (0, 1)
UNIX = (2, 8)
"""Host systems with Unix times and modes."""
WINDOW, THRESHOLD = 32_768, 3
"""Method 4: maximum distance of a match in bytes, and minimum length of a match."""
AT_ONCE = 8_192


class _Head(NamedTuple):
    system: int
    flags: int
    method: int
    kind: int
    time: int
    packed: int
    size: int
    crc: int
    mode: int
    name: bytes


class _Fastest:
    """Decoded data of method 4, whose codes are runs of ones followed by numbers. Raises Damaged."""

    def __init__(self, reader: Reader, size: int) -> None:
        self._reader = reader
        self._left = size
        self._data = b""
        self._at = self._bits = self._have = 0
        self._out = bytearray()
        self._given = 0

    def read(self, size: int, /) -> bytes:
        if self._given == len(self._out):
            del self._out[:-WINDOW]
            self._given = len(self._out)
            self._decode()
        data = bytes(self._out[self._given : self._given + size])
        self._given += len(data)
        return data

    def _decode(self) -> None:
        out, start = self._out, len(self._out)
        while self._left > 0 and len(out) - start < AT_ONCE:
            code = self._number(0, 7)
            if not code:
                out.append(self._take(8))
                self._left -= 1
                continue
            length = min(code - 1 + THRESHOLD, self._left)
            back = self._number(9, 13) + 1
            if back > len(out):
                raise Damaged("a match before the beginning")
            piece = out[len(out) - back : len(out) - back + length]
            out += (piece * -(-length // len(piece)))[:length]
            self._left -= length

    def _number(self, width: int, most: int) -> int:
        """Read a number: each preceding one bit adds a bit to its width, and places it above all numbers of smaller width."""
        above = 0
        while width < most and self._take(1):
            above += 1 << width
            width += 1
        return above + (self._take(width) if width else 0)

    def _take(self, count: int) -> int:
        while self._have < count:
            if self._at == len(self._data):
                self._data, self._at = self._reader.read(CHUNK), 0
                if not self._data:
                    raise Damaged("truncated: the compressed data end early")
            self._bits = self._bits << 8 | self._data[self._at]
            self._at += 1
            self._have += 8
        self._have -= count
        found = self._bits >> self._have
        self._bits &= (1 << self._have) - 1
        return found


class _Body:
    """Content of a file; opened at the first read. Raises Damaged, Refused."""

    def __init__(self, head: _Head, packed: Slice) -> None:
        self._head = head
        self._packed = packed
        self._reader: Reader | None = None
        self._crc = self._size = 0
        self._error: UnnestError | None = None

    def _open(self) -> Reader:
        head = self._head
        if head.flags & GARBLED:
            raise Refused("encrypted")
        if head.method == STORED:
            return self._packed
        if head.method == FASTEST:
            return _Fastest(self._packed, head.size)
        if head.method < FASTEST:
            return Lzh(self._packed, head.packed, head.size, LH7)
        raise Refused(f"compression method {head.method} is not known")

    def read(self, size: int, /) -> bytes:
        if self._error:
            raise self._error
        try:
            return self._next(size)
        except UnnestError as error:
            self._error = error
            raise

    def _next(self, size: int) -> bytes:
        self._reader = self._reader or self._open()
        data = self._reader.read(min(size, CHUNK))
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        if self._size > self._head.size or (not data and self._size < self._head.size):
            raise Damaged("its length is not what its header says")
        if not data and self._crc != self._head.crc:
            raise Damaged("its checksum fails")
        if not data and self._head.flags & (CONTINUES | CONTINUED):
            raise Damaged("truncated: the rest is in another volume")
        return data


def _header(body: Reader) -> _Head | None:
    """Read the next header; None at the end. Raises Damaged."""
    if need(body, 2, "a header is missing") != MAGIC:
        raise Damaged("damaged: no header where one belongs")
    size = int.from_bytes(need(body, 2, "a header ends early"), "little")
    if not size:
        return None
    if not FIXED <= size <= MAX_HEADER:
        raise Damaged("damaged header")
    data = need(body, size, "a header ends early")
    if zlib.crc32(data) != int.from_bytes(need(body, 4, "a header ends early"), "little"):
        raise Damaged("damaged header: its checksum fails")
    while more := int.from_bytes(need(body, 2, "a header ends early"), "little"):
        need(body, more + 4, "a header ends early")
    first, _, _, system, flags, method, kind, _, time, packed, full, crc, _, mode, _ = struct.unpack_from("<8B4I3H", data)
    name = data[max(first, FIXED) :].partition(b"\0")[0]
    return _Head(system, flags, method, kind, time, packed, full, crc, mode, name)


def _mtime(head: _Head) -> int:
    """Return the time of the last change in nanoseconds since the epoch; a DOS time is read as UTC; 0: unknown."""
    if head.system in UNIX:
        return head.time * 1_000_000_000
    date, time = head.time >> 16, head.time & 0xFFFF
    try:
        when = datetime(
            1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, min(time % 32 * 2, 59), tzinfo=UTC
        )
    except ValueError:
        return 0
    return int(when.timestamp()) * 1_000_000_000


def _name(head: _Head) -> bytes:
    """Return a name in UTF-8 with slashes; a name that is not UTF-8 is in the charset of the machine, which is guessed."""
    try:
        text = head.name.decode()
    except UnicodeDecodeError:
        if head.system in UNIX:
            return head.name
        # A backslash may be half a character: it is one only after decoding.
        text = head.name.decode(charset_of([head.name]), "replace")
    return (text if head.flags & SLASHES or head.system in UNIX else text.replace("\\", "/")).encode()


def open_arj(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises Damaged."""
    main = _header(body)
    if main is None or main.kind != MAIN:
        raise Damaged("no ARJ archive")
    while head := _header(body):
        packed = Slice(body, head.packed)
        file = head.kind in FILES
        # Other entries (labels, chapters) are skipped.
        if file or head.kind == FOLDER:
            yield Member(
                name=_name(head),
                kind="file" if file else "folder",
                size=head.size if file else -1,
                mtime=_mtime(head),
                mode=head.mode & 0o777 if head.system in UNIX else 0,
                body=_Body(head, packed) if file else None,
            )
        packed.drain()


UNNESTER = Container(("Arj",), open_arj)
