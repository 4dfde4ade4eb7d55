"""gzip, zlib and raw deflate (RFC 1952, 1950, 1951) as a decoder of pieces."""

from __future__ import annotations

from typing import Any

from zlib_ng import zlib_ng

from processors.essence.formats.streams import CHUNK

MAGIC = b"\x1f\x8b"
GZIP = zlib_ng.MAX_WBITS | 16
PIECE = 1 << 15
"""Bytes of input that a decoder is given at once."""


class Inflate:
    """A decoder like zlib's, with the manners of bz2's and lzma's. `wbits`: see zlib; -15 is raw deflate.

    It copies what it could not use of its input at each call, so it is fed by PIECEs.
    """

    def __init__(self, wbits: int = GZIP) -> None:
        # Its stub does not know that it can be copied.
        self._decoder: Any = zlib_ng.decompressobj(wbits)
        self._input = memoryview(b"")
        """What it was not fed yet."""
        self._full = False
        self._near = False
        """Damage is near."""

    @property
    def eof(self) -> bool:
        """The stream is at its end."""
        return bool(self._decoder.eof)

    @property
    def needs_input(self) -> bool:
        """There is nothing more to give before more data come."""
        return not (self._full or self._decoder.unconsumed_tail or self._input)

    @property
    def unused_data(self) -> bytes:
        """What came behind the end."""
        return bytes(self._decoder.unused_data) + self._input

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes; none may be there although more can be had without input. Raises zlib_ng.error."""
        if data:
            self._input = memoryview(bytes(self._input) + data if self._input else data)
        piece: bytes | memoryview = self._decoder.unconsumed_tail
        if not piece:
            piece, self._input = self._input[:PIECE], self._input[PIECE:]
        out: bytes = self._decoder.decompress(piece, max_length)
        # It may hold back output although it has taken all input.
        self._full = len(out) == max_length
        return out

    def ahead(self, data: bytes, size: int) -> bytes:
        """As `decompress`, but of what follows whatever comes with little more work. Raises zlib_ng.error.

        A decoder that meets damage gives nothing of that call: a copy (1 us) is then asked for no more than is wanted.
        """
        if self._near or size >= CHUNK:
            return self.decompress(data, size)
        before, rest = self._decoder.copy(), self._input
        try:
            return self.decompress(data, CHUNK)
        except Exception:  # noqa: BLE001 - zlib_ng.error, which its stub does not know for a class
            self._decoder, self._input, self._near = before, rest, True
            return self.decompress(data, size)


def next_member(data: bytes) -> Inflate | None:
    """Return the decoder of a further member that begins with these bytes; None: there is none."""
    return Inflate() if data.startswith(MAGIC) else None
