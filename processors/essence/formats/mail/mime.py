"""The parts of a message (RFC 5322, RFC 2045 to 2047, RFC 2231), from one forward read; what mail, news and archives of them share.

Laws:
- Of the bytes of a message, what was read at once is held twice at most, and HEADER bytes of each header.
- Every line that may be a boundary is held against all that are open by one look-up, so that nesting costs nothing.
- Nothing is damage but more than PARTS parts: what breaks a rule is taken for text, as mail programs do, and the end of the stream
  ends all parts.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

from processors.essence.formats.container import Damaged, Reader, UnnestError
from processors.essence.formats.mail.encoded_words import NO_BASE64, decoded, unbase64, unuuencode, words
from processors.essence.formats.mail.mail_header import FIELD, Header, Lines, header
from processors.essence.formats.text import decode

PARAMETERS = 50
"""Parameters of a field that are looked at."""
PARTS = 10_000
"""Parts of a message, multiparts included."""
DEPTH = 50
"""Multiparts inside each other; what lies deeper is text."""
MAX_TIME = (1 << 63) - 1
"""ns since the epoch that a record can hold: an Avro long."""
MULTIPART = "multipart/"


class PartHeader(NamedTuple):
    """What the header of a part says that it is; "" for what it does not say."""

    type: str
    """Its media type, lower case."""
    boundary: bytes
    charset: str
    filename: str
    attached: bool
    """It says that it is to be shown apart."""


class Part(NamedTuple):
    """A part of a message that is no multipart, in the order of the message, or what stands before the parts of one."""

    number: int
    """1 for the first; 0: what stands before the parts of a multipart, all of it where its boundary never comes."""
    header: Header
    type: str
    charset: str
    filename: str
    attached: bool
    body: Reader
    """Its content, decoded; to be read before the next part is asked for, or not at all."""


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

    def run(self) -> bytes:
        """The next lines, as they were read; b"" at the end. What could be read before damage is given first."""
        while not self.ended:
            try:
                data = self._first or self._lines.run()
            except UnnestError:
                out, self._held = self._held, b""
                if out:
                    return out
                raise
            self._first = b""
            if not data or (self._start and self._delimits(data)):
                self.ended = True
                data = b""
                if self.boundary >= 0:
                    self._held = self._held.removesuffix(b"\n").removesuffix(b"\r")
            self._start = not self._lines.more
            out, self._held = self._held, data
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
        while self.run():
            pass


class _Decoded:
    """A body without its transfer encoding (RFC 2045, 6), as a stream."""

    def __init__(self, body: _Body, encoding: bytes) -> None:
        self._body = body
        self._left = b""
        self._out = b""
        self._at = 0
        ways: dict[bytes, Callable[[bytes], bytes]] = {b"base64": self._base64, b"quoted-printable": binascii.a2b_qp}
        ways |= dict.fromkeys((b"x-uuencode", b"uuencode", b"x-uue"), _uuencode)
        self._decode = ways.get(encoding.strip().lower()) if encoding else None

    def read(self, size: int, /) -> bytes:
        if self._at == len(self._out):
            self._out, self._at = self._next(), 0
        data = self._out[self._at : self._at + size]
        self._at += len(data)
        return data

    def _next(self) -> bytes:
        """The next lines, decoded; b"" at the end."""
        while data := self._body.run():
            if out := self._decode(data) if self._decode else data:
                return out
        left, self._left = self._left, b""
        return unbase64(left + b"=" * (-len(left) % 4))

    def _base64(self, lines: bytes) -> bytes:
        left = self._left + NO_BASE64.sub(b"", lines)
        if lines.count(b"\n") > 1 and (b"=" in left[:-2] or (left[-2:-1] == b"=" and left[-1:] != b"=")):
            # What is padded in its midst was encoded in pieces, of which each begins on a line of its own.
            return b"".join(map(self._base64, lines.splitlines(keepends=True)))
        whole = len(left) // 4 * 4
        self._left = left[whole:]
        return unbase64(left[:whole])


def _uuencode(lines: bytes) -> bytes:
    return b"".join(map(unuuencode, lines.split(b"\n")))


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
        told = _told(head.raw("content-type")[:FIELD], head.raw("content-disposition")[:FIELD], opened.default())
        body = _Body(lines, first, opened.boundaries)
        outer = opened.enter(told.type, told.boundary)
        number += not outer
        if not outer or number == 0:
            yield Part(
                number=0 if outer else number,
                header=head,
                # A multipart without a boundary has one part.
                type="text/plain" if told.type.startswith(MULTIPART) else told.type,
                charset=told.charset,
                filename=told.filename,
                attached=told.attached,
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


@lru_cache(maxsize=256)
def _told(kind: bytes, disposition: bytes, default: str) -> PartHeader:
    """What the fields say that tell what a part is, as the standard library takes them apart.

    Most messages say the same as others, and all say it twice: to who reads the text, and to who opens the parts.
    """
    message = Message()
    for name, raw in (("content-type", kind), ("content-disposition", disposition)):
        # The standard library takes parameters apart in time that grows with the square of their number.
        if value := b";".join(raw.split(b";")[:PARAMETERS]):
            # A character for each byte: the standard library replaces what is not ASCII in other ways.
            message[name] = b" ".join(value.split()).decode("latin-1")
    message.set_default_type(default)
    return PartHeader(
        type=_asked(message.get_content_type),
        boundary=_asked(message.get_boundary).rstrip().encode("latin-1", "replace"),
        charset=_asked(message.get_content_charset),
        filename=words(_asked(lambda: _filename(message))),
        attached=_asked(message.get_content_disposition) == "attachment",
    )


def _filename(message: Message) -> str:
    """Return the name of a file: a parameter with its charset (RFC 2231, 4), or bytes in that of the part or an unknown one."""
    value = message.get_param("filename", None, "content-disposition") or message.get_param("name", None, "content-type") or ""
    if isinstance(value, tuple):
        charset, _, coded = value
        return decode(coded.encode("latin-1", "replace"), charset or "").strip()
    return decode(value.encode("latin-1", "replace"), message.get_content_charset("")).strip()


def declared_charset(head: Header) -> str:
    """Return the charset that the header of a message or part declares; "" if it declares none."""
    return _told(head.raw("content-type")[:FIELD], b"", "text/plain").charset


def _asked(ask: Callable[[], object]) -> str:
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
    return " ".join(words(decoded(raw, "")).split()) if raw else ""


BODY = ("text/plain", "text/html")


def is_text(part: Part) -> bool:
    """Whether a part is what its author wrote, rather than something that goes with it."""
    return part.type in BODY and not part.attached and not part.filename
