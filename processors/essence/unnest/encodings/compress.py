"""compress (`.Z`): LZW with codes of up to 16 bits, by libarchive.

It has neither checksum nor mark of its end: what was cut off cannot be told from what is whole. What was made with codes of
9 bits alone (`-b 9`) is refused: libarchive takes it for damaged.
"""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader, Refused
from processors.essence.formats.streams import peek
from processors.essence.unnest import Encoding
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c

MAGIC = b"\x1f\x9d"


def open_compress(body: Reader, budget: Budget) -> Reader:
    """What a compressed file holds, as a stream."""
    head, body = peek(body, 3)
    if head.startswith(MAGIC) and head[2:] and head[2] & 0x1F < 10:
        raise Refused("codes of 9 bits")
    return libarchive.Filtered(body, c.COMPRESS)


UNNESTER = Encoding(("Compressed",), "compress", {b".taz": b".tar", b".z": b""}, open_compress)
