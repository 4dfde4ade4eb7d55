"""XML of listings, element by element, in bounded memory: entities, DTDs and the network stay shut."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from lxml import etree

from processors.essence.formats.xml import local

MAX_BYTES = 64 << 20
"""Bytes of a listing that are read, decompressed (sitemaps.org: 50 MB)."""
MAX_ELEMENTS = 3_000_000
"""Elements of a listing: twelve for each child, and a few seconds."""
MAX_INSIDE = 50_000
"""Elements of one entry: a tree of tiny elements takes a hundred times as much memory as its text."""
CHANNEL = "channel"
"""The element of RSS that has the entries; in other formats the root has them."""
PIECE, SLICE = 65_536, 1_024
_GZIP = b"\x1f\x8b"
_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)
_PROLOG = r"\A\ufeff?\s*+(?:<\?[^>]*+>\s*+|<!--(?s:.{0,2000}?)-->\s*+|<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\]\s*+)?>\s*+|(?!)){0,5}+"


class ListingError(ValueError):
    """The rest of a listing cannot be read; the message says why."""


def root_pattern(names: str) -> re.Pattern[str]:
    """Return the pattern of the beginning of a document whose root element has one of these names (alternatives)."""
    return re.compile(rf"{_PROLOG}<(?:[A-Za-z_][\w.-]{{0,30}}:)?(?:{names})[\s>/]", re.ASCII)


def text_of(head: bytes) -> str:
    """Return the beginning of a document as text, decompressed; other charsets than UTF-8 and UTF-16 as Latin-1."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, PIECE)
        except zlib.error:
            return ""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace")
    return head.removeprefix(b"\xef\xbb\xbf").decode("latin-1")


def opened(body: BinaryIO) -> Pieces:
    """Return a body, decompressed if it is gzip."""
    body.seek(0)
    packed = body.read(2) == _GZIP
    body.seek(0)
    return Pieces(body, packed=packed)


class Pieces(io.RawIOBase):
    """The bytes of a body in pieces, at most MAX_BYTES of them. Raises ListingError beyond, and if the compression is damaged."""

    def __init__(self, body: BinaryIO, *, packed: bool) -> None:
        self._body = body
        self._inflate = zlib.decompressobj(wbits=31) if packed else None
        self._room = MAX_BYTES
        self._input = b""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, at most PIECE; b"" at the end."""
        wanted = PIECE if size < 0 else min(size, PIECE)
        data = self._body.read(wanted) if self._inflate is None else self._inflated(wanted)
        self._room -= len(data)
        if self._room < 0:
            raise ListingError(f"a listing of more than {MAX_BYTES:,} bytes")
        return data

    def _inflated(self, wanted: int) -> bytes:
        inflate = self._inflate
        while inflate is not None and not inflate.eof:
            data = self._input or self._body.read(PIECE)
            if not data:
                raise ListingError("its compression is cut off")
            try:
                found = inflate.decompress(data, wanted)
            except zlib.error as error:
                raise ListingError("its compression is damaged") from error
            self._input = inflate.unconsumed_tail
            if found:
                return found
        return b""


def elements(pieces: Pieces, names: frozenset[str], *, recover: bool = False) -> Iterator[tuple[etree._Element, etree._Element]]:
    """Yield (root, element) for each element with one of these local names, once it is complete; then it is emptied.

    Raises ListingError where the document is not well-formed (unless `recover`), declares entities, or has too large an entry.
    """
    parser = etree.XMLPullParser(
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    tree, before = _Tree(names), b""
    try:
        while data := pieces.read(PIECE):
            if tree.root is None and _ENTITY.search(before + data):
                raise ListingError("a listing that declares entities")
            before = data[-8:]
            # Of the slice with the damage no entry is yielded, of those before it all.
            for at in range(0, len(data), SLICE):
                parser.feed(data[at : at + SLICE])
                yield from tree.read(parser)
        parser.close()
        yield from tree.read(parser)
    except etree.XMLSyntaxError as error:
        if not recover:
            raise ListingError(f"not well-formed XML: {error.msg or 'no element'}"[:200]) from error


class _Tree:
    """The elements read so far: those that are complete are dropped, so that the tree stays small."""

    def __init__(self, names: frozenset[str]) -> None:
        self.root: etree._Element | None = None
        self._names = names
        self._depth = 0
        self._count = 0
        self._inside = 0
        """Elements since the last one that was dropped."""

    def read(self, parser: etree.XMLPullParser) -> Iterator[tuple[etree._Element, etree._Element]]:
        """Yield the elements with a name that are complete now."""
        for event, found in cast("Iterator[Any]", parser.read_events()):
            element: etree._Element = found
            if self.root is None:
                self.root = element
            if event == "start":
                self._depth += 1
                self._inside += 1
                self._count += 1
                if self._inside > MAX_INSIDE:
                    raise ListingError(f"more than {MAX_INSIDE:,} elements in one entry")
                if self._count > MAX_ELEMENTS:
                    raise ListingError(f"more than {MAX_ELEMENTS:,} elements")
                continue
            self._depth -= 1
            named = local(element) in self._names
            if named:
                yield self.root, element
            above = element.getparent()
            if named or above is None or above is self.root or local(above) == CHANNEL:
                self._drop(element)

    def _drop(self, element: etree._Element) -> None:
        """Empty an element, and remove those before it, which nobody needs any more."""
        self._inside = 0
        if element is self.root:
            return
        element.clear()
        parent = element.getparent()
        while parent is not None and element.getprevious() is not None:
            del parent[0]
