"""Zstandard (RFC 8878): any number of consecutive frames, with skippable ones between them.

A frame states the memory that its window needs; more than 128 MB, the default limit of zstd itself, is refused.
"""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader
from processors.essence.formats.streams import Decoded
from processors.essence.formats.zstandard import Frame, next_member
from processors.essence.unnest import Encoding


def open_zstandard(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of a zst file as a stream."""
    return Decoded(body, Frame(), next_member)


UNNESTER = Encoding(("Zstandard",), "zstd", {b".tzst": b".tar", b".tzs": b".tar", b".zstd": b"", b".zst": b""}, open_zstandard)
