"""XML of any vocabulary: root element, namespaces, titles, who wrote it, the text it begins with.

Entities, DTDs and the network stay shut.
"""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO

from lxml import etree

from processors.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.summarize._markup import local
from processors.summarize._text import squeeze

MAX_XML = 4_000_000
MAX_TEXT = 4_096
MAX_ELEMENTS = 50_000

MEANING = {
    "title": "headings", "head": "headings", "subtitle": "headings", "description": "description", "desc": "description",
    "summary": "description", "subject": "keywords", "keyword": "keywords", "creator": "author", "author": "author",
    "date": "date", "pubDate": "date", "language": "language", "rights": "copyright", "copyright": "copyright",
    "name": "names", "abstract": "abstract",
}  # fmt: skip
"""Local names of elements that many vocabularies share (Dublin Core, DocBook, TEI, RSS, Atom, SVG), and what each becomes."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add root-element, namespaces, title, headings, what elements of well-known names say, partial-text. Raises SummaryError."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_pis=True
    )
    root = None
    # What the parser says of a document without an element, it says of its own file and line.
    with suppress(etree.XMLSyntaxError):
        root = etree.fromstring(body.read(MAX_XML), parser)
    if root is None:
        raise SummaryError("XML: no element in it can be read")
    found.add("root-element", local(root))
    for uri in (root.nsmap or {}).values():
        found.add("namespaces", uri or "", 300)
    _elements(root, found)
    headings = found.attributes.get("headings") or found.attributes.get("names") or [""]
    found.set("title", headings[0], 300)


def _elements(root: etree._Element, found: Found) -> None:
    texts: list[str] = []
    room = found.most(MAX_TEXT)
    for number, element in enumerate(root.iter(etree.Element)):
        if number > MAX_ELEMENTS:
            break
        meaning = MEANING.get(local(element))
        if meaning:
            found.add(meaning, squeeze("".join(map(str, element.itertext()))[:1_000]), 500)
        for text in (element.text, element.tail) if room > 0 else ():
            if text and not text.isspace():
                texts.append(squeeze(text[:room]))
                room -= len(texts[-1]) + 1
    found.body("\n".join(texts), MAX_TEXT)


SUMMARIZER = Summarizer(types=("XML",), run=run)
