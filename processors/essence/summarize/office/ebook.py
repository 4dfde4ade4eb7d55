"""Books for Palm and Kindle: title, author, publisher, subjects and text of Mobipocket, AZW3 and PalmDoc (MobileRead, MOBI).

A file is a list of records. The first one states the compression of the text, and in EXTH the book's metadata; the records behind
it hold the text, each compressed separately. Text that is encrypted or compressed by Huffman's method is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import read_at, unpack
from processors.essence.summarize.office._package import add_reference
from processors.essence.summarize.pages._markup import page, page_links, page_text

RECORDS = 65_535
MAX_RECORD = 65_536
MAX_TEXT = 2_048
SPARE = 16_384
"""Bytes to read beyond the text's limit, for markup."""
HEADINGS = 50
NAMES = {
    100: "author", 101: "organization", 103: "description", 104: "isbn", 105: "keywords", 106: "date", 108: "author",
    109: "copyright", 503: "title", 524: "language",
}  # fmt: skip
"""Attribute of the summary by kind of EXTH record."""
PALM, MOBI = b"TEXtREAd", b"BOOKMOBI"
PLAIN, PACKED = 1, 2
"""Supported compression methods of the text."""
_TITLE = re.compile(rb"\A[^\0]{1,32}")
_MARK = re.compile(r"<[^<>]*+>")


class _Head(NamedTuple):
    """Fields of the first record."""

    way: int
    records: int
    locked: bool
    charset: str
    extra: int
    """Kinds of trailing entries behind the text of each record, one bit each."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, organization, description, isbn, keywords, date, copyright, language, headings and partial-text."""
    start = read_at(body, 0, 78)
    if start[60:68] not in (PALM, MOBI):
        body.seek(0)
        unrecognized.run(facts, body, found)
        return
    count = unpack(">H", start, 76)[0] if len(start) == 78 else 0
    table = read_at(body, 78, 8 * min(count, RECORDS))
    places = [unpack(">I", table, at)[0] for at in range(0, len(table) - 7, 8)]
    ends = [*places[1:], max(facts.size, 0)]
    if not places:
        raise SummaryError("book: no records")
    first = read_at(body, places[0], min(ends[0] - places[0], MAX_RECORD))
    head = _head(first, start[60:68] == MOBI)
    if start[60:68] == MOBI:
        _about(first, head.charset, found)
    found.add("encrypted", "a key is needed" if head.locked else "")
    if name := _TITLE.match(start):
        found.set("title", squeeze(name[0].decode("latin-1").replace("_", " ")), 300)
    if head.locked or head.way not in (PLAIN, PACKED):
        return
    records = (read_at(body, at, min(end - at, MAX_RECORD)) for at, end in zip(places[1:], ends[1:], strict=True))
    _text(_unpacked(records, head), found.most(MAX_TEXT), head, found)


def _head(first: bytes, mobi: bool) -> _Head:
    way, records, locked = unpack(">H6xH2xH", first) or (0, 0, 0)
    length, _, charset = unpack(">3I", first, 20) or (0, 0, 0)
    extra = unpack(">H", first, 242) if mobi and length >= 228 else ()
    return _Head(way, records, bool(locked) and mobi, "utf-8" if charset == 65_001 and mobi else "cp1252", extra[0] if extra else 0)


def _about(first: bytes, charset: str, found: Found) -> None:
    """Add the metadata of EXTH, and the full name."""
    length = (unpack(">I", first, 20) or (0,))[0]
    at = 16 + length
    count = (unpack(">I", first, at + 8) or (0,))[0] if first[at : at + 4] == b"EXTH" else 0
    at += 12
    for _ in range(min(count, 500)):
        kind, size = unpack(">II", first, at) or (0, 0)
        if size < 8:
            break
        value = first[at + 8 : at + size].decode(charset, "replace")
        if kind in NAMES:
            # A description may contain HTML.
            text = squeeze(_MARK.sub(" ", value)) if kind == 103 else squeeze(value)
            text = text.partition("-")[0].lower() if kind == 524 else text
            (found.set if kind in (503, 524) else found.add)(NAMES[kind], text, 2_000)
        at += size
    place, size = unpack(">II", first, 84) or (0, 0)
    found.set("title", squeeze(first[place : place + min(size, 1_000)].decode(charset, "replace")), 300)


def _unpacked(records: Iterator[bytes], head: _Head) -> Iterator[bytes]:
    """Yield the decompressed text, record by record."""
    for record in islice(records, head.records):
        text = _without_trailing_entries(record, head.extra)
        yield text if head.way == PLAIN else unpacked(text)


def _without_trailing_entries(record: bytes, extra: int) -> bytes:
    """Return a record without its trailing entries; each ends with its length, stored in 7-bit groups from the end."""
    for bit in range(1, 16):
        if extra >> bit & 1 and record:
            length = 0
            for shift, byte in enumerate(reversed(record[-4:])):
                length |= (byte & 0x7F) << 7 * shift
                if byte & 0x80:
                    break
            record = record[: max(len(record) - length, 0)]
    return record[: -(record[-1] & 3) - 1] if extra & 1 and record else record


def unpacked(record: bytes) -> bytes:
    """Decompress a PalmDoc record: literals, a space with a letter, and references (distance, length) to the output."""
    out = bytearray()
    at = 0
    while at < len(record):
        byte = record[at]
        at += 1
        if 1 <= byte <= 8:
            out += record[at : at + byte]
            at += byte
        elif byte < 0x80:
            out.append(byte)
        elif byte >= 0xC0:
            out += bytes((0x20, byte ^ 0x80))
        elif at < len(record):
            back, length = divmod(byte << 8 & 0x3F00 | record[at], 8)
            length += 3
            at += 1
            if not 0 < back <= len(out):
                break
            # A reference may extend into its own output.
            piece = bytes(out[-back:][:length])
            out += (piece * (length // len(piece) + 1))[:length]
    return bytes(out)


def _text(pieces: Iterator[bytes], most: int, head: _Head, found: Found) -> None:
    """Add the text (HTML, or plain text in PalmDoc's own files) and its headings."""
    raw = b""
    for piece in pieces:
        raw += piece
        if len(raw) > 4 * most + SPARE:
            break
    text = raw.decode(head.charset, "replace")
    if "<" not in text or ("<p" not in text and "<html" not in text.lower() and "<body" not in text.lower()):
        found.body("\n".join(filter(None, map(squeeze, text.split("\n")))), MAX_TEXT)
        return
    tree = page(text.encode(), "utf-8")
    for node in tree.css("h1, h2, h3")[:HEADINGS]:
        found.add("headings", squeeze(node.text()[:500]), 200)
    for url in page_links(tree):
        add_reference(url, found)
    found.body(page_text(tree, most, whole=bool(found.full)).strip(), MAX_TEXT)


SUMMARIZER = Summarizer(types=("Ebook",), run=run)
