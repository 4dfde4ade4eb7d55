"""Text of WordprocessingML (ECMA-376-1, 17): the main text with its headings, notes and comments, and imported parts.

Laws:
- Moved text is read where it was moved to, and deleted text not at all (17.13.5.14, 17.13.5.22, 17.13.5.25).
- Phonetic readings beside words are no part of the text (17.3.3.25, ruby; 18.4.6, rPh).
- An imported part (altChunk, 17.17.2.1) is read where it is displayed.
"""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from processors.essence.formats.line_buffer import Text
from processors.essence.formats.package_parts import related_id
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.summarize._base import Found
from processors.essence.summarize.office._links import fields
from processors.essence.summarize.office._package import add_reference

HEADINGS = 100
HEADED = ("heading", "title")
"""Starts of the names of styles of headings."""
LINK, FIELD = b"HYPERLINK", 4_096
"""First word of a field with a link, and maximum characters of an instruction."""
SKIP = frozenset(("Fallback", "del", "delText", "instrText", "moveFrom", "rt", "rPh"))
"""Fallback content for old programs, and text that is not displayed, or beside a word."""
SIGNS = {"tab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
"""Elements that represent a character."""

Import = Callable[[str], None]
"""Adds the text of an imported part, by the id of its relationship."""


def style_names(raw: bytes) -> dict[str, str]:
    """Return the names of styles by id: the id of a heading style is in the author's language."""
    found: dict[str, str] = {}
    style = ""
    for name, element, begins in elements(tree(raw)) if raw else ():
        if name == "style":
            style = attribute(element, "styleId") if begins else ""
        elif name == "name" and begins and style:
            found[style] = attribute(element, "val").lower()
    return found


def add_document(raw: bytes, styles: dict[str, str], text: Text, found: Found, imported: Import) -> None:
    """Add the text of a document, its headings, and the targets of its fields; `styles`: the names of styles by id."""
    style = ""
    headings = Text(HEADINGS * 200)
    root = tree(raw)
    if LINK in raw:
        _fields(root, found)
    for name, element, begins in elements(root, SKIP):
        if name == "p":
            text.end()
            _heading(headings.end(), style, found)
            style = ""
        elif begins and name == "pStyle":
            style = styles.get(attribute(element, "val"), attribute(element, "val").lower())
        elif begins and name == "altChunk":
            text.end()
            imported(related_id(element))
        elif begins and (name == "t" or name in SIGNS):
            piece = (element.text or "") if name == "t" else SIGNS[name]
            text.add(piece)
            # Headings are collected beyond the text that is kept, too.
            if style.startswith(HEADED):
                headings.add(piece)
        if text.full and headings.full:
            break


def _heading(line: str, style: str, found: Found) -> None:
    """Add a paragraph's text as a heading or the title, if its style says so."""
    if line and style.startswith(HEADED):
        if style == "title":
            found.set("title", line, 500)
        found.add("headings", line, 200)


def _fields(root: etree._Element | None, found: Found) -> None:
    """Add the targets of fields: instructions are split between marks, or in an attribute (ECMA-376-1, 17.16.18)."""
    instruction = ""
    for name, element, begins in elements(root):
        if begins and name == "instrText":
            instruction = (instruction + (element.text or ""))[:FIELD]
        elif begins and name in ("fldChar", "fldSimple"):
            for url in fields(instruction + attribute(element, "instr")[:FIELD]):
                add_reference(url, found)
            instruction = ""


def add_beside(raw: bytes, text: Text, found: Found, imported: Import) -> None:
    """Add the text of headers, notes, comments or charts, one paragraph or value a line."""
    root = tree(raw)
    if LINK in raw:
        _fields(root, found)
    for name, element, begins in elements(root, SKIP):
        if begins and (name in ("t", "v", "text") or name in SIGNS):
            text.add(SIGNS.get(name) or element.text or "")
        elif begins and name == "altChunk":
            text.end()
            imported(related_id(element))
        elif name in ("p", "v", "si", "comment") and not begins:
            text.end()
