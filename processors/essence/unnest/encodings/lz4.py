"""LZ4: its frames, those of the time before (legacy) and skippable ones, as many as there are; by libarchive.

A block takes 4 MB at most, a legacy one 8 MB; checksums are held against the data. A frame that holds nothing is the last
that libarchive reads.
"""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader
from processors.essence.unnest import Encoding
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_lz4(body: Reader, budget: Budget) -> Reader:
    """What an lz4 file holds, as a stream."""
    return libarchive.Filtered(body, c.LZ4)


UNNESTER = Encoding(("LZ4",), "lz4", {b".tlz4": b".tar", b".lz4": b""}, open_lz4)
