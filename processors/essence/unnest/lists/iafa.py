"""IAFA templates (Internet Anonymous FTP Archives, draft of 1994), several per file: each record is a member."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.lists._entries import field, members, named, stanzas


def _name(body: bytes) -> bytes:
    """Return the record's handle, else its title and version, or the name field that its kind has instead of a title."""
    names = (field(body, name) for name in (b"Handle", b"Title", b"(?:Service|Organization|User|Site|Host|Mirrored)-Name"))
    name = next(filter(None, names), b"")
    return named(name, field(body, b"Version(?:-v\\d+)?")) if name else b""


def open_iafa(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the records of a file."""
    return members(stanzas(body, b"template-type:"), _name, "text/x-iafa")


UNNESTER = Container(("IAFA",), open_iafa, summarized=True, entries=True)
