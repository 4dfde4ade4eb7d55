"""bzip2: any number of consecutive streams; data after the last one is ignored."""

from __future__ import annotations

import bz2

from processors.essence.formats.container import Budget, Reader
from processors.essence.formats.streams import Decoded
from processors.essence.unnest import Encoding


def _another(data: bytes) -> bz2.BZ2Decompressor | None:
    return bz2.BZ2Decompressor() if data.startswith(b"BZh") else None


def open_bzip2(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of a bzip2 file as a stream."""
    return Decoded(body, bz2.BZ2Decompressor(), _another)


UNNESTER = Encoding(("Bzip2",), "bzip2", {b".tbz2": b".tar", b".tbz": b".tar", b".bz2": b""}, open_bzip2)
