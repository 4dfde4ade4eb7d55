"""OpenDocument as a single XML file (OASIS ODF 1.3, part 3, 2.2.1), and content of embedded documents."""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.xml import MAX_PART
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office._package import add_properties
from processors.essence.summarize.office.opendocument import Content

NAMESPACES = (
    b'<x xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    b'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0">'
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add metadata, headings (names of sheets, titles of slides), columns and partial-text."""
    raw = body.read(MAX_PART)
    start = raw.find(b"<office:meta>")
    end = raw.find(b"</office:meta>", start)
    if 0 <= start < end:
        add_properties(NAMESPACES + raw[start:end] + b"</office:meta></x>", found)
    Content(found).take(raw)
    if b"<office:document" not in raw or not found.new():
        raise SummaryError("FlatOpenDocument: no readable content")


SUMMARIZER = Summarizer(types=("FlatOpenDocument",), run=run)
