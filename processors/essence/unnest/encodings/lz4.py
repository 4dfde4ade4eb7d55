"""LZ4: any number of frames, legacy ones (of the earlier format) and skippable ones included, by libarchive.

A block has 4 MB at most, a legacy one 8 MB; checksums are verified. libarchive stops reading after an empty frame.
"""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader
from processors.essence.unnest import Encoding
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_lz4(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of an lz4 file as a stream."""
    return libarchive.Filtered(body, c.LZ4)


UNNESTER = Encoding(("LZ4",), "lz4", {b".tlz4": b".tar", b".lz4": b""}, open_lz4)
