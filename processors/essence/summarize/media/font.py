"""Fonts: names, version, designer, copyright and licence, of BDF, PCF, Type 1, AFM, TrueType, OpenType, WOFF and WOFF 2 (seed 003).

Text formats are read by keywords, PCF by its property table, TrueType and formats based on it by the name table
(OpenType 1.9, `name`).
"""

from __future__ import annotations

import re
import zlib
from typing import BinaryIO

import brotli  # type: ignore[import-untyped]

from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import name_at, read_at, unpack

MAX_READ = 65_536
MAX_NAMES = 262_144
TABLES = 100
RECORDS = 1_000
MAX_PACKED, MAX_UNPACKED = 65_536, 16 << 20
"""Bytes of WOFF 2 that are read at a time, and maximum bytes that are decompressed."""
KNOWN = {4: b"maxp", 5: b"name"}
"""The wanted tables, by their numbers in WOFF 2."""

NAMES = {
    0: "copyright", 1: "family", 2: "style", 4: "title", 5: "version", 7: "trademark", 8: "organization", 9: "author",
    10: "description", 11: "url-references", 12: "url-references", 13: "license", 14: "url-references", 16: "family", 17: "style",
}  # fmt: skip
TEXT = {
    "FullName": "title", "FONT": "title", "FontName": "font-name", "FamilyName": "family", "FAMILY_NAME": "family",
    "Weight": "style",
    "WEIGHT_NAME": "style", "Notice": "copyright", "COPYRIGHT": "copyright", "NOTICE": "copyright", "version": "version",
    "Version": "version",
    "FONT_VERSION": "version", "COMMENT": "comments", "Comment": "comments", "FOUNDRY": "organization", "CHARS": "glyphs",
    "CHARSET_REGISTRY": "charset", "EncodingScheme": "charset", "FACE_NAME": "title",
}  # fmt: skip
_LINE = re.compile(rb"^([A-Za-z_]{3,20})[ \t]+(?:\"((?:[^\"\n]|\"\")*+)\"|([^\n]{1,1000}))", re.MULTILINE)
_TYPE1 = re.compile(
    rb"/(FullName|FontName|FamilyName|Weight|Notice|version|Copyright)[ \t]*(?:\(((?:[^()\\]|\\.){1,1000}+)\)|/([^\s/(){}]{1,100}))"
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, font-name, family, style, version, author, organization, copyright, license, description and glyphs."""
    head = body.read(MAX_READ)
    if head.startswith((b"STARTFONT", b"StartFontMetrics")):
        _text(head, found)
    elif head.startswith((b"\x80\x01", b"%!")):
        for name, text, plain in _TYPE1.findall(head):
            found.add(TEXT.get(name.decode(), "copyright"), _plain(re.sub(rb"\\(.)", rb"\1", text) or plain), 1_000)
    elif head.startswith(b"\x01fcp"):
        _pcf(body, head, found)
    elif head.startswith((b"\0\1\0\0", b"OTTO", b"true", b"ttcf", b"wOFF")):
        _sfnt(body, head, found)
    elif head.startswith(b"wOF2"):
        _woff2(body, head, found)
    elif not _tfm(head, found):
        body.seek(0)
        unrecognized.run(facts, body, found)
    found.set("title", f"{found.text('family')} {found.text('style')}".strip() or found.text("font-name"), 300)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _plain(raw: bytes) -> str:
    return raw.decode("latin-1").replace('""', '"').strip()


def _text(head: bytes, found: Found) -> None:
    """Add keywords of BDF (Adobe, 2.2) and AFM (Adobe, 4.1), up to the first glyph."""
    for name, quoted, plain in _LINE.findall(re.split(rb"^STARTCHAR |^StartCharMetrics ", head, maxsplit=1, flags=re.MULTILINE)[0]):
        meant = TEXT.get(name.decode(), "")
        if meant:
            found.add("font-name" if name == b"FONT" else meant, _plain(quoted or plain), 1_000)


def _tfm(head: bytes, found: Found) -> bool:
    """Add properties of TeX font metrics (TFtoPL, 8 to 13); return whether the file is one.

    It begins with twelve lengths, checksum, size, and two texts with their lengths.
    """
    lengths = unpack(">12H", head)
    # The length of the file is the sum of its parts.
    if not lengths or lengths[0] != 6 + lengths[1] + (lengths[3] - lengths[2] + 1) + sum(lengths[4:]):
        return False
    found.add("format", "TeX font metrics")
    found.add("size", f"{(unpack('>I', head, 28) or (0,))[0] / (1 << 20):g}pt")
    found.add("glyphs", str(lengths[3] - lengths[2] + 1))
    for at, most, meant in ((32, 40, "charset"), (72, 20, "family")):
        text = head[at + 1 : at + 1 + min(head[at], most - 1)] if at < 24 + 4 * lengths[1] <= len(head) else b""
        found.add(meant, text.decode("latin-1") if text.isascii() else "", 100)
    return True


def _pcf(body: BinaryIO, head: bytes, found: Found) -> None:
    """Add properties of a compiled font (X11, PCF): pairs of offsets in a list of strings."""
    count = min((unpack("<I", head, 4) or (0,))[0], TABLES)
    tables = [t for n in range(count) if (t := unpack("<4I", head, 8 + 16 * n))]
    place = next(((size, at) for kind, _, size, at in tables if kind == 1), None)
    raw = read_at(body, place[1], min(place[0], MAX_READ)) if place else b""
    order = ">" if raw[:1] and raw[0] & 4 else "<"
    number = min((unpack(f"{order}I", raw, 4) or (0,))[0], RECORDS)
    names = 8 + 9 * number + (-number * 9) % 4 + 4
    for n in range(number):
        prop = unpack(f"{order}IBI", raw, 8 + 9 * n)
        meant = TEXT.get(name_at(raw, names + prop[0], 40), "") if prop and prop[1] else ""
        if meant:
            found.add(
                "font-name" if name_at(raw, names + prop[0], 5) == "FONT" else meant, name_at(raw, names + prop[2], 1_000), 1_000
            )


def _sfnt(body: BinaryIO, head: bytes, found: Found) -> None:
    """Add the name table and the number of glyphs."""
    base = (unpack(">I", head, 12) or (0,))[0] if head.startswith(b"ttcf") else 0
    head = read_at(body, base, MAX_READ) if base else head
    packed = head.startswith(b"wOFF")
    count = min((unpack(">H", head, 12 if packed else 4) or (0,))[0], TABLES)
    for n in range(count):
        entry = unpack(">4s4I", head, 44 + 20 * n) if packed else unpack(">4s3I", head, 12 + 16 * n)
        if not entry or entry[0] not in (b"name", b"maxp"):
            continue
        raw = read_at(body, entry[1] if packed else entry[2], min(entry[2] if packed else entry[3], MAX_NAMES))
        if packed and entry[2] < entry[3]:
            raw = zlib.decompressobj().decompress(raw, MAX_NAMES)
        if entry[0] == b"name":
            _names(raw, found)
        else:
            found.add("glyphs", str((unpack(">H", raw, 4) or ("",))[0]))


def _woff2(body: BinaryIO, head: bytes, found: Found) -> None:
    """Add the name table of WOFF 2 (W3C, 4 and 5): all tables are one compressed stream, whose start is decompressed."""
    at, place = 48, 0
    wanted: dict[bytes, tuple[int, int]] = {}
    for _ in range(min((unpack(">H", head, 12) or (0,))[0], TABLES)):
        flags = head[at] if at < len(head) else 0
        at += 1
        tag = KNOWN.get(flags & 63, b"")
        if flags & 63 == 63:
            tag, at = head[at : at + 4], at + 4
        size, at = _base128(head, at)
        # The outline tables are transformed unless the version is 3, all others unless it is 0.
        if (flags >> 6 != 3) if flags & 63 in (10, 11) else flags >> 6:
            size, at = _base128(head, at)
        wanted[tag] = (place, size)
        place += size
    end = max((start + size for tag, (start, size) in wanted.items() if tag in (b"name", b"maxp")), default=0)
    packed = (unpack(">I", head, 20) or (0,))[0]
    raw = _unpacked(body, at, packed, min(end, MAX_UNPACKED))
    start, size = wanted.get(b"maxp", (0, 0))
    found.add("glyphs", str((unpack(">H", raw, start + 4) or ("",))[0]) if size else "")
    start, size = wanted.get(b"name", (0, 0))
    _names(raw[start : start + min(size, MAX_NAMES)], found)


def _unpacked(body: BinaryIO, at: int, packed: int, size: int) -> bytes:
    """Return the first `size` bytes of a Brotli stream of `packed` bytes."""
    body.seek(at)
    decompressor, parts, left = brotli.Decompressor(), list[bytes](), size
    while left > 0 and not decompressor.is_finished():
        more = body.read(min(MAX_PACKED, packed)) if decompressor.can_accept_more_data() else b""
        packed -= len(more)
        parts.append(decompressor.process(more, output_buffer_limit=left))
        left -= len(parts[-1])
        if not more and not parts[-1]:
            break
    return b"".join(parts)[:size]


def _base128(raw: bytes, at: int) -> tuple[int, int]:
    """Return a number in 7-bit groups (WOFF 2, 4.1), of at most five bytes, and the offset behind it."""
    value = 0
    for byte in raw[at : at + 5]:
        at += 1
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            break
    return value, at


def _names(raw: bytes, found: Found) -> None:
    """Add the names in English, or in another language if there are no English ones."""
    header = unpack(">3H", raw)
    records = [r for n in range(min(header[1], RECORDS) if header else 0) if (r := unpack(">6H", raw, 6 + 12 * n))]
    # English of Windows (platform 3, language 0x409), then of the Macintosh (1, 0), then Unicode's, then all others.
    order = {(3, 0x409): 0, (1, 0): 1, (0, 0): 2}
    done: set[int] = set()
    for platform, _, _, kind, length, at in sorted(records, key=lambda r: (order.get((r[0], r[2]), 3), -r[3])):
        meant = NAMES.get(kind, "")
        if not meant or kind in done or (kind in (1, 2) and meant in found.attributes):
            continue
        done.add(kind)
        text = raw[header[2] + at : header[2] + at + length]
        found.add(meant, text.decode("mac-roman" if platform == 1 else "utf-16-be", "replace"), 1_000)


SUMMARIZER = Summarizer(types=("Font",), run=run)
