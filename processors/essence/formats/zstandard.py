"""Zstandard frames (RFC 8878) as a decoder of pieces."""

from __future__ import annotations

import sys

from processors.essence.formats.container import Refused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = b"\x2a\x4d\x18"
WINDOW = 27
"""Binary logarithm of the memory that a frame may ask for."""


class Frame:
    """zstd's decoder of one frame, which says why it refuses."""

    def __init__(self) -> None:
        self._decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW})

    @property
    def eof(self) -> bool:
        """The frame is at its end."""
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        """There is nothing more to give before more data come."""
        return self._decoder.needs_input

    @property
    def unused_data(self) -> bytes:
        """What came behind the end."""
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes. Raises ZstdError, Refused."""
        try:
            return self._decoder.decompress(data, max_length)
        except zstd.ZstdError as error:
            if "memory" in str(error):
                raise Refused(f"a window of more than {1 << WINDOW} bytes") from error
            if "ictionary mismatch" in str(error):
                raise Refused("needs a dictionary") from error
            raise


def next_member(data: bytes) -> Frame | None:
    """Return the decoder of a further member that begins with these bytes; None: there is none."""
    return Frame() if data.startswith(MAGIC) or (data[1:4] == SKIPPABLE and data[0] >> 4 == 5) else None
