"""Images: width and height from the header, the texts of PNG, the comments of JPEG, and what Exif and XMP say."""

from __future__ import annotations

import struct
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._exif import add_exif, add_xmp
from processors.summarize._text import decode

MAX_READ = 262_144
"""Bytes that are read: what tells of an image stands before it, but in most TIFFs."""
SEGMENTS = 1_000
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
    elif raw.startswith(b"\xff\xd8"):
        _jpeg_texts(raw, found)
    elif raw.startswith((b"II*\0", b"MM\0*")):
        add_exif(raw, found, sizes=True)
    elif raw[8:12] == b"WEBP":
        _webp_texts(raw, body, found)
    add_xmp(raw, found)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _size(raw: bytes) -> tuple[int, int] | None:
    """Width and height of PNG (11.2.2), GIF (18), BMP, WebP and JPEG; None for others, or where the header is cut."""
    try:
        if raw.startswith(b"\x89PNG"):
            return struct.unpack_from(">II", raw, 16)
        if raw.startswith(b"GIF8"):
            return struct.unpack_from("<HH", raw, 6)
        if raw.startswith(b"BM"):
            return struct.unpack_from("<II", raw, 18)
        if raw[8:12] == b"WEBP":
            return _webp_size(raw)
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


def _webp_size(raw: bytes) -> tuple[int, int] | None:
    """The size in the first chunk (RFC 9649, 2.5 to 2.7): of the canvas, of a lossless image, or of a key frame of VP8."""
    kind = raw[12:16]
    if kind == b"VP8X" and len(raw) >= 30:
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    if kind == b"VP8L" and len(raw) >= 25:
        bits = int.from_bytes(raw[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and raw[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", raw, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _webp_texts(raw: bytes, body: BinaryIO, found: Found) -> None:
    """The chunks of Exif and XMP (RFC 9649, 2.7.1.4), which stand behind the image."""
    at = 12
    for _ in range(SEGMENTS):
        body.seek(at)
        head = body.read(8)
        if len(head) < 8:
            return
        size = int.from_bytes(head[4:], "little")
        if head[:4] == b"EXIF":
            add_exif(body.read(min(size, MAX_READ)).removeprefix(b"Exif\0\0"), found)
        elif head[:4] == b"XMP " and at + 8 + size > len(raw):
            add_xmp(body.read(min(size, MAX_READ)), found)
        at += 8 + size + size % 2


def _jpeg_texts(raw: bytes, found: Found) -> None:
    """The segments of Exif and of comments (ITU T.81, B.2.4.5)."""
    at = 2
    for _ in range(SEGMENTS):
        head = struct.unpack_from(">BBH", raw, at) if at + 4 <= len(raw) else (0, 0, 0)
        if head[0] != 0xFF or head[1] in (0xD9, 0xDA):
            return
        body = raw[at + 4 : at + 2 + head[2]]
        if head[1] == 0xE1 and body.startswith(b"Exif\0\0"):
            add_exif(body[6:], found)
        elif head[1] == 0xFE:
            found.add("comments", decode(body.rstrip(b"\0")), 1_000)
        at += 2 + head[2]


def _png_texts(raw: bytes, found: Found) -> None:
    """The tEXt chunks (PNG, 11.3.4.3): keyword, NUL, latin-1."""
    at = 8
    while at + 8 <= len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        if kind == b"tEXt":
            keyword, _, text = raw[at + 8 : at + 8 + length].partition(b"\0")
            found.add(PNG_TEXT.get(decode(keyword), "comments"), decode(text), 1_000)
        elif kind == b"iTXt":
            keyword, _, rest = raw[at + 8 : at + 8 + length].partition(b"\0")
            # Compressed or not and how (two bytes), the language, the keyword in it (11.3.4.5).
            text = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
            if rest[:1] == b"\0" and not keyword.startswith(b"XML:"):
                found.add(PNG_TEXT.get(decode(keyword), "comments"), decode(text), 1_000)
        elif kind == b"eXIf":
            add_exif(raw[at + 8 : at + 8 + length], found)
        at += 12 + length


SUMMARIZER = Summarizer(types=("Image",), run=run)
