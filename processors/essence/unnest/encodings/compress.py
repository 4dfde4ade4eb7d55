"""compress (`.Z`): LZW with codes of up to 16 bits, by libarchive.

The format has neither checksum nor end mark: a truncated file cannot be distinguished from a whole one. Files made with codes of
9 bits alone (`-b 9`) are refused: libarchive takes them for damaged.
"""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader, Refused
from processors.essence.formats.streams import peek
from processors.essence.unnest import Encoding
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c

MAGIC = b"\x1f\x9d"


def open_compress(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of a compressed file as a stream."""
    head, body = peek(body, 3)
    if head.startswith(MAGIC) and head[2:] and head[2] & 0x1F < 10:
        raise Refused("codes of 9 bits")
    return libarchive.Filtered(body, c.COMPRESS)


UNNESTER = Encoding(("Compressed",), "compress", {b".taz": b".tar", b".z": b""}, open_compress)
