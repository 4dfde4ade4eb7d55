"""Microsoft cabinets (stored, MSZIP, LZX), by libarchive."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_cabinet(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of a cabinet. Raises UnnestError."""
    return libarchive.members(body, budget, c.CAB)


UNNESTER = Container(("Cabinet",), open_cabinet)
