"""Presentations of Office Open XML (ECMA-376-1, 19): the slides in the order of the list of slides, and their titles and text."""

from __future__ import annotations

from processors.essence.formats.line_buffer import Text
from processors.essence.formats.package_parts import related_id
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.summarize._base import Found
from processors.essence.summarize.office._office import Office
from processors.essence.summarize.office._word import SKIP

SLIDES = 200
TITLES = ("title", "ctrTitle")


def slides_of(office: Office, main: str) -> list[str]:
    """Return the keys of the slides in the order of the list of slides (19.2.1.34); a slide outside of it is deleted.

    Without a readable list, slides are in the order of their names.
    """
    root = tree(office.part(main)) if main else None
    if root is None or not office.relations.of(main):
        return office.implied("slide")
    listed: list[str] = []
    for name, element, begins in elements(root):
        # The sections of an extension list the slides again, without relationships.
        if begins and name == "sldId" and (identity := related_id(element)):
            listed.append(office.relations.target(main, identity) or f"slide {identity[:50]}")
    return list(dict.fromkeys(listed))


def add_slide(raw: bytes, text: Text, found: Found) -> None:
    """Add the title and the text of a slide."""
    title: list[str] = []
    kind = ""
    for name, element, begins in elements(tree(raw), SKIP):
        if name == "sp":
            kind = ""
        elif name == "ph" and begins:
            kind = attribute(element, "type")
        elif name in ("t", "br") and begins:
            piece = (element.text or "") if name == "t" else " "
            text.add(piece)
            title += [piece] if kind in TITLES else []
        elif name == "p" and not begins:
            text.end()
            title += [" "]
    line = " ".join("".join(title).split())
    found.add("headings", line, 200)
    found.set("title", line, 500)
