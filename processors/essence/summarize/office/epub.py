"""EPUB (3.3): metadata of the package document, table of contents, the text of the first chapters.

The container names the package document (4.2.6.3.1), that its parts (5.6.2, as URLs) and their order (5.7).
"""

from __future__ import annotations

import re
from typing import BinaryIO, NamedTuple

from processors.essence.formats.package_parts import ROOT, part_key, resolve_part
from processors.essence.formats.text import squeeze
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office._package import Package, add_properties, add_reference
from processors.essence.summarize.pages._markup import page, page_links, page_text

MAX_TEXT = 8_192
CHAPTERS = 12
"""Maximum chapters whose text is read: the first ones are often covers."""
HEADINGS = 100
LARGE, SMALL = 1 << 20, 262_144
CONTAINER = part_key("META-INF/container.xml")
PACKAGE = "application/oebps-package+xml"
NCX = "application/x-dtbncx+xml"
EVENTS = {"creation": "creation-date", "modification": "modification-date"}
"""Attribute by event of an OPF 2 date; other dates are those of the publication."""
XHTML = "application/xhtml+xml"

_REMOTE = re.compile(r"[a-z][a-z0-9+.-]{0,20}:", re.IGNORECASE)
"""Start of a URL outside of the book."""


class Book(NamedTuple):
    """Content of the package document, as keys of parts."""

    nav: str
    ncx: str
    spine: list[str]
    pages: list[str]
    """The chapters in order, then pages outside of the reading order: the table of contents, notes."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, description, keywords, language, publisher, date, headings (the table of contents) and partial-text."""
    package = Package(body, facts.size)
    parts = package.read(lambda name: SMALL if name == CONTAINER else LARGE if name.endswith(".opf") else 0)
    opf = next((name for name in _roots(parts.pop(CONTAINER, b"")) if name in parts), next(iter(parts), ""))
    if not opf:
        raise SummaryError(f"EPUB: no package document: {package.damage or 'the part is missing'}")
    add_properties(parts[opf], found, subject="keywords")
    book = _book(parts[opf], opf, found)
    chapters = book.pages if found.full else book.spine[:CHAPTERS]
    sizes = dict.fromkeys(chapters, LARGE if found.full else SMALL)
    parts = package.pick(sizes | dict.fromkeys((book.nav, book.ncx), LARGE))
    _contents(parts, book, found)
    _text(parts, chapters, found)
    package.close(chapter for chapter in dict.fromkeys(book.spine[:CHAPTERS]) if chapter not in package.names)


def _roots(raw: bytes) -> list[str]:
    """Return the keys of the package documents that the container names, those of the right type first."""
    found = [e for n, e, begins in elements(tree(raw) if raw else None) if begins and n == "rootfile"]
    found.sort(key=lambda element: attribute(element, "media-type") != PACKAGE)
    return [resolve_part(ROOT, attribute(element, "full-path")) for element in found]


def _book(raw: bytes, opf: str, found: Found) -> Book:
    items: dict[str, str] = {}
    spine: list[str] = []
    pages: list[str] = []
    nav = ncx = ""
    for name, element, begins in elements(tree(raw)):
        if not begins:
            continue
        if name == "item":
            href = attribute(element, "href")
            part = "" if _REMOTE.match(href) else resolve_part(opf, href)
            items[attribute(element, "id")] = part
            pages += [part] if part and attribute(element, "media-type") == XHTML else []
            nav = part if "nav" in attribute(element, "properties").split() else nav
            ncx = part if attribute(element, "media-type") == NCX else ncx
        elif name == "itemref" and attribute(element, "linear") != "no":
            identity = attribute(element, "idref")
            spine.append(items.get(identity, f"item {identity[:50]}"))
        elif name == "date":
            # A book may have several dates: those of the work and of this edition (OPF 2.0.1, 2.2.7).
            found.add(EVENTS.get(attribute(element, "event"), "date"), squeeze((element.text or "")[:100]))
        elif name == "meta" and attribute(element, "property") == "dcterms:modified":
            found.set("modification-date", squeeze((element.text or "")[:100]))
        elif name == "identifier":
            found.add("identifier", squeeze((element.text or "")[:500]), 200)
    chapters = [part for part in spine if part]
    return Book(nav, ncx, chapters, list(dict.fromkeys([*chapters, *pages])))


def _contents(parts: dict[str, bytes], book: Book, found: Found) -> None:
    """Add the table of contents: that of EPUB 3, otherwise that of EPUB 2."""
    if book.nav in parts:
        for node in page(parts[book.nav], "utf-8").css("nav a")[:HEADINGS]:
            found.add("headings", squeeze(node.text()[:500]), 200)
    count = 0
    for name, element, begins in elements(
        tree(parts[book.ncx]) if book.ncx in parts and "headings" not in found.attributes else None
    ):
        if name == "text" and begins:
            # The first text is the title of the book, outside of the table of contents.
            found.add("headings", squeeze((element.text or "")[:500]), 200)
            count += 1
            if count > HEADINGS:
                break


def _text(parts: dict[str, bytes], chapters: list[str], found: Found) -> None:
    texts: list[str] = []
    room = found.most(MAX_TEXT)
    for chapter in dict.fromkeys(chapters):
        read = page(parts.get(chapter, b""))
        for url in page_links(read):
            add_reference(url, found)
        text = page_text(read, room, whole=bool(found.full)).strip()
        texts.append(text)
        room -= len(text)
        if room <= 0:
            break
    found.body("\n".join(t for t in texts if t), MAX_TEXT)


SUMMARIZER = Summarizer(types=("EPUB",), run=run)
