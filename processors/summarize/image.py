"""Images: width and height from the header, and the comments that PNG and GIF carry as text."""

from __future__ import annotations

import struct
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._text import decode

MAX_READ = 65_536
PNG_TEXT = {"Title": "title", "Author": "author", "Description": "description", "Software": "generator", "Copyright": "copyright"}


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add width and height (pixels), file-size, and what text the file holds."""
    raw = body.read(MAX_READ)
    size = _size(raw)
    found.add("file-size", str(facts.size) if facts.size >= 0 else "")
    if size:
        found.add("width", str(size[0]))
        found.add("height", str(size[1]))
    if raw.startswith(b"\x89PNG"):
        _png_texts(raw, found)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _size(raw: bytes) -> tuple[int, int] | None:
    """Width and height of PNG (11.2.2), GIF (18), BMP and JPEG; None for others, or where the header is cut."""
    try:
        if raw.startswith(b"\x89PNG"):
            return struct.unpack_from(">II", raw, 16)
        if raw.startswith(b"GIF8"):
            return struct.unpack_from("<HH", raw, 6)
        if raw.startswith(b"BM"):
            return struct.unpack_from("<II", raw, 18)
        return _jpeg_size(raw) if raw.startswith(b"\xff\xd8") else None
    except struct.error:
        return None


def _jpeg_size(raw: bytes) -> tuple[int, int] | None:
    """The size in the frame header (ITU T.81, B.2.2), found by going from marker to marker."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker, length = struct.unpack_from(">xBH", raw, at)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        at += 2 + length
    return None


def _png_texts(raw: bytes, found: Found) -> None:
    """The tEXt chunks (PNG, 11.3.4.3): keyword, NUL, latin-1."""
    at = 8
    while at + 8 <= len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        if kind == b"tEXt":
            keyword, _, text = raw[at + 8 : at + 8 + length].partition(b"\0")
            found.add(PNG_TEXT.get(decode(keyword), "comments"), decode(text), 1_000)
        at += 12 + length


SUMMARIZER = Summarizer(types=("Image",), run=run)
