"""What the unnesters of lists share: entries of text as members, each with its own bytes.

Laws:
- A list of one entry is that entry, and has no members.
- One entry is held at a time, and no more than MAX_ENTRY bytes of it.
- Nothing is damage: what is no entry is passed over, and the end of the stream ends the last entry.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator

from processors.essence.formats.container import Member, Reader
from processors.essence.formats.mail_header import Lines

MAX_ENTRY = 65_536
"""Bytes of an entry that are kept."""
MAX_NAME = 200
"""Bytes of the name that an entry gets from its own words."""

_SPACE = re.compile(rb"[\x00-\x20\x7f]+")


class Entry:
    """The lines of an entry, as they come."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self.size = 0

    def add(self, line: bytes) -> None:
        """Add a line, or what of it there is room for."""
        if self.size < MAX_ENTRY:
            self._lines.append(line[: MAX_ENTRY - self.size])
            self.size += len(self._lines[-1])

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self._lines)


def lines(reader: Reader) -> Iterator[bytes]:
    """The lines of a list; a long one comes in pieces. Raises what the stream raises."""
    source = Lines(reader)
    while line := source.next():
        yield line


def field(body: bytes, name: bytes) -> bytes:
    """The first line of a field of an entry, white space made single; b"" without it."""
    found = re.search(rb"^[ \t]*" + name + rb"[ \t]*:[ \t]*([^\r\n]{1,400})", body, re.IGNORECASE | re.MULTILINE)
    return _SPACE.sub(b" ", found[1]).strip() if found else b""


def named(*parts: bytes) -> bytes:
    """A name of what an entry says of itself: NAME-VERSION."""
    return b"-".join(p for p in (_SPACE.sub(b" ", part).strip() for part in parts) if p)[:MAX_NAME]


def members(entries: Iterable[bytes], name: Callable[[bytes], bytes], stated: str) -> Iterator[Member]:
    """Entries as members, if there are several; one that has no name of its own gets its number."""
    first: Member | None = None
    for number, body in enumerate(entries, 1):
        member = Member(name=name(body) or b"entry-%d" % number, size=len(body), body=io.BytesIO(body), stated=stated)
        if number == 1:
            first = member
            continue
        if first:
            yield first
            first = None
        yield member


def stanzas(reader: Reader, starts: bytes) -> Iterator[bytes]:
    """Paragraphs between empty lines that begin with a field of this name."""
    entry = Entry()
    for line in lines(reader):
        if line.strip():
            entry.add(line)
        elif entry.size:
            yield from _stanza(entry.body, starts)
            entry = Entry()
    yield from _stanza(entry.body, starts)


def _stanza(body: bytes, starts: bytes) -> Iterator[bytes]:
    if body[: len(starts)].lower() == starts:
        yield body
