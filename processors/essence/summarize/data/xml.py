"""XML of any vocabulary: root element, namespaces, titles, authors, the first text.

Neither DTDs nor the network are accessed. The parser does not resolve entities: one that the document itself declares is replaced
by its text if that contains neither elements nor other entities, so that the text grows by no more than what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape
from itertools import islice
from typing import Any, BinaryIO

from lxml import etree

from processors.essence.formats.text import squeeze
from processors.essence.formats.xml import attribute, local, recode
from processors.essence.summarize._base import MAX_VALUES, Facts, Found, Summarizer, SummaryError

MAX_XML = 4_000_000
MAX_TEXT = 4_096
MAX_ELEMENTS = 50_000
MAX_MEANT, PIECES = 5_000, 200
"""Well-known elements whose text is read, and pieces of text of each: these elements may be nested."""
MAX_ENTITIES = 1_000
ENTITY, SAID = 500, 1_000
"""Characters of the text of an entity, and of an element."""

_OPEN = re.compile(r"[&<%]")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>|<!--")
_PARTS = "para simpara p div li br tr td firstname surname othername honorific lineage personname year holder orgname email street"
PARTS = frozenset(_PARTS.split())
"""Elements that are a word or a line of their own."""
NAMES = frozenset(("firstname", "surname", "othername", "lineage", "forename", "given-names", "persName", "name"))
"""Elements that are, or are part of, the name of a person (DocBook, TEI, JATS, Atom)."""

MEANING = {
    "title": "headings", "head": "headings", "subtitle": "headings", "description": "description", "desc": "description",
    "summary": "description", "subject": "keywords", "keyword": "keywords", "creator": "author", "author": "author",
    "date": "date", "pubDate": "date", "pubdate": "date", "language": "language", "rights": "copyright", "copyright": "copyright",
    "name": "names", "abstract": "abstract", "updated": "date", "published": "date", "time": "date", "modified": "date",
}  # fmt: skip
"""Attributes by local element name, for names that many vocabularies share (Dublin Core, DocBook, TEI, RSS, Atom, SVG, GPX)."""
UNSAID = frozenset(f"{{http://purl.org/dc/{part}/}}{name}" for part in ("elements/1.1", "terms") for name in ("format", "type"))
"""Elements of Dublin Core that describe the file: not text of the document (drawing programs write the format into each file)."""
ONCE = frozenset(("updated", "published", "time", "modified"))
"""Elements that describe the document only at their first occurrence: entries of a feed and points of a track have them, too."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add root-element, namespaces, title, headings, attributes of well-known elements and partial-text. Raises SummaryError."""
    raw, charset = recode(body.read(MAX_XML), facts.charset)
    parser = etree.XMLParser(
        encoding=charset, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_pis=True
    )
    root = None
    # The parser's error for a document without an element names the parser's own file and line: it is not reported.
    with suppress(etree.XMLSyntaxError):
        root = etree.fromstring(raw, parser)
    if root is None:
        raise SummaryError("XML: no element in it can be read")
    found.add("root-element", local(root))
    for uri in (root.nsmap or {}).values():
        found.add("namespaces", uri or "", 300)
    _elements(root, found)
    # A language element takes precedence over the language attribute of the root.
    found.set("language", attribute(root, "lang"), 40)
    headings = found.attributes.get("headings") or found.attributes.get("names") or [""]
    found.set("title", headings[0], 300)


def _entities(root: etree._Element) -> Mapping[str, str]:
    """Return the texts of the entities that a document declares, by name."""
    dtd: Any = root.getroottree().docinfo.internalDTD
    declared = ((e.name, e.content) for e in islice(dtd.iterentities(), MAX_ENTITIES)) if dtd is not None else ()
    return {name: text[:ENTITY] for name, text in declared if name and text and not _OPEN.search(text)}


def _entity(node: Any, entities: Mapping[str, str]) -> str:
    """Return the text of an entity that the document or HTML declares; "" if neither does."""
    known = entities.get(str(node.name)) or unescape(str(node.text))
    return "" if known == node.text else known


def _texts(element: etree._Element, entities: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of text in an element, each with whether a space precedes it: at the edges of a part, not inside a word."""
    yield element.text or "", False
    for node in element.iterdescendants(etree.Element, etree.Entity):
        entity: bool = node.tag is etree.Entity
        apart = not entity and local(node) in PARTS
        yield _entity(node, entities) if entity else node.text or "", apart
        yield node.tail or "", apart


def _person(element: etree._Element) -> str:
    """Return the name in an element whose parts are marked as a name; "" if none is."""
    parts = islice((d.text for d in element.iterdescendants(etree.Element) if local(d) in NAMES), PIECES)
    return squeeze(" ".join(part[:SAID] for part in parts if part))


def _said(element: etree._Element, entities: Mapping[str, str]) -> str:
    """Return the text of an element on one line, without HTML tags that are part of that text (RSS)."""
    pieces, room = list[str](), SAID
    for text, apart in islice(_texts(element, entities), PIECES):
        pieces += (" " * apart, text[:room])
        room -= len(text)
        if room <= 0:
            break
    return untagged("".join(pieces))


def untagged(text: str) -> str:
    """Return a text on one line; of a page in HTML, the visible text."""
    return squeeze(unescape(_TAG.sub(" ", text)) if "<" in text else text)


def _elements(root: etree._Element, found: Found) -> None:
    texts: list[str] = []
    room = found.most(MAX_TEXT)
    entities, meant = _entities(root), 0
    for number, element in enumerate(root.iter(etree.Element, etree.Entity)):
        if number > MAX_ELEMENTS:
            break
        entity: bool = element.tag is etree.Entity
        meaning = "" if entity else MEANING.get(local(element))
        meant += bool(meaning)
        if meaning and meant < MAX_MEANT and len(found.attributes.get(meaning, ())) < MAX_VALUES:
            person = _person(element) if meaning == "author" else ""
            (found.set if local(element) in ONCE else found.add)(meaning, person or _said(element, entities), 500)
        inside = _entity(element, entities) if entity else "" if element.tag in UNSAID else element.text
        for text in (inside, element.tail) if room > 0 else ():
            if text and (entity or not text.isspace()):
                said = untagged(text[:room]) + " " * text[-1:].isspace()
                room -= len(said) + 1
                if entity and texts:
                    texts[-1] += " " * text[:1].isspace() + said
                else:
                    texts.append(said)
    found.body("\n".join(map(str.strip, texts)), MAX_TEXT)


SUMMARIZER = Summarizer(types=("XML",), run=run)
