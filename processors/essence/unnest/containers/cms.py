"""Cryptographic messages (CMS, RFC 5652; PKCS #7) that hold what they sign or stamp (RFC 5544): S/MIME, invoices as `.p7m`, `.tsd`.

The bytes are BER (X.690): lengths may be left open, and the content may come in pieces. Who signed, and whether it holds, is not
looked at. A signature that stands beside what it is of, certificates and keys hold nothing; what is encrypted says so.
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
"""What stands behind the content of a file with a time stamp (RFC 5544, 2)."""
CONSTRUCTED = 0x20
OPEN = -1
"""A length that is not stated: an end mark follows the last element."""
MAX_NAME = 32
MAX_LENGTH = 8
"""Bytes of an object identifier, and of a length."""
MAX_DEPTH = 8
"""Pieces inside pieces."""
SIGNED = bytes.fromhex("2a864886f70d010702")
STAMPED = bytes.fromhex("2a864886f70d010910011f")
ENCRYPTED = frozenset(map(bytes.fromhex, ("2a864886f70d010703", "2a864886f70d010706", "2a864886f70d0109100117")))
"""Enveloped, encrypted, enveloped and authenticated."""
HEADER = 1_024
_ENTITY = re.compile(rb"(?:[A-Za-z-]{1,40}:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)*?(?i:content-type):")
"""How an entity of MIME begins, which is what S/MIME signs (RFC 8551, 3.1)."""


class _Element(NamedTuple):
    """The tag and the length of an element, and of both together."""

    tag: int
    size: int
    header: int

    @property
    def open(self) -> bool:
        return self.size == OPEN

    @property
    def ends(self) -> bool:
        """Whether it is the mark that ends one whose length is left open."""
        return self.tag == self.size == 0


def _element(body: Reader) -> _Element:
    """The next tag and length (X.690, 8.1). Raises Damaged."""
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
    """Read on behind an element. Raises Damaged."""
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
    """Go into an element that has to be there. Raises Damaged."""
    found = _element(body)
    if found.tag != tag:
        raise Damaged("no message: another element stands where its parts should")
    return found


class _Content:
    """Octets, whole or in pieces (X.690, 8.7). Pieces of pieces are gone through as if they stood one after the other."""

    def __init__(self, body: Reader, element: _Element) -> None:
        self._body = body
        self._left = 0 if element.tag == PIECES else element.size
        self._within = [element.size] if element.tag == PIECES else []
        """What is left of the pieces around this place, or OPEN; the outermost first."""
        self._damage: Damaged | None = None
        """What was met, and is met again by whoever reads on."""

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
        """Go on to the next piece, or out of pieces that are over."""
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
        """Count what a piece takes of the innermost whose length is stated: those around that one have counted it whole."""
        at = next((at for at in reversed(range(len(self._within))) if self._within[at] != OPEN), None)
        if at is not None:
            self._within[at] -= size
            if self._within[at] < 0:
                raise Damaged("a piece is longer than what it is a piece of")


def about(head: bytes) -> Iterator[tuple[str, str]]:
    """That it is encrypted."""
    with suppress(Damaged):
        if _kind(io.BytesIO(head)) in ENCRYPTED:
            yield "encrypted", "a key is needed"


def members(body: Reader, budget: Budget) -> Iterator[Member]:
    """The content, if there is any. Raises Damaged."""
    head, body = peek(body, 2)
    if len(head) < 2 or head[0] != SEQUENCE:
        return
    try:
        kind = _kind(body)
    except Damaged:
        # Nothing says that it is a message: a key, or words, may begin like one.
        return
    if kind in (SIGNED, STAMPED) and (content := _content(body, kind)):
        start, whole = peek(_Content(body, content), HEADER)
        yield Member(b"content", body=whole, stated="message/rfc822" if _ENTITY.match(start) else "")


def _kind(body: Reader) -> bytes:
    """The type of a message, entered; b"" of what is none: a certificate, a key, a store of keys. Raises Damaged."""
    _enter(body, SEQUENCE)
    name = _element(body)
    return need(body, name.size, "its type ends early") if name.tag == NAME and 0 < name.size <= MAX_NAME else b""


def _content(body: Reader, kind: bytes) -> _Element | None:
    """The octets that a message holds, entered; None where it holds none. Raises Damaged."""
    _enter(body, TAGGED)
    _enter(body, SEQUENCE)
    _pass(body, _enter(body, NUMBER))
    if kind == STAMPED:
        # An address and what is said of the content may stand before it.
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
    # Programs and catalogues of Windows are signed by structures.
    inner = _element(body) if tagged.size else tagged
    return inner if inner.tag in (OCTETS, PIECES) else None


UNNESTER = Container(("Cryptography",), members, about=about, summarized=True)
