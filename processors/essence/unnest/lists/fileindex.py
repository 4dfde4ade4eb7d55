"""Hand-made indexes (00-INDEX, FILES.BBS, INDEX of software archives): each described file is a member of that name."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.file_index import INDEX_LINE
from processors.essence.unnest import Container
from processors.essence.unnest.lists._entries import Entry, lines, members, named


def _entries(reader: Reader) -> Iterator[bytes]:
    """Yield each line that begins with a file name, with the indented lines below it."""
    entry: Entry | None = None
    for line in lines(reader):
        if line[:1] in b" \t" and line.strip():
            if entry:
                entry.add(line)
            continue
        if entry:
            yield entry.body
        entry = None
        if INDEX_LINE.match(line):
            entry = Entry()
            entry.add(line)
    if entry:
        yield entry.body


def _name(body: bytes) -> bytes:
    found = INDEX_LINE.match(body)
    return named(found["name"].strip(b'"')) if found else b""


def open_index(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the files that an index describes."""
    return members(_entries(body), _name, "text/x-file-index")


UNNESTER = Container(("FileIndex",), open_index, summarized=True, entries=True)
