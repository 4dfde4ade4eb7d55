"""Where documents of Office lead: fields of Word, addresses in workbooks until 2007, the marks in what Outlook compressed.

Laws:
- Each pattern is looked for from a mark that stands before an address, and gives no more than MAX_URL characters of it.
- What is given is what stands there; `reference` (`_package`) keeps what has an address outside of the document.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from html import unescape

MAX_URL = 1_000
MONIKERS = 1_000
"""Addresses of a workbook that are looked at."""
MONIKER = bytes.fromhex("e0c9ea79f9bace118c8200aa004ba90b")
"""The class of what holds an address ([MS-OSHARED] 2.3.7.6, URLMoniker)."""

# Word itself takes quotes of print, too.
_FIELD = re.compile(r'HYPERLINK[^"\u201c\u201d\x13-\x15]{0,20}["\u201c\u201d]([^"\u201c\u201d\x13-\x15]{1,1000})["\u201c\u201d]')
_ESCAPE = re.compile(rb"\\(?:'([0-9A-Fa-f]{2})|([{}\\]))")
_HREF = re.compile(r"""<a\s[^<>]{0,500}?href\s{0,9}=\s{0,9}["']([^"'<>]{1,1000})["']""", re.IGNORECASE)


def fields(text: str) -> list[str]:
    """Where the fields of a document of Word lead (ECMA-376-1, 17.16.5.25), as their instructions say."""
    return [url.strip() for url in _FIELD.findall(text)]


def monikers(raw: bytes) -> Iterator[str]:
    """Addresses that stand anywhere among the records of a workbook: those of cells and of what is drawn over them."""
    at = -1
    for _ in range(MONIKERS):
        at = raw.find(MONIKER, at + 1)
        head = raw[at + 16 : at + 20]
        if at < 0 or len(head) < 4:
            return
        size = min(struct.unpack("<I", head)[0], 2 * MAX_URL)
        yield raw[at + 20 : at + 20 + size].decode("utf-16-le", "replace").partition("\0")[0]


def enclosed(raw: bytes) -> Iterator[str]:
    """Where RTF leads that has a page in it ([MS-OXRTFEX]), or fields."""
    text = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)) if match[1] else match[2], raw).decode("cp1252", "replace")
    yield from fields(text)
    yield from map(unescape, _HREF.findall(text))
