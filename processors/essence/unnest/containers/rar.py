"""RAR, versions 1.5 to 5, by libarchive; one volume at a time: a file that continues in another volume is damaged."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_rar(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    return libarchive.members(body, budget, c.RAR, c.RAR5)


UNNESTER = Container(("Rar",), open_rar)
