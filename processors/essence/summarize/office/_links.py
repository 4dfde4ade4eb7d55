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

# Word itself also accepts typographic quotes.
_FIELD = re.compile(r'HYPERLINK[^"\u201c\u201d\x13-\x15]{0,20}["\u201c\u201d]([^"\u201c\u201d\x13-\x15]{1,1000})["\u201c\u201d]')
_ESCAPE = re.compile(rb"\\(?:'([0-9A-Fa-f]{2})|([{}\\]))")
_HREF = re.compile(r"""<a\s[^<>]{0,500}?href\s{0,9}=\s{0,9}["']([^"'<>]{1,1000})["']""", re.IGNORECASE)


def fields(text: str) -> list[str]:
    """Return the targets of a Word document's HYPERLINK fields (ECMA-376-1, 17.16.5.25)."""
    return [url.strip() for url in _FIELD.findall(text)]


def moniker_targets(raw: bytes) -> Iterator[str]:
    """Yield the addresses anywhere in a workbook's records: those of cells and of drawings."""
    at = -1
    for _ in range(MONIKERS):
        at = raw.find(MONIKER, at + 1)
        head = raw[at + 16 : at + 20]
        if at < 0 or len(head) < 4:
            return
        size = min(struct.unpack("<I", head)[0], 2 * MAX_URL)
        yield raw[at + 20 : at + 20 + size].decode("utf-16-le", "replace").partition("\0")[0]


def rtf_link_targets(raw: bytes) -> Iterator[str]:
    """Yield the link targets of RTF that encapsulates an HTML page ([MS-OXRTFEX]) or has fields."""
    text = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)) if match[1] else match[2], raw).decode("cp1252", "replace")
    yield from fields(text)
    yield from map(unescape, _HREF.findall(text))
