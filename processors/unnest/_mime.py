"""The parts of a message (RFC 5322, RFC 2045 to 2047, RFC 2231), from one forward read; what mail, news and archives of them share.

Laws:
- Of the bytes of a message, one line is held at a time (a longer one comes in pieces), and HEADER bytes of each header.
- Every line is held against all boundaries that are open by one look-up, so that nesting costs nothing.
- Nothing is damage but more than PARTS parts: what breaks a rule is taken for text, as mail programs do, and the end of the stream
  ends all parts.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from processors.unnest import Damaged, Reader, UnnestError
from processors.unnest._streams import CHUNK
from processors.unnest._words import NO_BASE64, decoded, unbase64, unuuencode, words

HEADER = 65_536
"""Bytes of one header, with all its fields, that are kept."""
FIELD = 4_096
"""Bytes of a field that is taken apart ..."""
PARAMETERS = 50
"""... and parameters of it."""
PARTS = 10_000
"""Parts of a message, multiparts included."""
DEPTH = 50
"""Multiparts inside each other; what lies deeper is text."""
LINE = CHUNK
"""Bytes of a line, at most; a longer one comes in pieces."""

_FIELD = re.compile(rb"^([!-9;-~]+)[ \t]*:[ \t]*")
MAX_TIME = (1 << 63) - 1
"""ns since the epoch that a record can hold: an Avro long."""
MULTIPART = "multipart/"
BATCH = 16_384
"""Bytes of lines that are decoded at once."""


class Lines:
    """A stream, line by line; a line ends with its line feed, but for the last one and the pieces of one that is too long."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._data = b""
        self._at = 0
        self.more = False
        """The line given last goes on."""

    def next(self) -> bytes:
        """The next line; b"" at the end. Raises what the stream raises."""
        while True:
            end = self._data.find(b"\n", self._at) + 1
            if end or len(self._data) - self._at >= LINE:
                return self._cut(end or self._at + LINE, more=not end)
            data = self._reader.read(CHUNK)
            if not data:
                return self._cut(len(self._data), more=False)
            self._data, self._at = self._data[self._at :] + data, 0

    def _cut(self, end: int, *, more: bool) -> bytes:
        line, self._at, self.more = self._data[self._at : end], end, more
        return line


class Header:
    """The fields of a header, by their names in lower case, as they were written."""

    def __init__(self) -> None:
        self.fields: dict[str, list[bytearray]] = {}
        self._room = HEADER
        self._last: list[bytearray] | None = None

    def take(self, line: bytes) -> bool:
        """Add a line; False where it cannot belong to a header."""
        self._room -= len(line)
        if line[:1] in (b" ", b"\t"):
            if self._last and self._room > 0:
                self._last[-1] += line.rstrip(b"\r\n")
            return self._last is not None
        match = _FIELD.match(line)
        if match is None:
            return False
        if self._room > 0:
            name = match[1].decode("ascii").lower()
            self._last = self.fields.setdefault(name, [])
            self._last.append(bytearray(line[match.end() :].rstrip(b"\r\n")))
        return True

    def raw(self, name: str) -> bytes:
        """The first field of a name; b"" without one."""
        return bytes(self.fields.get(name, [b""])[0])

    def message(self) -> Message:
        """The fields that tell what a part is, as the standard library takes them apart."""
        message = Message()
        for name in ("content-type", "content-disposition"):
            # The standard library takes parameters apart in time that grows with the square of their number.
            if value := b";".join(self.raw(name)[:FIELD].split(b";")[:PARAMETERS]):
                message[name] = " ".join(value.decode("utf-8", "surrogateescape").split())
        return message


class Part(NamedTuple):
    """A part of a message that is no multipart, in the order of the message, or what stands before the parts of one."""

    number: int
    """1 for the first; 0: what stands before the parts of a multipart, all of it where its boundary never comes."""
    header: Header
    type: str
    """Its media type, lower case."""
    charset: str
    filename: str
    attached: bool
    """It says that it is to be shown apart."""
    body: Reader
    """Its content, decoded; to be read before the next part is asked for, or not at all."""


def header(lines: Lines) -> tuple[Header, bytes]:
    """The header that a message or a part begins with, and the line that ended it where that was not an empty one."""
    found = Header()
    while line := lines.next():
        if line in (b"\n", b"\r\n"):
            return found, b""
        whole = not lines.more
        if not found.take(line):
            return found, line
        while not whole and lines.next():
            whole = not lines.more
    return found, b""


class _Body:
    """The lines up to the next boundary. The line feed before a boundary belongs to the boundary (RFC 2046, 5.1.1)."""

    def __init__(self, lines: Lines, first: bytes, boundaries: dict[bytes, int]) -> None:
        self._lines = lines
        self._first = first
        self._boundaries = boundaries
        self._held = b""
        self._start = True
        self.ended = False
        self.boundary = -1
        """The boundary that ended it, by its depth; -1: the end of the stream."""
        self.last = False
        """That was the boundary's last delimiter."""

    def line(self) -> bytes:
        """The next line; b"" at the end."""
        while not self.ended:
            line = self._first or self._lines.next()
            self._first = b""
            if not line or (self._start and self._delimits(line)):
                self.ended = True
                line = b""
                if self.boundary >= 0:
                    self._held = self._held.removesuffix(b"\n").removesuffix(b"\r")
            self._start = not self._lines.more
            out, self._held = self._held, line
            if out:
                return out
        return b""

    def _delimits(self, line: bytes) -> bool:
        if not line.startswith(b"--") or not self._boundaries:
            return False
        bare = line[2:].rstrip()
        for name, last in ((bare, False), (bare[:-2], True)):
            depth = self._boundaries.get(name, -1) if not last or bare.endswith(b"--") else -1
            if depth >= 0:
                self.boundary, self.last = depth, last
                return True
        return False

    def drain(self) -> None:
        """Pass over what was not read."""
        while self.line():
            pass


class _Decoded:
    """A body without its transfer encoding (RFC 2045, 6), as a stream."""

    def __init__(self, body: _Body, encoding: bytes) -> None:
        self._body = body
        self._left = b""
        self._out = b""
        ways: dict[bytes, Callable[[bytes], bytes]] = {b"base64": self._base64, b"quoted-printable": binascii.a2b_qp}
        ways |= dict.fromkeys((b"x-uuencode", b"uuencode", b"x-uue"), unuuencode)
        self._decode = ways.get(encoding.strip().lower(), bytes)

    def read(self, size: int, /) -> bytes:
        if not self._out:
            self._out = self._batch()
        data, self._out = self._out[:size], self._out[size:]
        return data

    def _batch(self) -> bytes:
        """The next lines, decoded; b"" at the end. What could be read before damage is given first."""
        out: list[bytes] = []
        room = BATCH
        while room > 0 or not out:
            try:
                line = self._body.line()
            except UnnestError:
                if not out:
                    raise
                break
            if not line:
                out.append(self._rest())
                break
            if piece := self._decode(line):
                out.append(piece)
            room -= len(line)
        return b"".join(out)

    def _rest(self) -> bytes:
        left, self._left = self._left, b""
        return unbase64(left + b"=" * (-len(left) % 4))

    def _base64(self, line: bytes) -> bytes:
        left = self._left + NO_BASE64.sub(b"", line)
        whole = len(left) // 4 * 4
        self._left = left[whole:]
        return unbase64(left[:whole])


def message(reader: Reader) -> tuple[Header, Iterator[Part]]:
    """The header of a message, and its parts. Raises what the stream raises."""
    lines = Lines(reader)
    head, first = header(lines)
    return head, _parts(lines, head, first)


class _Open:
    """The multiparts that are open, by their boundaries."""

    def __init__(self) -> None:
        self.boundaries: dict[bytes, int] = {}
        self._stack: list[tuple[bytes, str]] = []

    def enter(self, kind: str, boundary: bytes) -> bool:
        """Open a multipart; False for what is none, or lies too deep."""
        if not (kind.startswith(MULTIPART) and boundary) or len(self._stack) >= DEPTH:
            return False
        # One that takes the boundary of another around it is ended by that one's delimiters.
        self.boundaries.setdefault(boundary, len(self._stack))
        self._stack.append((boundary, kind))
        return True

    def leave(self, depth: int) -> None:
        """Close all that is deeper than `depth` others."""
        while len(self._stack) > depth:
            boundary, _ = self._stack.pop()
            if self.boundaries.get(boundary) == len(self._stack):
                del self.boundaries[boundary]

    def default(self) -> str:
        """The type of a part that states none (RFC 2046, 5.1.5)."""
        return "message/rfc822" if self._stack and self._stack[-1][1] == "multipart/digest" else "text/plain"


def _parts(lines: Lines, head: Header, first: bytes) -> Iterator[Part]:
    opened, number = _Open(), 0
    for _ in range(PARTS):
        told = head.message()
        told.set_default_type(opened.default())
        kind = _told(told.get_content_type)
        boundary = _told(told.get_boundary).rstrip().encode("utf-8", "surrogateescape")
        body = _Body(lines, first, opened.boundaries)
        outer = opened.enter(kind, boundary)
        number += not outer
        if not outer or number == 0:
            yield Part(
                number=0 if outer else number,
                header=head,
                # A multipart without a boundary has one part.
                type="text/plain" if kind.startswith(MULTIPART) else kind,
                charset=_told(told.get_content_charset),
                filename=words(_told(told.get_filename)),
                attached=_told(told.get_content_disposition) == "attachment",
                body=_Decoded(body, head.raw("content-transfer-encoding")),
            )
        body.drain()
        while body.last:
            opened.leave(body.boundary)
            body = _Body(lines, b"", opened.boundaries)
            body.drain()
        if body.boundary < 0:
            return
        opened.leave(body.boundary + 1)
        head, first = header(lines)
    raise Damaged(f"more than {PARTS} parts")


def _told(ask: Callable[[], object]) -> str:
    """What the standard library makes of a field; "" where that is nothing, or more than it can bear."""
    try:
        return str(ask() or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def moment(stated: str) -> int:
    """A date of a header in ns since the epoch; 0 where nobody can tell, or where no record can hold it.

    One that names no zone (as asctime writes it) is in GMT (RFC 9110, 5.6.7), and not in that of this machine.
    """
    try:
        when = parsedate_to_datetime(stated[:100])
        known = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()) * 1_000_000_000
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0
    return known if abs(known) <= MAX_TIME else 0


def field(head: Header, name: str) -> str:
    """The first field of a name, as text on one line."""
    raw = head.raw(name)[:FIELD]
    return " ".join(words(decoded(raw, "")).split())
