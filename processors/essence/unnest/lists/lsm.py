"""Linux Software Map entries, several per file: each from its Begin to its End is a member, TITLE-VERSION."""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.lists._entries import Entry, field, lines, members, named

_BEGIN = re.compile(rb"Begin\d?[ \t]*\r?\n?", re.IGNORECASE)
_END = re.compile(rb"End[ \t]*\r?\n?", re.IGNORECASE)


def _entries(reader: Reader) -> Iterator[bytes]:
    """Yield the text from each Begin to its End; an entry without an End ends where the next begins."""
    entry: Entry | None = None
    for line in lines(reader):
        begins = _BEGIN.fullmatch(line)
        if entry and begins:
            yield entry.body
        if begins:
            entry = Entry()
        if entry:
            entry.add(line)
            if _END.fullmatch(line):
                yield entry.body
                entry = None
    if entry:
        yield entry.body


def _name(body: bytes) -> bytes:
    return named(field(body, b"Title"), field(body, b"Version"))


def open_lsm(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the entries of a map."""
    return members(_entries(body), _name, "text/x-lsm")


UNNESTER = Container(("LSM",), open_lsm, summarized=True, entries=True)
