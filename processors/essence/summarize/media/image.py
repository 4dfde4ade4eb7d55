"""Images: width and height from the header, the texts of PNG, the comments of JPEG, Exif and XMP.

A raw file of a camera is mostly a TIFF with another signature, or contains one.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import BinaryIO

from processors.essence.formats.text import decode
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import unpack
from processors.essence.summarize.media._exif import add_exif, add_xmp
from processors.essence.summarize.media._image_size import size_of
from processors.essence.summarize.media._riff import add_info

MAX_READ = 262_144
"""Bytes that are read: metadata precedes the image, except in most TIFFs."""
SEGMENTS = 1_000
TIFFS = {
    **dict.fromkeys((b"II*\0", b"IIU\0", b"IIRO", b"IIRS", b"EP*\0"), b"II*\0"),
    **dict.fromkeys((b"MM\0*", b"MMOR"), b"MM\0*"),
}
"""Signature of a TIFF, or of a camera's or scanner's variant, and the TIFF signature of the same byte order."""
HELD = 4
"""Maximum Exif directories inside of other formats."""
_HELD = re.compile(rb"(?:Exif\0\0(?:\0\0)?|CMT[12]|\0TTW....)(II\*\0|MM\0\*)", re.DOTALL)
"""Bytes that precede a TIFF in HEIF, AVIF and JPEG XL, in CR3, and in MRW."""
_FIG_TEXT = re.compile(rb"^4(?: [\d.+-]{1,20}){12} ([^\n]{1,2000}?)\\001$", re.MULTILINE)
_FIG_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
PNG_TEXT = {
    "Title": "title",
    "Author": "author",
    "Description": "description",
    "Software": "generator",
    "Copyright": "copyright",
    "Creation Time": "creation-date",
}
MAX_TEXT = 4_096
"""Maximum bytes of a compressed text that are read."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add width and height (pixels), and the texts of the file."""
    raw = body.read(MAX_READ)
    size = size_of(raw, facts.content_type)
    if size:
        found.add("width", str(size[0]))
        found.add("height", str(size[1]))
    if raw.startswith(b"\x89PNG"):
        _png_texts(raw, found)
    elif raw.startswith(b"\xff\xd8"):
        _jpeg_texts(raw, found)
    elif raw[8:12] == b"WEBP":
        _webp_texts(raw, body, found)
    elif raw.startswith(b"ACON", 8):
        add_info(raw, found)
    elif raw.startswith(b"#FIG "):
        _fig_texts(raw, found)
    elif raw.startswith(b" EMF", 40):
        _emf_texts(raw, found)
    else:
        _directories(raw, found, sizes=not size)
    add_xmp(raw, found)
    if facts.type != "Image" and not found.new():
        body.seek(0)
        unrecognized.run(facts, body, found)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _directories(raw: bytes, found: Found, *, sizes: bool) -> None:
    """Add the Exif directories of a TIFF itself, or those inside of another format."""
    order = TIFFS.get(raw[:4])
    if order:
        add_exif(order + raw[4:], found, sizes=sizes)
    elif raw.startswith(b"FUJIFILMCCD-RAW"):
        place, size = unpack(">II", raw, 84) or (0, 0)
        _jpeg_texts(raw[place : place + size], found)
    else:
        for held in list(_HELD.finditer(raw))[:HELD]:
            add_exif(raw[held.start(1) :], found, sizes=sizes)


def _fig_texts(raw: bytes, found: Found) -> None:
    """Add the texts of an Xfig drawing, in order: bytes beyond ASCII are octal (Fig Format 3.2, 1.6)."""
    said = b"\n".join(_FIG_TEXT.findall(raw))
    found.body(decode(_FIG_OCTAL.sub(lambda code: bytes([int(code[1], 8)]), said)))


def _emf_texts(raw: bytes, found: Found) -> None:
    """Add the description (MS-EMF, 2.2.9): program and title, each ended by a UTF-16 NUL."""
    count, place = unpack("<II", raw, 60) or (0, 0)
    program, _, rest = raw[place : place + 2 * min(count, 1_000)].decode("utf-16-le", "replace").partition("\0")
    found.add("generator", program, 300)
    found.add("title", rest.partition("\0")[0], 300)


def _webp_texts(raw: bytes, body: BinaryIO, found: Found) -> None:
    """Add the Exif and XMP chunks (RFC 9649, 2.7.1.4), which follow the image."""
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
    """Add the Exif and comment segments (ITU T.81, B.2.4.5)."""
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
    """Add the text chunks, and the time of the last change (PNG, 11.3.3 and 11.3.4)."""
    at = 8
    while at + 8 <= len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        data = raw[at + 8 : at + 8 + length]
        keyword, _, rest = data.partition(b"\0")
        if kind == b"tEXt":
            _png_text(keyword, rest, found)
        elif kind == b"zTXt":
            _png_text(keyword, _inflated(rest[1:]), found)
        elif kind == b"iTXt":
            # Compression flag and method (two bytes), language, translated keyword, text.
            text = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
            _png_text(keyword, _inflated(text) if rest[:1] == b"\1" else text, found)
        elif kind == b"eXIf":
            add_exif(data, found)
        elif kind == b"tIME" and length == 7:
            year, *others = struct.unpack(">H5B", data)
            found.add("modification-date", "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z".format(year, *others) if year else "")
        at += 12 + length


def _png_text(keyword: bytes, text: bytes, found: Found) -> None:
    """Add a text under its keyword, except internal data of programs: XMP, which is read separately, profiles, dates."""
    name = decode(keyword)
    if name in PNG_TEXT or not name.startswith(("XML:", "date:", "Raw profile")):
        found.add(PNG_TEXT.get(name, "comments"), decode(text), 1_000)


def _inflated(data: bytes) -> bytes:
    """Return the start of a decompressed text; b"" if it is damaged."""
    try:
        return zlib.decompressobj().decompress(data, MAX_TEXT)
    except zlib.error:
        return b""


SUMMARIZER = Summarizer(types=("Image",), run=run)
