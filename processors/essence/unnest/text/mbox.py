"""mbox (RFC 4155, appendix A): each message is a member, named by its Message-ID, so that its name stays if others are removed.

A message begins after an empty line (or at the start) at a line that begins with "From " and contains a time of day; unquoted
text that begins with "From " (mboxcl) has no time of day. Quoting is removed as in mboxrd: one ">" from ">From ", ">>From " and
so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader, UnnestError
from processors.essence.formats.mail.mail_header import HEADER, Header, Lines
from processors.essence.formats.streams import CHUNK, Joined, exact
from processors.essence.unnest import Container

MAX_NAME = 250
"""Maximum bytes of a Message-ID that is used as a name."""
_FROM = re.compile(rb"From [^\n]{0,500}?[ \t]\d\d?:\d\d(?::\d\d)?(?=[ \t\r\n])")
_QUOTED = re.compile(rb">++From ")
_ID = re.compile(rb"<\s*+([^<>\s]++)\s*+>")


class _Message:
    """The lines up to the next message as a stream, without the empty line before it."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._held = b""
        self._out = b""
        self._empty = False
        self._start = True
        self.next = b""
        """First line of the next message; b"" at the end."""
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
                # The data read so far is returned first; the stream fails again at the next read.
                if not any(parts):
                    raise
                break
            self._start = not self._lines.more
            if not line or (start and self._empty and _FROM.match(line)):
                self._ended, self.next = True, line
                # The empty line before a message separates it from the one before, and belongs to neither.
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
    """Return the name of a message: its Message-ID, or its number."""
    found = Header()
    for line in head.splitlines(keepends=True):
        if not line.strip() or not found.take(line):
            break
    match = _ID.search(found.raw("message-id")[:MAX_NAME])
    return match[1] if match else b"message-%d" % number


def open_mbox(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the messages of a mailbox. Raises Damaged for data that does not begin with one."""
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
