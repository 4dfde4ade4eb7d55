"""Image metadata of cameras and editors: Exif (CIPA DC-008, a directory of TIFF 6.0) and XMP (ISO 16684-1)."""

from __future__ import annotations

import re
from html import unescape

from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize._base import Found
from processors.essence.summarize.binary._binary import unpack

ENTRIES = 500
DIRECTORIES = 4
TAGS = {
    0x10E: "description", 0x10F: "camera", 0x110: "camera", 0x131: "generator", 0x132: "date", 0x13B: "author", 0x8298: "copyright",
    0x9003: "creation-date", 0x9286: "comments", 0x9C9B: "title", 0x9C9C: "comments", 0x9C9D: "author", 0x9C9E: "keywords",
    0x9C9F: "description", 0x100: "width", 0x101: "height",
}  # fmt: skip
XMP = {
    b"dc:title": "title", b"dc:creator": "author", b"dc:description": "description", b"dc:subject": "keywords",
    b"dc:rights": "copyright", b"photoshop:Headline": "title", b"photoshop:City": "place", b"photoshop:Country": "place",
}  # fmt: skip
_ITEM = re.compile(rb"<rdf:li[^<>]{0,200}>([^<]{1,2000})")
_MARK = re.compile(rb"<[^<>]*+>")


def add_exif(raw: bytes, found: Found, *, sizes: bool = False) -> None:
    """Add the entries of Exif directories; `sizes`: width and height too (of a TIFF itself)."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(raw[:4], "")
    waiting = list(unpack(f"{order}I", raw, 4)) if order else []
    seen = {0}
    told: set[int] = set()
    for _ in range(DIRECTORIES):
        at = waiting.pop(0) if waiting else 0
        count = unpack(f"{order}H", raw, at) if at not in seen else ()
        seen.add(at)
        for n in range(min(count[0], ENTRIES) if count else 0):
            entry = unpack(f"{order}HHI", raw, at + 2 + 12 * n)
            if entry and entry[0] == 0x8769:
                waiting += unpack(f"{order}I", raw, at + 10 + 12 * n)
            elif entry and entry[0] in TAGS and entry[0] not in told and (sizes or entry[0] > 0x101):
                told.add(entry[0])
                _add(raw, at + 10 + 12 * n, entry, order, found)


def _add(raw: bytes, at: int, entry: tuple[int, ...], order: str, found: Found) -> None:
    """Add one entry: a short value is stored in it, a long one elsewhere."""
    tag, kind, count = entry
    if kind in (3, 4):
        value = str((unpack(order + ("H" if kind == 3 else "I"), raw, at) or ("",))[0])
    else:
        place = at if count <= 4 else (unpack(f"{order}I", raw, at) or (0,))[0]
        text = raw[place : place + min(count, 4_000)]
        if tag == 0x9286:
            # The first eight bytes of a comment name its charset.
            wide, text = text.startswith(b"UNICODE"), text[8:]
        else:
            wide = tag >= 0x9C9B
        codec = "utf-16-le" if tag != 0x9286 or order == "<" else "utf-16-be"
        value = text.decode(codec, "replace").partition("\0")[0] if wide else decode(text.partition(b"\0")[0])
    for part in value.split(";") if tag in (0x9C9D, 0x9C9E) else [value]:
        found.add(TAGS[tag], squeeze(part), 1_000)


def add_xmp(raw: bytes, found: Found) -> None:
    """Add the common properties of an XMP packet: their list items, or their plain values."""
    start = raw.find(b"<rdf:RDF")
    if start < 0:
        return
    for name, meant in XMP.items():
        at = raw.find(b"<" + name, start)
        end = raw.find(b"</" + name, at, at + 16_384) if at >= 0 else -1
        if end >= 0:
            inner = raw[at:end]
            # A property without items has a plain value; of an empty list only markup remains.
            for item in _ITEM.findall(inner)[:50] or [_MARK.sub(b"", inner)]:
                found.add(meant, unescape(squeeze(decode(item))), 1_000)
