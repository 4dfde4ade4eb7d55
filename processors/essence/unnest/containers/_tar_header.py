"""Blocks of a tar (POSIX.1-2017, pax; the GNU tar manual, "Basic Tar Format" and "Storing Sparse Files"): bytes to values."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from processors.essence.formats.container import Damaged, Reader
from processors.essence.formats.streams import CHUNK, Slice, exact, need

BLOCK = 512
MAX_SEGMENTS = 100_000
"""Maximum number of pieces of a sparse file; more count as damage."""

Segments = Sequence[tuple[int, int]]
"""Pieces of a sparse file that contain data: offset and length in bytes."""


class Header(NamedTuple):
    """Fields of one header block."""

    name: bytes
    mode: int
    owner: str
    group: str
    size: int
    mtime: int
    """Seconds since the epoch."""
    kind: bytes
    target: bytes
    device: tuple[int, int]
    sparse: Segments
    extended: bool
    """Whether blocks with more pieces of a sparse file follow."""
    real: int
    """Size of a sparse file in bytes, with its holes."""


def number(field: bytes) -> int:
    """Parse a numeric field: octal digits, or base 256 if the first bit is set (GNU). Raises Damaged."""
    try:
        # The usual case: digits, then NULs or spaces.
        return int(field.rstrip(b"\0 "), 8)
    except ValueError:
        return _unusual(field)


def _unusual(field: bytes) -> int:
    if field[0] & 0x80:
        bits = int.from_bytes(field, "big", signed=False) - (0x80 << 8 * (len(field) - 1))
        return bits - (1 << (8 * len(field) - 1)) if field[0] & 0x40 else bits
    digits = field.partition(b"\0")[0].strip(b" \0")
    try:
        return int(digits, 8) if digits else 0
    except ValueError:
        raise Damaged("damaged header: no number where one belongs") from None


def text(field: bytes) -> bytes:
    """Return a text field up to its NUL."""
    return field.partition(b"\0")[0]


def checked(block: bytes) -> bool:
    """Whether the checksum of a header is correct, as POSIX defines it, or with signed bytes, as some old tars computed it."""
    try:
        stated = number(block[148:156])
    except Damaged:
        return False
    plain = _sum(block) - sum(block[148:156]) + 8 * 32
    if stated == plain:
        return True
    signed = sum(1 for byte in block[:148] + block[156:] if byte > 127)
    return bool(stated == plain - 256 * signed)


def _sum(block: bytes) -> int:
    """Return the sum of the bytes: the lower half of Adler-32 (RFC 1950, 8.2), if many are zero: the modulus has no effect then."""
    return (zlib.adler32(block) & 0xFFFF) - 1 if block.count(0) > BLOCK - 65_520 // 255 else sum(block)


def _user(name: bytes, number_field: bytes) -> str:
    if name:
        return name.decode("utf-8", "replace")
    try:
        return str(number(number_field))
    except Damaged:
        return ""


@lru_cache(maxsize=256)
def _owned(numbers: bytes, ustar: bytes) -> tuple[int, str, str]:
    """Return mode, owner and group from the 24 bytes at the mode and the 72 bytes at the magic. Cached: most members share them.

    Raises Damaged.
    """
    named = ustar.startswith(b"ustar")
    owner = _user(text(ustar[8:40]) if named else b"", numbers[8:16])
    return number(numbers[:8]) & 0o7777, owner, _user(text(ustar[40:72]) if named else b"", numbers[16:24])


def _prefix(block: bytes) -> bytes:
    """Return the leading part of a long name: in ustar only, since GNU and star store other data there."""
    if block[257:263] != b"ustar\0":
        return b""
    return text(block[345:476] if block[508:512] == b"tar\0" else block[345:500])


def pairs(data: bytes, count: int) -> tuple[tuple[int, int], ...]:
    """Parse up to `count` pairs of offset and length, 12 bytes per number, ending at the first empty pair."""
    found = ((data[at : at + 12], data[at + 12 : at + 24]) for at in range(0, 24 * count, 24))
    return tuple((number(offset), number(length)) for offset, length in found if offset.strip(b"\0") and length.strip(b"\0"))


def parse(block: bytes) -> Header:
    """Parse a header whose checksum is correct. Raises Damaged."""
    kind, name, prefix = block[156:157], text(block[:100]), _prefix(block)
    gnu_sparse = kind == b"S"
    device = (number(block[329:337]), number(block[337:345])) if kind in (b"3", b"4") else (0, 0)
    size = number(block[124:136])
    if size < 0:
        raise Damaged("damaged header: a negative size")
    mode, owner, group = _owned(block[100:124], block[257:329])
    return Header(
        prefix + b"/" + name if prefix else name,
        mode,
        owner,
        group,
        size,
        number(block[136:148]),
        kind,
        text(block[157:257]),
        device,
        pairs(block[386:482], 4) if gnu_sparse else (),
        gnu_sparse and bool(block[482]),
        number(block[483:495]) if gnu_sparse else size,
    )


def more_segments(reader: Reader, known: Segments) -> Segments:
    """Return the pieces of a sparse file with those in the blocks that follow its header. Raises Damaged."""
    found = list(known)
    more = True
    while more:
        block = need(reader, BLOCK, "the map of a sparse file ends early")
        found += pairs(block, 21)
        more = bool(block[504])
        if len(found) > MAX_SEGMENTS:
            raise Damaged(f"a sparse file of more than {MAX_SEGMENTS} pieces")
    return found


def pax_records(data: bytes) -> list[tuple[bytes, bytes]]:
    """Parse the records of an extended header: "LENGTH KEY=VALUE" and a line feed. Raises Damaged."""
    found, at = [], 0
    while at < len(data) and data[at]:
        space = data.find(b" ", at, at + 20)
        digits = data[at:space]
        if space < 0 or not digits.isdigit():
            raise Damaged("damaged extended header")
        end = at + int(digits)
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        if not equals or end > len(data) or data[end - 1 : end] != b"\n":
            raise Damaged("damaged extended header")
        found.append((key, value))
        at = end
    return found


def decimal(digits: bytes) -> int:
    """Parse a number of an extended header; a fraction is cut off. Raises Damaged."""
    try:
        return int(digits[:32].partition(b".")[0] or b"0")
    except ValueError:
        raise Damaged("damaged extended header: no number where one belongs") from None


def size(digits: bytes) -> int:
    """Parse a size of an extended header. Raises Damaged."""
    found = decimal(digits)
    if found < 0:
        raise Damaged("damaged extended header: a negative size")
    return found


def nanoseconds(digits: bytes) -> int:
    """Convert a time of an extended header (seconds with a fraction) to nanoseconds; 0 if malformed: nothing depends on it."""
    try:
        seconds = decimal(digits)
    except Damaged:
        return 0
    fraction = digits[:40].partition(b".")[2][:9]
    rest = int(fraction.ljust(9, b"0")) if fraction.isdigit() else 0
    return seconds * 1_000_000_000 + (-rest if digits.startswith(b"-") else rest)


def pax_segments(records: Sequence[tuple[bytes, bytes]]) -> Segments:
    """Parse the map of a sparse file in pax 0.0 (pairs of records) or 0.1 (one list). Raises Damaged."""
    listed = dict(records).get(b"GNU.sparse.map")
    if listed is not None:
        numbers = [decimal(n) for n in listed.split(b",", 2 * MAX_SEGMENTS) if n]
    else:
        numbers = [decimal(v) for k, v in records if k in (b"GNU.sparse.offset", b"GNU.sparse.numbytes")]
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def data_segments(body: Slice) -> Segments:
    """Read the map of a sparse file in pax 1.0: at the start of the data, in whole blocks. Raises Damaged."""
    lines = _lines(body)
    count = next(lines)
    if not 0 <= count <= MAX_SEGMENTS:
        raise Damaged(f"a sparse file of more than {MAX_SEGMENTS} pieces")
    return [(next(lines), next(lines)) for _ in range(count)]


def _lines(body: Slice) -> Iterator[int]:
    """Yield numbers, one per line, without end. Raises Damaged."""
    buffer = b""
    while True:
        while b"\n" not in buffer:
            if len(buffer) > BLOCK:
                raise Damaged("damaged map of a sparse file")
            buffer += need(body, BLOCK, "the map of a sparse file ends early")
        line, _, buffer = buffer.partition(b"\n")
        yield decimal(line)


class Sparse:
    """A sparse file as a stream: its pieces, with zeros between them. Raises Damaged if the map is invalid."""

    def __init__(self, body: Slice, segments: Segments, size: int) -> None:
        self._body = body
        self._segments: Iterator[tuple[int, int]] = iter((*segments, (size, 0)))
        self._at = 0
        self._hole = 0
        self._left = 0
        self._size = size

    def read(self, size: int, /) -> bytes:
        while not (self._hole or self._left):
            piece = next(self._segments, None)
            if piece is None:
                return b""
            offset, length = piece
            if offset < self._at or length < 0 or offset + length > self._size:
                # The piece remains the next one, so that a failed stream fails again.
                self._segments = itertools.chain((piece,), self._segments)
                raise Damaged("damaged map of a sparse file")
            self._hole, self._left, self._at = offset - self._at, length, offset + length
        size = min(size, CHUNK, self._hole or self._left)
        if self._hole:
            self._hole -= size
            return bytes(size)
        data = exact(self._body, size)
        if not data:
            raise Damaged("truncated: a sparse file has less data than its map says")
        self._left -= len(data)
        return data
