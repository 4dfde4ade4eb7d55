"""LZ77 with Huffman codes as in H. Okumura's ar002, which LHA and ARJ share, by libarchive: each stream as an archive of one file.

The header put before the stream (LHA's level 0) has no checksum of the data: callers verify that of their own format.
"""

from __future__ import annotations

import struct

from processors.essence.formats.container import Reader, UnnestError
from processors.essence.formats.streams import Joined
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c

LH7 = b"-lh7-"
"""The method with 17 lengths of distance codes, as in ARJ, whose window is smaller."""


class Lzh:
    """Decoded data of a stream of `packed` bytes; it has `size` bytes. Opened at the first read. Raises UnnestError."""

    def __init__(self, reader: Reader, packed: int, size: int, method: bytes) -> None:
        head = struct.pack("<5sIIIBBB1s", method, packed, size, 0, 0x20, 0, 1, b"x")
        self._reader = Joined(bytes((len(head), sum(head) & 0xFF)) + head, reader)
        self._left = size
        self._data: libarchive.Data | None = None
        self._error: UnnestError | None = None

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        if self._error:
            raise self._error
        try:
            # Do not read after the last byte: libarchive would expect further data, as in an LHA archive.
            self._data = self._data or self._open()
            data = self._data.read(min(size, self._left)) if self._left else b""
            self._left -= len(data)
            return data
        except UnnestError as error:
            self._error = error
            raise

    def _open(self) -> libarchive.Data:
        opened = libarchive.Opened(self._reader, (c.LHA,))
        opened.checked(opened.header()[0])
        return libarchive.Data(opened, self._left)
