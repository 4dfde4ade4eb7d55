"""LHA with headers of level 0 to 3, by libarchive: stored files and the methods lh5 to lh7; other methods are refused."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_lha(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    return libarchive.members(body, budget, c.LHA)


UNNESTER = Container(("Lha",), open_lha)
