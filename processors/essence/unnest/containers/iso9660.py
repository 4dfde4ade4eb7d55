"""ISO 9660 with Joliet, Rock Ridge, El Torito and zisofs, by libarchive. Files come in the order in which they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c


def open_iso9660(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an image. Raises UnnestError."""
    return libarchive.members(body, budget, c.ISO9660)


UNNESTER = Container(("ISO9660",), open_iso9660)
