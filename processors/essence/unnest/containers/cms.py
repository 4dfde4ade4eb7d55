"""Cryptographic messages (CMS, RFC 5652; PKCS #7), their signed or time-stamped content (RFC 5544): S/MIME, `.p7m`, `.tsd`.

The bytes are BER (X.690): lengths may be indefinite, and the content may come in pieces. Signatures are not verified. A detached
signature, certificates and keys have no content; encrypted messages are reported as encrypted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import CHUNK, need, peek, skip
from processors.essence.unnest import Container

SEQUENCE, NUMBER, NAME, OCTETS, PIECES, TAGGED = 0x30, 0x02, 0x06, 0x04, 0x24, 0xA0
EVIDENCE = (0xA0, 0xA1, 0xA2)
"""Tags of the evidence after the content of a time-stamped file (RFC 5544, 2)."""
CONSTRUCTED = 0x20
OPEN = -1
"""An indefinite length: an end mark follows the last element."""
MAX_NAME = 32
MAX_LENGTH = 8
"""Maximum bytes of an object identifier, and of a length."""
MAX_DEPTH = 8
"""Maximum nesting of pieces."""
SIGNED = bytes.fromhex("2a864886f70d010702")
STAMPED = bytes.fromhex("2a864886f70d010910011f")
ENCRYPTED = frozenset(map(bytes.fromhex, ("2a864886f70d010703", "2a864886f70d010706", "2a864886f70d0109100117")))
"""Types: enveloped, encrypted, authenticated-enveloped."""
HEADER = 1_024
_ENTITY = re.compile(rb"(?:[A-Za-z-]{1,40}:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)*?(?i:content-type):")
"""Start of a MIME entity, which is what S/MIME signs (RFC 8551, 3.1)."""


class _Element(NamedTuple):
    """Tag and length of an element, and the length of both fields in bytes."""

    tag: int
    size: int
    header: int

    @property
    def open(self) -> bool:
        return self.size == OPEN

    @property
    def ends(self) -> bool:
        """Whether this is the end mark of an element of indefinite length."""
        return self.tag == self.size == 0


def _element(body: Reader) -> _Element:
    """Read the next tag and length (X.690, 8.1). Raises Damaged."""
    tag, first = need(body, 2, "an element ends early")
    if tag & 0x1F == 0x1F:
        raise Damaged("a tag of several bytes")
    if first < 0x80:
        return _Element(tag, first, 2)
    if first == 0x80 and tag & CONSTRUCTED:
        return _Element(tag, OPEN, 2)
    count = first & 0x7F
    if not 0 < count <= MAX_LENGTH:
        raise Damaged("a length makes no sense")
    return _Element(tag, int.from_bytes(need(body, count, "a length ends early")), 2 + count)


def _pass(body: Reader, element: _Element) -> None:
    """Skip the contents of an element. Raises Damaged."""
    if not element.open:
        skip(body, element.size, "an element ends early")
        return
    depth = 1
    while depth:
        inner = _element(body)
        if inner.open:
            depth += 1
        elif inner.ends:
            depth -= 1
        else:
            skip(body, inner.size, "an element ends early")


def _enter(body: Reader, tag: int) -> _Element:
    """Enter a required element. Raises Damaged."""
    found = _element(body)
    if found.tag != tag:
        raise Damaged("no message: another element stands where its parts should")
    return found


class _Content:
    """Octets, whole or in pieces (X.690, 8.7). Nested pieces are read as if they were consecutive."""

    def __init__(self, body: Reader, element: _Element) -> None:
        self._body = body
        self._left = 0 if element.tag == PIECES else element.size
        self._within = [element.size] if element.tag == PIECES else []
        """Remaining bytes of each enclosing piece, or OPEN; the outermost first."""
        self._damage: Damaged | None = None
        """Damage found before, raised again on further reads."""

    def read(self, size: int, /) -> bytes:
        if self._damage is not None:
            raise self._damage
        try:
            return self._read(size)
        except Damaged as damage:
            self._damage = damage
            raise

    def _read(self, size: int) -> bytes:
        while not self._left:
            if not self._within:
                return b""
            self._next()
        data = self._body.read(min(size, self._left, CHUNK))
        if not data:
            raise Damaged("truncated: the content ends early")
        self._left -= len(data)
        return data

    def _next(self) -> None:
        """Enter the next piece, or leave finished ones."""
        if self._within[-1] == 0:
            self._within.pop()
            return
        element = _element(self._body)
        if element.ends and self._within[-1] == OPEN:
            self._within.pop()
            self._take(element.header)
            return
        if element.tag not in (OCTETS, PIECES):
            raise Damaged("content that is no octets")
        self._take(element.header + max(element.size, 0))
        if element.tag == OCTETS:
            self._left = element.size
        elif len(self._within) > MAX_DEPTH:
            raise Damaged("pieces inside pieces")
        else:
            self._within.append(element.size)

    def _take(self, size: int) -> None:
        """Subtract the size of a piece from the innermost piece of definite length; those around it have counted that one whole."""
        at = next((at for at in reversed(range(len(self._within))) if self._within[at] != OPEN), None)
        if at is not None:
            self._within[at] -= size
            if self._within[at] < 0:
                raise Damaged("a piece is longer than what it is a piece of")


def about(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield whether the message is encrypted."""
    with suppress(Damaged):
        if _kind(io.BytesIO(head)) in ENCRYPTED:
            yield "encrypted", "a key is needed"


def members(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the content, if there is any. Raises Damaged."""
    head, body = peek(body, 2)
    if len(head) < 2 or head[0] != SEQUENCE:
        return
    try:
        kind = _kind(body)
    except Damaged:
        # Not proven to be a message: a key or a text may begin the same way.
        return
    if kind in (SIGNED, STAMPED) and (content := _content(body, kind)):
        start, whole = peek(_Content(body, content), HEADER)
        yield Member(b"content", body=whole, stated="message/rfc822" if _ENTITY.match(start) else "")


def _kind(body: Reader) -> bytes:
    """Return the type of a message, and enter it; b"" for other data (a certificate, a key, a key store). Raises Damaged."""
    _enter(body, SEQUENCE)
    name = _element(body)
    return need(body, name.size, "its type ends early") if name.tag == NAME and 0 < name.size <= MAX_NAME else b""


def _content(body: Reader, kind: bytes) -> _Element | None:
    """Return the octets of a message's content, and enter them; None if it has none. Raises Damaged."""
    _enter(body, TAGGED)
    _enter(body, SEQUENCE)
    _pass(body, _enter(body, NUMBER))
    if kind == STAMPED:
        # An address and metadata of the content may precede it.
        while (element := _element(body)).tag not in (OCTETS, PIECES):
            if element.tag in (0, *EVIDENCE):
                return None
            _pass(body, element)
        return element
    _pass(body, _element(body))
    around = _enter(body, SEQUENCE)
    name = _enter(body, NAME)
    _pass(body, name)
    if not around.open and around.size <= name.size + 2:
        return None
    if (tagged := _element(body)).tag != TAGGED:
        return None
    # In signed Windows programs and catalogs the content is a structure, not octets.
    inner = _element(body) if tagged.size else tagged
    return inner if inner.tag in (OCTETS, PIECES) else None


UNNESTER = Container(("Cryptography",), members, about=about, summarized=True)
