"""lzip, as many members one after the other as there are, by libarchive; their checksums are held against the data."""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader
from processors.essence.unnest import Encoding
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_lzip(body: Reader, budget: Budget) -> Reader:
    """What an lz file holds, as a stream."""
    return libarchive.Filtered(body, c.LZIP)


UNNESTER = Encoding(("Lzip",), "lzip", {b".tlz": b".tar", b".lz": b""}, open_lzip)
