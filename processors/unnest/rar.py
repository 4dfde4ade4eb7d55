"""RAR, versions 1.5 to 5, by libarchive; one volume at a time: what goes on in another is damaged."""

from __future__ import annotations

from collections.abc import Iterator

from processors.unnest import Budget, Container, Member, Reader
from processors.unnest import _libarchive as libarchive


def open_rar(body: Reader, budget: Budget) -> Iterator[Member]:
    """The members of an archive. Raises UnnestError."""
    return libarchive.members(body, budget, libarchive.RAR, libarchive.RAR5)


UNNESTER = Container(("Rar",), open_rar)
