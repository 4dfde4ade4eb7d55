"""gzip (RFC 1952), as many members one after the other as there are; their checksums are held against the data.

What follows the last member (zeros of a tape, garbage) is passed over, as gzip does.
"""

from __future__ import annotations

import zlib

from processors.unnest import Budget, Encoding, Reader
from processors.unnest._streams import Decoded

MAGIC = b"\x1f\x8b"
GZIP = zlib.MAX_WBITS | 16


class Inflate:
    """zlib's decoder with the manners of bz2's and lzma's. `wbits`: see zlib; -15 is raw deflate."""

    def __init__(self, wbits: int = GZIP) -> None:
        self._decoder = zlib.decompressobj(wbits)
        self._full = False

    @property
    def eof(self) -> bool:
        """The stream is at its end."""
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        """There is nothing more to give before more data come."""
        return not (self._full or self._decoder.unconsumed_tail)

    @property
    def unused_data(self) -> bytes:
        """What came behind the end."""
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes. Raises zlib.error."""
        out = self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)
        # zlib may hold back output although it has taken all input.
        self._full = len(out) == max_length
        return out


def _another(data: bytes) -> Inflate | None:
    return Inflate() if data.startswith(MAGIC) else None


def open_gzip(body: Reader, budget: Budget) -> Reader:
    """What a gzip file holds, as a stream."""
    return Decoded(body, Inflate(), _another)


UNNESTER = Encoding(
    ("GNUCompressed",), "gzip", {b".tgz": b".tar", b".svgz": b".svg", b".gz": b"", b".dz": b"", b".z": b""}, open_gzip
)
