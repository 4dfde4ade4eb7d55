"""Archives behind other bytes: a program that extracts itself, a script, padding.

A zip is found by its end record; 7z and RAR by their signatures, whose header checksums are verified: a program that reads archives
has the signatures in it, too.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import BinaryIO, Literal, NamedTuple, cast

from processors.essence.formats import zip_directory
from processors.essence.formats.container import Damaged

SEARCHED = 4 << 20
"""Bytes at the start of a file in which signatures are searched (unrar: MAXSFXSIZE)."""
MAX_TRIES = 100
"""Maximum number of signatures that are verified."""
SEVENZIP, RAR4, RAR5 = b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\7\0", b"Rar!\x1a\7\1\0"


class Place(NamedTuple):
    """Where an archive begins."""

    kind: Literal["Zip", "SevenZip", "Rar"]
    at: int


class Behind(io.RawIOBase):
    """A file from a position on."""

    def __init__(self, file: BinaryIO, at: int) -> None:
        super().__init__()
        self._file = file
        self._start = at
        file.seek(at)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read the next bytes into a buffer, and return their number."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position, and return it. Raises ValueError for one before the start."""
        if whence == 0 and offset < 0:
            raise ValueError("a position before the start")
        return max(0, self._file.seek(offset + self._start if whence == 0 else offset, whence) - self._start)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell() - self._start


def behind(file: BinaryIO, at: int) -> BinaryIO:
    """Return a file from a position on, as a file."""
    return cast("BinaryIO", Behind(file, at)) if at else file


def find_appended(file: BinaryIO) -> Place | None:
    """Find an archive in a file of another type; None if there is none."""
    if find_zip(file):
        return Place("Zip", 0)
    file.seek(0)
    data, at = file.read(SEARCHED), 0
    for _ in range(MAX_TRIES):
        found = [place for place in (data.find(SEVENZIP, at), data.find(RAR4[:-1], at)) if place >= 0]
        if not found:
            break
        at = min(found)
        if _is_sevenzip(data[at : at + 32]):
            return Place("SevenZip", at)
        if _is_rar(data[at : at + 4_096]):
            return Place("Rar", at)
        at += 1
    return None


def find_zip(file: BinaryIO) -> bool:
    """Whether a zip with members ends the file."""
    try:
        found = zip_directory.find(file, zip_directory.MAX_COMMENT)
        return next(zip_directory.entries(file, found), None) is not None
    except Damaged:
        return False


def _is_sevenzip(head: bytes) -> bool:
    return head.startswith(SEVENZIP) and len(head) == 32 and zlib.crc32(head[12:]) == int.from_bytes(head[8:12], "little")


def _is_rar(head: bytes) -> bool:
    """Whether the first header behind the signature has a correct checksum: 16 bits of one in RAR 4, 32 in RAR 5."""
    if head.startswith(RAR4) and len(head) >= 20:
        checksum, kind, _, size = struct.unpack_from("<HBHH", head, 7)
        return bool(kind == 0x73 and 13 <= size <= 64 and zlib.crc32(head[9:20]) & 0xFFFF == checksum)
    if not head.startswith(RAR5) or len(head) < 20:
        return False
    # The size of the first header is a number of one byte in all known archives.
    size = head[12]
    return size < 0x80 and zlib.crc32(head[12 : 13 + size]) == int.from_bytes(head[8:12], "little")
