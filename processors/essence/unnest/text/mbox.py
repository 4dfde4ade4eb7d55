"""mbox (RFC 4155, appendix A): each message is a member, named by its Message-ID, so that its name stays when others go.

A message begins behind an empty line (or the start) at a line that begins with "From " and has a time of day in it: what
stands so in a text without being quoted (mboxcl) has none. Quoting is undone as mboxrd has it: one ">" is taken from ">From ",
">>From " and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader, UnnestError
from processors.essence.formats.mail_header import HEADER, Header, Lines
from processors.essence.formats.streams import CHUNK, Joined, exact
from processors.essence.unnest import Container

MAX_NAME = 250
"""Bytes of a Message-ID that may be a name."""
_FROM = re.compile(rb"From [^\n]{0,500}?[ \t]\d\d?:\d\d(?::\d\d)?(?=[ \t\r\n])")
_QUOTED = re.compile(rb">++From ")
_ID = re.compile(rb"<\s*+([^<>\s]++)\s*+>")


class _Message:
    """The lines up to the next message, without the empty line before it, as a stream."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._held = b""
        self._out = b""
        self._empty = False
        self._start = True
        self.next = b""
        """The line that the next message begins with; b"" at the end."""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        while not self._out and not self._ended:
            self._fill()
        data, self._out = self._out[:size], self._out[size:]
        return data

    def _fill(self) -> None:
        parts: list[bytes] = []
        room = CHUNK
        while room > 0:
            try:
                line, start = self._lines.next(), self._start
            except UnnestError:
                # What could be read comes first; the stream fails again.
                if not any(parts):
                    raise
                break
            self._start = not self._lines.more
            if not line or (start and self._empty and _FROM.match(line)):
                self._ended, self.next = True, line
                # The empty line before a message parts it from the one before, and belongs to neither.
                parts.append(b"" if line else self._held)
                break
            if start and _QUOTED.match(line):
                line = line[1:]
            parts.append(self._held)
            self._empty = start and line in (b"\n", b"\r\n")
            room -= len(line)
            self._held = line if self._empty else b""
            if not self._empty:
                parts.append(line)
        self._out = b"".join(parts)


def _name(head: bytes, number: int) -> bytes:
    """What to call a message: its Message-ID, or its number."""
    found = Header()
    for line in head.splitlines(keepends=True):
        if not line.strip() or not found.take(line):
            break
    match = _ID.search(found.raw("message-id")[:MAX_NAME])
    return match[1] if match else b"message-%d" % number


def open_mbox(body: Reader, budget: Budget) -> Iterator[Member]:
    """The messages of a mailbox. Raises Damaged for what does not begin with one."""
    lines = Lines(body)
    line = b"\n"
    while line in (b"\n", b"\r\n"):
        line = lines.next()
    if not line.startswith(b"From "):
        raise Damaged("no mailbox: it does not begin with a From line")
    number = 0
    while line:
        while lines.more:
            lines.next()
        number += 1
        message = _Message(lines)
        head = exact(message, HEADER)
        yield Member(name=_name(head, number), body=Joined(head, message), stated="message/rfc822")
        while message.read(CHUNK):
            pass
        line = message.next


UNNESTER = Container(("Mailbox",), open_mbox)
