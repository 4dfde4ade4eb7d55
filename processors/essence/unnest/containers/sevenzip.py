"""7z, by libarchive. Its directory is at the end: an archive within another file is first buffered as a whole.

Solid archives are decompressed, and charged to the budget, as a whole, whichever members are wanted.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import seekable
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c
from processors.essence.unnest.containers._appended import behind, find_appended

MAGIC = b"7z\xbc\xaf\x27\x1c"
START = struct.Struct("<6s2xIQQ4x")
"""Signature, version, checksum of the rest, and the offset, length and checksum of the directory."""


def open_sevenzip(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    with seekable(body, budget.limits, damaged=True) as file:
        place = find_appended(file) if file.read(len(MAGIC)) != MAGIC else None
        archive = behind(file, place.at if place and place.kind == "SevenZip" else 0)
        archive.seek(0)
        if lost := _lost(archive):
            raise Damaged(lost)
        yield from libarchive.members(archive, budget, c.SEVENZIP)


def _lost(file: BinaryIO) -> str:
    """Return why an archive has no directory, or ""; the start header states its place (7zFormat.txt, "SignatureHeader")."""
    start, size = file.read(START.size), file.seek(0, 2)
    file.seek(0)
    if len(start) < START.size:
        return "truncated: the start header ends early"
    magic, checksum, at, length = START.unpack(start)
    if magic != MAGIC:
        return "no 7z archive: its signature is missing, or this is a later part of a multi-volume archive"
    if checksum != zlib.crc32(start[-20:]):
        return "damaged start header: its checksum fails"
    end = START.size + at + length
    if end > size:
        return f"truncated, or the first part of a multi-volume archive: {size} of {end} bytes, the directory at the end is missing"
    return ""


UNNESTER = Container(("SevenZip",), open_sevenzip)
