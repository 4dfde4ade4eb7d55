"""Documents of the 1990s: text of WordPerfect from 4.2 on and Windows Write, cells of Lotus 1-2-3, titles of compiled HTML help.

Other files are summarized as Unrecognized.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import squeeze
from processors.essence.formats.wordperfect4 import is_wordperfect4, wordperfect4_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import short_text, unpack
from processors.essence.summarize.office._wordperfect import wordperfect_text

MAX_READ = 8 << 20
TEXT = 4_096
"""Maximum characters of the text, unless the full text is requested."""
CELLS = 100_000
LABELS = {0x0F: 5, 0x16: 4}
"""Kinds of records with text cells, and the offset of the text in each."""
CODES = 20
SYSTEM = {3: "title", 2: "home", 9: "generator"}
"""Attribute of the summary by code of the #SYSTEM file."""
CHARSETS = {
    0x01: "cp1256", 0x04: "gbk", 0x05: "cp1250", 0x08: "cp1253", 0x0D: "cp1255", 0x0E: "cp1250", 0x11: "cp932", 0x12: "cp949",
    0x15: "cp1250", 0x18: "cp1250", 0x19: "cp1251", 0x1E: "cp874", 0x1F: "cp1254", 0x22: "cp1251", 0x24: "cp1250",
}  # fmt: skip
"""Windows code page by language number (MS-LCID); that of all others is cp1252."""
_SYSTEM = re.compile(rb"\x08/#SYSTEM([\x80-\xff]*[\0-\x7f])([\x80-\xff]*[\0-\x7f])([\x80-\xff]*[\0-\x7f])")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add the text, or title and generator."""
    raw = body.read(MAX_READ)
    most = found.most(TEXT)
    if raw.startswith(b"\xffWPC"):
        _text(wordperfect_text(raw, most), found)
    elif is_wordperfect4(raw[:4_096]):
        _text(wordperfect4_text(raw, most), found)
    elif raw.startswith((b"\x31\xbe\0\0\0\xab", b"\x32\xbe\0\0\0\xab")):
        end = (unpack("<I", raw, 14) or (0,))[0]
        # Paragraphs end with line breaks; 0x1F is a soft hyphen.
        _text(raw[128 : min(end, 128 + most)].decode("cp1252", "replace").replace("\x1f", "").replace("\r\n", "\n"), found)
    elif raw.startswith((b"\0\0\x02\0\x04\x04", b"\0\0\x02\0\x06\x04", b"\0\0\x1a\0\0\x10\4\0", b"\0\0\x1a\0\2\x10\4\0")):
        _text("\n".join(_labels(raw, most)), found)
    elif raw.startswith(b"ITSF"):
        _help(raw, found)
    if not found.new():
        body.seek(0)
        unrecognized.run(facts, body, found)


def _text(text: str, found: Found) -> None:
    """Add a text, one paragraph a line."""
    text = text.replace("\f", "\n").replace("\0", "")
    found.body("\n".join(filter(None, map(squeeze, text.split("\n")))))


def _labels(raw: bytes, most: int) -> list[str]:
    """Return the text cells of Lotus 1-2-3 (WK1, WK3), without the alignment character before each text."""
    labels: list[str] = []
    at = 0
    for _ in range(CELLS):
        kind, length = unpack("<HH", raw, at) or (1, 0)
        held = raw[at + 4 : at + 4 + length]
        if kind in LABELS and len(held) > 6:
            labels.append(short_text(held[LABELS[kind] :], "cp850").lstrip("'\"^\\|"))
            most -= len(labels[-1])
        if kind == 1 or most <= 0:
            break
        at += 4 + length
    return [label for label in labels if any(map(str.isalnum, label))]


def _number(raw: bytes) -> int:
    """Return a number stored in 7-bit groups, the highest first."""
    value = 0
    for byte in raw[:9]:
        value = value << 7 | byte & 0x7F
    return value


def _help(raw: bytes, found: Found) -> None:
    """Add metadata of compiled HTML help (ITSF) from its #SYSTEM file; the rest is compressed."""
    entry = _SYSTEM.search(raw)
    start = (unpack("<Q", raw, 88) or (0,))[0]
    if not entry or _number(entry[1]):
        return
    language = (unpack("<I", raw, 20) or (0,))[0]
    charset = "cp950" if language == 0x404 else CHARSETS.get(language & 0x3FF, "cp1252")
    at = start + _number(entry[2])
    end = at + _number(entry[3])
    at += 4
    for _ in range(CODES):
        code, length = unpack("<HH", raw, at) or (0, 0)
        if at >= end:
            return
        if code in SYSTEM:
            found.add(SYSTEM[code], short_text(raw[at + 4 : at + 4 + length], charset), 300)
        at += 4 + length


SUMMARIZER = Summarizer(types=("OtherDocument",), run=run)
