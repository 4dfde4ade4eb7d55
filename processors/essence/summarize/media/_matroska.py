"""Matroska and WebM: metadata elements (RFC 9559) in EBML (RFC 8794). Clusters, which hold the media data, are skipped."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, NamedTuple

from processors.essence.formats.dates import utc
from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Found
from processors.essence.summarize.binary._binary import read_at

ELEMENTS = 20_000
"""Maximum elements of a file: a film of three hours has some 10,000 clusters."""
MAX_ELEMENT = 1 << 20
"""Maximum bytes of an element that are read."""
VALUES = 1_000
SEGMENT, CLUSTER = 0x18538067, 0x1F43B675
WANTED = {0x1549A966: "info", 0x1654AE6B: "tracks", 0x1254C367: "tags", 0x1043A770: "chapters", 0x1941A469: "attachments"}
"""Elements of a segment with metadata."""
MASTERS = {0xAE, 0xE0, 0xE1, 0x7373, 0x67C8, 0x45B9, 0xB6, 0x80, 0x61A7}
"""Elements in them that contain others: tracks with video and audio, tags, chapters with their texts, files."""
TAGS = {
    "TITLE": "title", "ARTIST": "author", "DIRECTOR": "author", "WRITTEN_BY": "author", "AUTHOR": "author",
    "COPYRIGHT": "copyright", "COMMENT": "description", "DESCRIPTION": "description", "SUMMARY": "description",
    "SYNOPSIS": "description", "GENRE": "keywords", "KEYWORDS": "keywords", "DATE_RELEASED": "date", "DATE": "date",
    "DATE_RECORDED": "date", "ENCODER": "generator",
    "LICENSE": "license", "PUBLISHER": "organization", "URL": "url-references",
}  # fmt: skip
TEXTS = {0x7BA9: "title", 0x5741: "generator", 0x86: "codecs", 0x85: "headings", 0x466E: "contents", 0x22B59C: "language"}
"""Attribute of the summary by element with text."""
_LANGUAGES = (
    "eng=en fre=fr fra=fr ger=de deu=de spa=es ita=it por=pt dut=nl nld=nl swe=sv dan=da nor=no fin=fi pol=pl cze=cs ces=cs slo=sk "
    "slk=sk hun=hu rum=ro ron=ro bul=bg gre=el ell=el rus=ru ukr=uk tur=tr ara=ar heb=he hin=hi jpn=ja kor=ko chi=zh zho=zh cat=ca"
)
LANGUAGES = dict(pair.split("=") for pair in _LANGUAGES.split())
"""Two-letter language codes by three-letter ones (ISO 639-2), which tracks have."""
EPOCH = datetime(2001, 1, 1, tzinfo=UTC)


class _Element(NamedTuple):
    kind: int
    at: int
    """Offset of the content."""
    size: int
    """Bytes of the content; -1 if unknown."""


def _number(raw: bytes, at: int, *, mark: bool) -> tuple[int, int]:
    """Return a number of variable length (RFC 8794, 4), with or without its length mark, and its bytes; 0 if truncated."""
    first = raw[at] if at < len(raw) else 0
    length = 9 - first.bit_length() if first else 0
    if not length or at + length > len(raw):
        return 0, 0
    value = int.from_bytes(raw[at : at + length], "big")
    if mark:
        return value, length
    value &= (1 << 7 * length) - 1
    return (-1 if value == (1 << 7 * length) - 1 else value), length


def _element(raw: bytes, at: int, base: int = 0) -> _Element | None:
    """Return the element at an offset of `raw`, which begins at offset `base` of the file."""
    kind, length = _number(raw, at, mark=True)
    size, more = _number(raw, at + length, mark=False)
    return _Element(kind, base + at + length + more, size) if length and more else None


def _within(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the elements in an element's content, nested ones included, in order."""
    waiting = [(0, len(raw))]
    for _ in range(VALUES):
        at, end = waiting[-1] if waiting else (0, 0)
        one = _element(raw, at) if at < end else None
        if one is None or one.size < 0:
            if not waiting:
                return
            waiting.pop()
            continue
        waiting[-1] = (one.at + one.size, end)
        if one.kind in MASTERS:
            waiting.append((one.at, min(one.at + one.size, end)))
        yield one.kind, b"" if one.kind in MASTERS else raw[one.at : min(one.at + one.size, end)]


def add_matroska(body: BinaryIO, found: Found) -> None:
    """Add title, duration (seconds), width, height, codecs, headings (chapters), contents (attached files), and tags."""
    at = 0
    for _ in range(ELEMENTS):
        one = _element(read_at(body, at, 12), 0, at)
        if one is None or (one.size < 0 and one.kind != SEGMENT):
            return
        if one.kind in WANTED:
            raw = read_at(body, one.at, min(one.size, MAX_ELEMENT))
            _ADDERS[WANTED[one.kind]](raw, found)
        at = one.at if one.kind == SEGMENT else one.at + one.size


def _info(raw: bytes, found: Found) -> None:
    values = dict(_within(raw))
    scale = int.from_bytes(values.get(0x2AD7B1, b"\x0f\x42\x40")[:8], "big")
    length = values.get(0x4489, b"")
    ticks = struct.unpack(">f" if len(length) == 4 else ">d", length)[0] if len(length) in (4, 8) else 0
    if 5e8 < ticks * scale < 1e21:
        found.add("duration", str(round(ticks * scale / 1e9)), 20)
    if len(values.get(0x4461, b"")) == 8:
        written = int.from_bytes(values[0x4461], "big", signed=True) // 1_000_000_000
        # An unknown date is missing, or the epoch.
        found.add("creation-date", utc(EPOCH + timedelta(seconds=written)) if 0 < written < 3_000_000_000 else "")
    _texts(raw, found)


def _tracks(raw: bytes, found: Found) -> None:
    width = height = 0
    for kind, value in _within(raw):
        if kind in (0xB0, 0xBA):
            number = int.from_bytes(value[:8], "big")
            width, height = (max(width, number), height) if kind == 0xB0 else (width, max(height, number))
    if width and height:
        found.add("width", str(width), 20)
        found.add("height", str(height), 20)
    _texts(raw, found)


def _tags(raw: bytes, found: Found) -> None:
    meant = ""
    for kind, value in _within(raw):
        if kind == 0x45A3:
            meant = TAGS.get(_text(value).upper(), "")
        elif kind == 0x4487 and meant:
            (found.set if meant == "title" else found.add)(meant, _text(value), 1_000)


def _texts(raw: bytes, found: Found) -> None:
    for kind, value in _within(raw):
        meant = TEXTS.get(kind, "")
        text = LANGUAGES.get(_text(value), "") if meant == "language" else _text(value)
        if meant:
            (found.set if meant in ("title", "language") else found.add)(meant, text, 500)


def _text(raw: bytes) -> str:
    return squeeze(raw.partition(b"\0")[0].decode("utf-8", "replace"))


_ADDERS = {"info": _info, "tracks": _tracks, "tags": _tags, "chapters": _texts, "attachments": _texts}
