"""Headers of RAR 1.5 to 5 (RARLAB, technote.txt and "RAR 5.0 archive format"), collected while the archive is read as a stream.

libarchive ends an archive at the first encrypted header or unknown method. The headers state the names behind it, and which part of
a multi-volume archive this is. Nothing is decompressed; a header that is not valid ends the list.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator
from typing import NamedTuple

from processors.essence.formats.container import Reader

OLD, NEW = b"Rar!\x1a\7\0", b"Rar!\x1a\7\1\0"
MAX_HEADS, MAX_NAMES, MAX_HEAD = 100_000, 8 << 20, 1 << 21
"""Maximum number of files, bytes of their names, and bytes of one header."""
MAIN4, FILE4, SERVICE4, END4 = 0x73, 0x74, 0x7A, 0x7B
MAIN5, FILE5, SERVICE5, CRYPT5, END5 = 1, 2, 3, 4, 5

Steps = Generator[int, bytes, None]
"""Yields the number of bytes that it needs next; a negative number: bytes to pass over."""


class Head(NamedTuple):
    """What the header of a file states."""

    name: bytes
    size: int
    folder: bool
    encrypted: bool


class Headers:
    """A stream whose RAR headers are collected as its bytes pass."""

    def __init__(self, body: Reader) -> None:
        self._body = body
        self._steps: Steps | None = self._parse()
        self._want = next(self._steps)
        self._buffer = bytearray()
        self._names = 0
        self._modern = False
        """Whether it is RAR 5."""
        self.found: list[Head] = []
        """Files and folders in the order of the archive."""
        self.hidden = False
        """Whether the headers are encrypted."""
        self.volume = False
        """Whether this is a part of a multi-volume archive."""
        self.number = 0
        """Number of the part, from 1; 0: not stated."""
        self.before = self.behind = False
        """Whether parts before it, and behind it, are missing."""
        self.ended = False
        """Whether the end of the archive was reached."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        data = self._body.read(size)
        self._feed(memoryview(data))
        return data

    def cut(self) -> bool:
        """Whether the bytes ended within a header or its data, or before the end that every archive of RAR 5 has."""
        return self._steps is not None and not self.hidden and (self._modern or self._want < 0 or len(self._buffer) > 0)

    def part(self) -> str:
        """Return which part of a multi-volume archive this is and what is missing; "" for a whole archive."""
        if not (self.volume and (self.before or self.behind)):
            return ""
        lost = " and ".join(["the parts before it"] * self.before + ["the parts after it"] * self.behind)
        return f"part {self.number or '?'} of a multi-volume archive: {lost} are missing"

    def _feed(self, data: memoryview) -> None:
        while self._steps and len(data):
            if self._want < 0:
                step = min(-self._want, len(data))
                self._want += step
            else:
                step = min(self._want - len(self._buffer), len(data))
                self._buffer += data[:step]
            data = data[step:]
            if self._want == len(self._buffer) or not self._want:
                self._advance()

    def _advance(self) -> None:
        taken, self._buffer = bytes(self._buffer), bytearray()
        try:
            while not (want := self._steps.send(taken) if self._steps else 0):
                taken = b""
            self._want = want
        except (StopIteration, struct.error, IndexError):
            self._steps = None

    def _parse(self) -> Steps:
        start = yield len(OLD)
        if start == OLD:
            yield from self._old()
        elif start + (yield 1) == NEW:
            self._modern = True
            yield from self._new()

    def _add(self, head: Head, *, before: bool, behind: bool) -> bool:
        self.before |= before and not self.found
        self.behind |= behind
        self.found.append(head)
        self._names += len(head.name)
        return len(self.found) < MAX_HEADS and self._names < MAX_NAMES

    # ---- RAR 1.5 to 4 --------------------------------------------------------------------------------------------

    def _old(self) -> Steps:
        while True:
            start = yield 7
            checksum, kind, flags, size = struct.unpack("<HBHH", start)
            if size < len(start):
                return
            rest = (yield size - len(start)) if size > len(start) else b""
            if checksum != zlib.crc32(start[2:] + rest) & 0xFFFF and kind not in (MAIN4, END4):
                return
            packed = int.from_bytes(rest[:4], "little") if flags & 0x8000 or kind in (FILE4, SERVICE4) else 0
            if kind == MAIN4:
                self.volume, self.hidden = bool(flags & 1), bool(flags & 0x80)
                self.number = int(bool(flags & 0x100))
                self.before = self.volume and not self.number
            elif kind in (FILE4, SERVICE4):
                packed += int.from_bytes(rest[25:29], "little") << 32 if flags & 0x100 else 0
                if kind == FILE4 and not self._add(_old_file(flags, rest), before=bool(flags & 1), behind=bool(flags & 2)):
                    return
            elif kind == END4:
                self._old_end(flags, rest)
            if self.hidden or kind == END4:
                return
            if packed:
                yield -packed

    def _old_end(self, flags: int, rest: bytes) -> None:
        self.ended, self.behind = True, bool(flags & 1)
        at = 4 if flags & 2 else 0
        if flags & 8 and len(rest) >= at + 2:
            self.number = int.from_bytes(rest[at : at + 2], "little") + 1

    # ---- RAR 5 ---------------------------------------------------------------------------------------------------

    def _new(self) -> Steps:
        while True:
            checksum, size, digits = (yield 4), 0, b""
            while not digits or digits[-1] & 0x80:
                digits += yield 1
                if len(digits) > 3:
                    return
            size = _Numbers(digits).next()
            if not 0 < size <= MAX_HEAD:
                return
            data = yield size
            if zlib.crc32(digits + data) != int.from_bytes(checksum, "little"):
                return
            numbers = _Numbers(data)
            kind, flags = numbers.next(), numbers.next()
            extra = numbers.next() if flags & 1 else 0
            packed = numbers.next() if flags & 2 else 0
            if not self._new_block(kind, flags, numbers, data[len(data) - extra :] if extra else b""):
                return
            if packed:
                yield -packed

    def _new_block(self, kind: int, flags: int, numbers: _Numbers, extra: bytes) -> bool:
        """Record a block; return whether the list goes on behind it."""
        if kind == MAIN5:
            said = numbers.next()
            self.volume = bool(said & 1)
            self.number = numbers.next() + 1 if said & 2 else int(self.volume)
            self.before = self.number > 1
        elif kind == FILE5:
            return self._add(_new_file(numbers, extra), before=bool(flags & 8), behind=bool(flags & 16))
        elif kind == CRYPT5:
            self.hidden = True
        elif kind == END5:
            self.ended, self.behind = True, bool(numbers.next() & 1)
        return kind not in (CRYPT5, END5)


class _Numbers:
    """Numbers of variable length: seven bits for each byte, the lowest first. Raises IndexError at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def next(self) -> int:
        found = shift = 0
        while shift < 70:
            byte = self.data[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
            shift += 7
        return found


def _new_file(numbers: _Numbers, extra: bytes) -> Head:
    flags, size = numbers.next(), numbers.next()
    numbers.next()
    numbers.at += 4 * bool(flags & 2) + 4 * bool(flags & 4)
    numbers.next()
    numbers.next()
    length = numbers.next()
    records, encrypted = _Numbers(extra), False
    while records.at < len(extra):
        end = records.next() + records.at
        encrypted |= records.next() == 1
        records.at = max(end, records.at)
    return Head(numbers.data[numbers.at : numbers.at + length], -1 if flags & 8 else size, bool(flags & 1), encrypted)


def _old_file(flags: int, rest: bytes) -> Head:
    size, length = int.from_bytes(rest[4:8], "little"), int.from_bytes(rest[19:21], "little")
    at = 33 if flags & 0x100 else 25
    size += int.from_bytes(rest[29:33], "little") << 32 if flags & 0x100 else 0
    raw, _, packed = rest[at : at + length].partition(b"\0")
    name = _unicode(raw, packed) if flags & 0x200 and packed else raw
    return Head(name.replace(b"\\", b"/"), size, flags & 0xE0 == 0xE0, bool(flags & 4))


def _unicode(raw: bytes, packed: bytes) -> bytes:
    """Return a name in UTF-8 whose UTF-16 is stored as the difference to its 8-bit form (unrar, `EncodeFileName::Decode`)."""
    out, data, at, flags, bits = bytearray(), packed[1:], 0, 0, 0
    high = packed[0]
    while at < len(data) and len(out) < 2 * MAX_HEAD:
        if not bits:
            flags, bits, at = data[at], 8, at + 1
        bits -= 2
        kind, here = flags >> bits & 3, len(out) // 2
        step = data[at : at + kind + (kind == 0)] if kind < 3 else data[at : at + 1]
        if not step:
            break
        at += len(step)
        if kind == 3:
            fix = data[at : at + 1] if step[0] & 0x80 else b""
            at += len(fix)
            for byte in raw[here : here + (step[0] & 0x7F) + 2]:
                out += bytes((byte + fix[0] & 0xFF, high)) if fix else bytes((byte, 0))
        else:
            out += step if kind == 2 else step + (bytes((high,)) if kind else b"\0")
    return out.decode("utf-16-le", "replace").encode()
