"""ls-lR: the listing of a whole FTP tree in one file, as `ls -lR` writes it; plain, .gz, .bz2, .xz or .Z.

Strategy: the file is decompressed piece by piece within limits, and split into the sections of its directories. A section has the
lines of a LIST, so it is normalized as one (`ftp.py`), and replaces the listing of its directory.

Laws:
- A section whose directory is not below that of the file, or is named twice, or that has a line that is no entry, is left out: its
  directory has to be listed by the server.
- A file that is damaged, cut off or too large has no sections.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from processors.essence.listings.ftp import UNREADABLE, normalize
from processors.essence.listings.listing_format import MAX_CHILDREN

NAME = re.compile(rb"ls-lR(?:\.gz|\.bz2|\.xz|\.Z)?")
MAX_TEXT = 256 << 20
"""Maximum bytes of a decompressed file."""
MAX_DIRECTORIES = 250_000
MAX_SECTION = 64 << 20
"""Maximum bytes of one directory's lines; they may be as many as a listing may have children."""
MAX_LINE = 16_000
XZ_MEMORY = 128 << 20
STEP = 65_536


def sections(body: BinaryIO, name: bytes, base: bytes, now_ms: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield each directory, as a path relative to that of the file, with its listing in the normal form.

    `name`: of the file, with the suffix of its compression; `base`: path of its directory without slashes around it; `now_ms`: the
    time for dates without a year. Raises ValueError if the file is damaged or too large: then what was yielded does not count.
    """
    seen: set[bytes] = set()
    for header, lines in _split(_lines(_decoded(body, name))):
        directory = _relative(header, base)
        if directory is None or directory in seen:
            continue
        if len(seen) == MAX_DIRECTORIES:
            raise ValueError(f"more than {MAX_DIRECTORIES:,} directories")
        seen.add(directory)
        normal = normalize(lines, "LIST", now_ms)
        if not normal.startswith(UNREADABLE) and b"\n" + UNREADABLE not in normal:
            yield directory, normal


def _relative(header: bytes, base: bytes) -> bytes | None:
    """Return the path of a directory below that of the file; None: it is not below it, or no path."""
    if header.startswith(b"/"):
        top = b"/" + base + b"/" if base else b"/"
        if not (header.rstrip(b"/") + b"/").startswith(top):
            return None
        header = header[len(top) :]
    names = [name for name in header.rstrip(b"/").split(b"/") if name != b"."]
    return None if b".." in names or (b"" in names and names != [b""]) else b"/".join(names)


def _split(lines: Iterable[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield the header of each section without its colon, and its lines; a first section without a header is that of the file."""
    header, found, blank, size = b"", list[bytes](), True, 0
    for line in lines:
        if blank and line.endswith(b":"):
            if found or header:
                yield header, found
            header, found, size = line[:-1], [], 0
        elif line:
            found.append(line)
            size += len(line)
        blank = not line
        if len(found) > MAX_CHILDREN or size > MAX_SECTION:
            raise ValueError(f"more than {MAX_CHILDREN:,} lines, or {MAX_SECTION:,} bytes, of one directory")
    yield header, found


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest, size = b"", 0
    for piece in pieces:
        size += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        if size > MAX_TEXT or len(rest) > MAX_LINE:
            raise ValueError(f"more than {MAX_TEXT:,} bytes, or {MAX_LINE:,} in a line")
        yield from (line.removesuffix(b"\r") for line in whole)
    if rest:
        raise ValueError("cut off within a line")


# ---- compressions ----------------------------------------------------------------------------------------------------


def _decoded(body: BinaryIO, name: bytes) -> Iterator[bytes]:
    suffix = name.removeprefix(b"ls-lR")
    if suffix == b".Z":
        yield from _lzw(body)
    elif suffix == b".gz":
        yield from _members(body, lambda: zlib.decompressobj(31))
    elif suffix == b".bz2":
        yield from _members(body, bz2.BZ2Decompressor)
    elif suffix == b".xz":
        yield from _members(body, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY))
    else:
        while piece := body.read(STEP):
            yield piece


def _members(body: BinaryIO, new: Any) -> Iterator[bytes]:
    """Yield what consecutive members decode to, at most STEP bytes at a time."""
    decoder, data = new(), b""
    try:
        while data := data or body.read(STEP):
            if decoder.eof:
                decoder = new()
            yield decoder.decompress(data, STEP)
            if decoder.eof:
                data = decoder.unused_data
            elif hasattr(decoder, "unconsumed_tail"):
                data = decoder.unconsumed_tail
            else:
                data = b""
                while not decoder.needs_input and not decoder.eof:
                    yield decoder.decompress(b"", STEP)
                data = decoder.unused_data if decoder.eof else b""
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise ValueError(f"damaged: {error}") from error
    if not decoder.eof:
        raise ValueError("cut off")


def _lzw(body: BinaryIO) -> Iterator[bytes]:
    """Decode compress (`.Z`): LZW with codes of 9 up to 10 to 16 bits, least significant bit first, in groups of eight codes."""
    head = body.read(3)
    most, clears = (head[2] & 31, bool(head[2] & 128)) if len(head) == 3 else (0, False)
    if not head.startswith(b"\x1f\x9d") or not 10 <= most <= 16:
        raise ValueError("not a file of compress, or one with codes of 9 bits")
    table = _Table(257 if clears else 256)
    width, out = 9, bytearray()
    while group := body.read(width):
        number, bits = int.from_bytes(group, "little"), 8 * len(group)
        for at in range(0, bits - width + 1, width):
            code = number >> at & ((1 << width) - 1)
            # With a clearing of the table, or another width, a new group begins: the rest of this one is padding.
            if clears and code == 256:
                table, width = _Table(257), 9
                break
            out += table.decode(code, 1 << most)
            if table.size == 1 << width and width < most:
                width += 1
                break
        if len(out) >= STEP:
            yield bytes(out)
            out.clear()
    yield bytes(out)


class _Table:
    """The strings of LZW, each as the code of its prefix and its last byte: `size` codes are in use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._prefix = [0] * size
        self._last = bytearray(range(256)) + bytearray(size - 256)
        self._previous = -1
        self._first = 0

    def decode(self, code: int, most: int) -> bytes:
        """Return the string of the next code, and add one, up to `most`. Raises ValueError for an unknown code."""
        known, found = code, bytearray()
        if code >= self.size:
            if code > self.size or self._previous < 0:
                raise ValueError("damaged: an unknown code")
            found.append(self._first)
            known = self._previous
        while known >= 256:
            found.append(self._last[known])
            known = self._prefix[known]
        found.append(known)
        if self._previous >= 0 and self.size < most:
            self._prefix.append(self._previous)
            self._last.append(known)
            self.size += 1
        self._previous, self._first = code, known
        return bytes(reversed(found))
