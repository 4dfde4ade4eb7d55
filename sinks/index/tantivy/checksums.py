"""Verification of the checksums of a tantivy index's files, to find damage on the disk.

The engine ends each file of a segment with a footer (tantivy, `directory/footer.rs`): JSON with the CRC-32 of all before it, the
length of that JSON and a magic number, both 32 bits, little endian. It verifies the sum only on request, which its Python
binding cannot make; so a flipped bit shows only when a search reads it, as an error or as a wrong answer.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from sinks.index.tantivy.folder import META

MAGIC = 1337
TAIL = 8
"""Size in bytes of length and magic number."""
LONGEST = 1_000
"""Maximum size of a footer's JSON in bytes; it usually has 80."""
STEP = 1 << 20


def damage(path: Path) -> str:
    """Return the first damage in the files of an index's last commit, or "". Reads them whole. Raises OSError."""
    for file in _committed(path):
        # A concurrent writer may have merged it away.
        with suppress(FileNotFoundError), open(file, "rb") as stream:
            if wrong := _wrong(stream):
                return f"{file.name}: {wrong}"
    return ""


def _committed(path: Path) -> Iterator[Path]:
    """Iterate over the existing files of the last commit; files that a writer is making have no footer yet."""
    segments = json.loads((path / META).read_bytes())["segments"]
    names = {segment["segment_id"].replace("-", ""): segment.get("deletes") for segment in segments}
    for file in sorted(path.iterdir()):
        name, *rest = file.name.split(".")
        deletes = names.get(name)
        if name in names and (rest[-1:] != ["del"] or (deletes and rest[0] == str(deletes["opstamp"]))):
            yield file


def _wrong(stream: BinaryIO) -> str:
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(0, size - TAIL))
    tail = stream.read(TAIL)
    length, magic = int.from_bytes(tail[:4], "little"), int.from_bytes(tail[4:], "little")
    body = size - TAIL - length
    if magic != MAGIC or length > LONGEST or body < 0:
        return "cut short, or not a file of the engine"
    stream.seek(body)
    try:
        expected = json.loads(stream.read(length))["crc"]
    except (ValueError, KeyError, TypeError):
        return "its footer is damaged"
    stream.seek(0)
    found, left = 0, body
    while left and (piece := stream.read(min(STEP, left))):
        found, left = zlib.crc32(piece, found), left - len(piece)
    return "" if found == expected else "its checksum is wrong"
