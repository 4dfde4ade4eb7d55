"""Targets of links in Office documents: Word's fields, workbooks until 2007, Outlook's compressed RTF.

Laws:
- Each pattern is searched from a mark that precedes an address, and returns at most MAX_URL characters of it.
- Targets are returned as stored; `reference` (`_package`) keeps those with an address outside of the document.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from html import unescape

MAX_URL = 1_000
MONIKERS = 1_000
"""Maximum links of a workbook that are read."""
MONIKER = bytes.fromhex("e0c9ea79f9bace118c8200aa004ba90b")
"""Class id of a stored address ([MS-OSHARED] 2.3.7.6, URLMoniker)."""
MAX_RTF = 1 << 20
"""Maximum bytes to which the text of an Outlook message is decompressed."""
COMPRESSED, RAW = b"LZFu", b"MELA"
DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""Initial content of the dictionary ([MS-OXRTFCP] 2.1.2.1)."""
WINDOW = 4_096

# Word itself also accepts typographic quotes.
_FIELD = re.compile(r'HYPERLINK[^"\u201c\u201d\x13-\x15]{0,20}["\u201c\u201d]([^"\u201c\u201d\x13-\x15]{1,1000})["\u201c\u201d]')
_ESCAPE = re.compile(rb"\\(?:'([0-9A-Fa-f]{2})|([{}\\]))")
_HREF = re.compile(r"""<a\s[^<>]{0,500}?href\s{0,9}=\s{0,9}["']([^"'<>]{1,1000})["']""", re.IGNORECASE)


def fields(text: str) -> list[str]:
    """Return the targets of a Word document's HYPERLINK fields (ECMA-376-1, 17.16.5.25)."""
    return [url.strip() for url in _FIELD.findall(text)]


def monikers(raw: bytes) -> Iterator[str]:
    """Yield the addresses anywhere in a workbook's records: those of cells and of drawings."""
    at = -1
    for _ in range(MONIKERS):
        at = raw.find(MONIKER, at + 1)
        head = raw[at + 16 : at + 20]
        if at < 0 or len(head) < 4:
            return
        size = min(struct.unpack("<I", head)[0], 2 * MAX_URL)
        yield raw[at + 20 : at + 20 + size].decode("utf-16-le", "replace").partition("\0")[0]


def rich(raw: bytes) -> bytes:
    """Decompress Outlook's RTF ([MS-OXRTFCP] 2.2), up to the first damage; b"" if the data is in another format."""
    if len(raw) < 16 or raw[8:12] not in (COMPRESSED, RAW):
        return b""
    size = min(struct.unpack_from("<I", raw, 4)[0], MAX_RTF)
    if raw[8:12] == RAW:
        return raw[16 : 16 + size]
    # The dictionary is a window of the last output, filled up with zeros at the beginning.
    start = WINDOW - len(DICTIONARY)
    out, at = bytearray(start) + DICTIONARY, 16
    end = WINDOW + size
    while at < len(raw) and len(out) < end:
        control, at = raw[at], at + 1
        if not control:
            out += raw[at : at + 8]
            at += 8
            continue
        for bit in range(8):
            if not control >> bit & 1:
                out += raw[at : at + 1]
                at += 1
                continue
            token, at = int.from_bytes(raw[at : at + 2], "big"), at + 2
            back = (len(out) - start - (token >> 4)) % WINDOW
            # A reference to the current position ends the data.
            if at > len(raw) or not back:
                return bytes(out[WINDOW:end])
            length, first = (token & 0xF) + 2, len(out) - back
            # A reference longer than the output behind it repeats that output.
            out += out[first : first + length] if back >= length else (out[first:] * length)[:length]
    return bytes(out[WINDOW:end])


def enclosed(raw: bytes) -> Iterator[str]:
    """Yield the link targets of RTF that encapsulates an HTML page ([MS-OXRTFEX]) or has fields."""
    text = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)) if match[1] else match[2], raw).decode("cp1252", "replace")
    yield from fields(text)
    yield from map(unescape, _HREF.findall(text))
