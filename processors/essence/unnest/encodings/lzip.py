"""lzip: any number of consecutive members, by libarchive; their checksums are verified."""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader
from processors.essence.unnest import Encoding
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_lzip(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of an lz file as a stream."""
    return libarchive.Filtered(body, c.LZIP)


UNNESTER = Encoding(("Lzip",), "lzip", {b".tlz": b".tar", b".lz": b""}, open_lzip)
