"""gzip (RFC 1952): any number of consecutive members; their checksums are verified.

Data after the last member (zeros of a tape, garbage) is ignored, as gzip does.
"""

from __future__ import annotations

from processors.essence.formats.container import Budget, Reader
from processors.essence.formats.inflate import Inflate, next_member
from processors.essence.formats.streams import Decoded
from processors.essence.unnest import Encoding


def open_gzip(body: Reader, budget: Budget) -> Reader:
    """Return the decoded content of a gzip file as a stream."""
    return Decoded(body, Inflate(), next_member)


UNNESTER = Encoding(
    ("GNUCompressed",), "gzip", {b".tgz": b".tar", b".svgz": b".svg", b".gz": b"", b".dz": b"", b".z": b""}, open_gzip
)
