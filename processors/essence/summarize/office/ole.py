"""Office documents until 2007 (Word, Excel, PowerPoint, Outlook) and other compound files: metadata, headings, text.

The streams tell the kind of document; of unknown kinds only the properties are added.
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO

from processors.essence.formats.compound_file import FIXED, MOST_FIXED, TIME, Compound, filetime_to_iso
from processors.essence.formats.line_buffer import Text
from processors.essence.formats.mail.outlook_rtf import decompress_rtf
from processors.essence.formats.office_encryption import decrypt_package
from processors.essence.formats.text import squeeze
from processors.essence.formats.xls import Sheets
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office import officedocument
from processors.essence.summarize.office._links import moniker_targets, rtf_link_targets
from processors.essence.summarize.office._office97 import MAX_STREAM, Encrypted, excel, powerpoint, word
from processors.essence.summarize.office._package import add_reference
from processors.essence.summarize.office._properties import add_properties
from processors.essence.summarize.office.rtf import rtf_text
from processors.essence.summarize.pages._markup import MAX_PAGE, page, page_links, page_text

MAX_TEXT = 8_192
HEADINGS = 100
LOCKED = ("EncryptedPackage", "EncryptedSummary")
MESSAGE = {
    "0037": "title",
    "0C1A": "author",
    "0E04": "to",
    "0E03": "cc",
    "1035": "message-id",
    "1042": "in-reply-to",
}
"""Attribute of the summary by property number of an Outlook message ([MS-OXPROPS])."""
TEXT = "1000"
"""Property with the text of the message."""
PAGE, RICH = "__substg1.0_10130102", "__substg1.0_10090102"
"""Streams with the same text as HTML, and as RTF."""
TIMES = {0x0039: "date", 0x0E06: "date", 0x3007: "date", 0x3008: "modification-date"}
"""Properties with the times of sending, delivery, creation and change; the first one present is the date."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add metadata, headings (names of sheets, titles of slides) and partial-text."""
    compound = Compound(body)
    add_properties(compound, found)
    try:
        _text(facts, compound, found)
    except Encrypted:
        found.add("encrypted", "a password is needed")
    # The properties are complete; text that the document's own tables do not lead to is left out.
    except struct.error:
        pass
    if compound.is_cut():
        raise SummaryError("OLE: truncated: its streams are larger than the file")


def _text(facts: Facts, compound: Compound, found: Found) -> None:
    streams = compound.streams
    if any(name in streams for name in LOCKED):
        _locked(facts, compound, found)
    elif "WordDocument" in streams:
        text, links = word(compound, found.most(MAX_TEXT), whole=bool(found.full))
        for url in links:
            add_reference(url, found)
        lines = (squeeze(line) for line in text.split("\n"))
        found.body("\n".join(line for line in lines if line), MAX_TEXT)
    elif book := next((n for n in ("Workbook", "Book") if n in streams), ""):
        raw = compound.read(book, MAX_STREAM)
        names, strings = excel(raw)
        for url in moniker_targets(raw):
            add_reference(url, found)
        for name in names[:HEADINGS]:
            found.add("headings", name, 200)
        cells = Text(found.full)
        Sheets(cells).read(raw if found.full else b"")
        found.body("\n".join(cells.lines or dict.fromkeys(squeeze(s[:MAX_TEXT]) for s in strings)), MAX_TEXT)
    elif "PowerPoint Document" in streams:
        told = Text(found.most(MAX_TEXT))
        titles, links = powerpoint(compound.read("PowerPoint Document", MAX_STREAM), told)
        for url in links:
            add_reference(url, found)
        for title in titles[:HEADINGS]:
            found.add("headings", title, 200)
        # As in OfficeDocument: the title of the first slide that has one.
        found.set("title", next(filter(None, titles), ""), 500)
        found.body("\n".join(told.lines), MAX_TEXT)
    else:
        _message(compound, found)


def _locked(facts: Facts, compound: Compound, found: Found) -> None:
    """Summarize a document that is locked with Excel's default password. Raises Encrypted, SummaryError."""
    if (package := decrypt_package(compound)) is None:
        raise Encrypted
    officedocument.run(facts._replace(size=len(package)), io.BytesIO(package), found)


def _times(raw: bytes, found: Found) -> None:
    """Add times from the fixed-size properties ([MS-OXMSG] 2.4.2), which follow a header of 32 bytes."""
    given = {}
    for at in range(32, len(raw) - 15, 16):
        kind, number = struct.unpack_from("<HH", raw, at)
        if kind == TIME:
            given[number] = filetime_to_iso(struct.unpack_from("<Q", raw, at + 8)[0])
    for number, attribute in TIMES.items():
        found.set(attribute, given.get(number, ""))


def _message(compound: Compound, found: Found) -> None:
    _times(compound.read(FIXED, MOST_FIXED), found)
    for number, attribute in MESSAGE.items():
        for kind, charset in compound.strings.items():
            value = compound.read(f"__substg1.0_{number}{kind}", 2 * MAX_TEXT).decode(charset, "replace")
            found.set(attribute, squeeze(value), MAX_TEXT)
    for kind, charset in compound.strings.items():
        text = compound.read(f"__substg1.0_{TEXT}{kind}", 2 * found.most(MAX_TEXT)).decode(charset, "replace")
        found.body(text.replace("\r\n", "\n"), MAX_TEXT)
    _marked(compound, found)


def _marked(compound: Compound, found: Found) -> None:
    """Add the links of the message's HTML or RTF, and its text if there is no plain text."""
    if raw := compound.read(PAGE, MAX_PAGE):
        tree = page(raw)
        links = list(page_links(tree))
        text = page_text(tree, found.most(MAX_TEXT), whole=bool(found.full))
    else:
        raw = decompress_rtf(compound.read(RICH, MAX_STREAM))
        links = list(rtf_link_targets(raw))
        text = rtf_text(raw, found.most(MAX_TEXT)) if raw and not found.said else ""
    for url in links:
        add_reference(url, found)
    found.body(text, MAX_TEXT)


SUMMARIZER = Summarizer(types=("OLE",), run=run)
