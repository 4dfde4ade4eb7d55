"""7z, by libarchive. Its directory is at the end: an archive within another file is first buffered as a whole.

Solid archives are decompressed, and charged to the budget, as a whole, whichever members are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.streams import seekable
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_sevenzip(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    with seekable(body, budget.limits, damaged=True) as file:
        yield from libarchive.members(file, budget, c.SEVENZIP)


UNNESTER = Container(("SevenZip",), open_sevenzip)
