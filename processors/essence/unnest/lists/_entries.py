"""Shared code of the unnesters of lists: entries of text as members, each with its own bytes.

Laws:
- A list of one entry is that entry, and has no members.
- One entry is held in memory at a time, and no more than MAX_ENTRY bytes of it.
- Nothing is damage: text that is not an entry is skipped, and the end of the stream ends the last entry.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator

from processors.essence.formats.container import Member, Reader
from processors.essence.formats.mail.mail_header import Lines

MAX_ENTRY = 65_536
"""Maximum bytes of an entry that are kept."""
MAX_NAME = 200
"""Maximum bytes of a name composed from an entry's own text."""

_SPACE = re.compile(rb"[\x00-\x20\x7f]+")


class Entry:
    """Collects the lines of an entry."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self.size = 0

    def add(self, line: bytes) -> None:
        """Add a line, cut to the remaining room."""
        if self.size < MAX_ENTRY:
            self._lines.append(line[: MAX_ENTRY - self.size])
            self.size += len(self._lines[-1])

    @property
    def body(self) -> bytes:
        """Return the collected bytes."""
        return b"".join(self._lines)


def lines(reader: Reader) -> Iterator[bytes]:
    """Yield the lines of a list; a long line comes in pieces. Raises what the stream raises."""
    source = Lines(reader)
    while line := source.next():
        yield line


def field(body: bytes, name: bytes) -> bytes:
    """Return the first line of a field of an entry, with single spaces; b"" without the field."""
    found = re.search(rb"^[ \t]*" + name + rb"[ \t]*:[ \t]*([^\r\n]{1,400})", body, re.IGNORECASE | re.MULTILINE)
    return _SPACE.sub(b" ", found[1]).strip() if found else b""


def named(*parts: bytes) -> bytes:
    """Compose a name from parts of an entry: NAME-VERSION."""
    return b"-".join(p for p in (_SPACE.sub(b" ", part).strip() for part in parts) if p)[:MAX_NAME]


def members(entries: Iterable[bytes], name: Callable[[bytes], bytes], stated: str) -> Iterator[Member]:
    """Yield entries as members if there are several; an entry without a name gets its number."""
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
    """Yield the paragraphs (separated by empty lines) that begin with a field of the given name."""
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
