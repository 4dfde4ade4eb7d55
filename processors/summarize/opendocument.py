"""OpenDocument (OASIS ODF 1.3): texts, tables and presentations, with their properties, headings and the text they begin with."""

from __future__ import annotations

from typing import BinaryIO

from lxml import etree

from processors.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.summarize._markup import MAX_PART, attribute, elements, tree
from processors.summarize._package import Package, Text, add_properties

MAX_TEXT = 8_192
ROWS = 20
"""Rows of each table that are looked at."""
CELLS = 50
SMALL = 262_144
WANTED = {"meta.xml": SMALL, "content.xml": MAX_PART, "META-INF/manifest.xml": SMALL}

_SKIP = frozenset(
    ("annotation", "tracked-changes", "styles", "automatic-styles", "font-face-decls", "scripts", "notes", "note-citation")
)
"""What is not the text itself."""
_LINES = frozenset(("p", "h"))
_SPACES = frozenset(("s", "tab", "line-break"))
_PIECES = frozenset(("span", "a", "s", "tab", "line-break", "bookmark", "ruby-base", "soft-page-break", "p", "h"))
"""Elements whose text, or what stands behind them, is part of a line."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add what its properties say, headings (of sheets: their names; of slides: their titles), columns and partial-text."""
    package = Package(body, facts.size)
    parts = package.read(lambda name: WANTED.get(name, 0))
    if "meta.xml" in parts:
        add_properties(parts["meta.xml"], found)
    if b"encryption-data" in parts.get("META-INF/manifest.xml", b""):
        found.add("encrypted", "a password is needed")
        return
    # A template of styles alone has no content.
    Content(found).take(parts.get("content.xml", b""))
    package.close()
    if not parts:
        raise SummaryError("OpenDocument: none of its parts is known")


class Content:
    """The content as its elements come by, in order."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.text = Text(found.most(MAX_TEXT))
        self.rows = 0
        self.cells = 0
        self.kind = ""
        """What the frame that is open is for: title, outline ..."""

    def take(self, raw: bytes) -> None:
        """Add headings, columns and partial-text."""
        line: list[str] = []
        for name, element, begins in elements(tree(raw) if raw else None, _SKIP):
            if begins:
                self._begin(name, element)
            if name in _PIECES and (begins or name not in _LINES):
                # Text stands at an element's start, and behind its end unless the line ends there.
                line.append(((element.text if begins else element.tail) or "")[:MAX_TEXT] or " " * (name in _SPACES))
            if name in _LINES and not begins:
                self._line(name, " ".join("".join(line)[: 2 * MAX_TEXT].split()))
                line = []
            elif name == "table-row" and not begins:
                self.text.end()
            elif name == "table" and not begins:
                self.rows = 0
        self.found.body("\n".join(self.text.lines), MAX_TEXT)

    def _begin(self, name: str, element: etree._Element) -> None:
        """See where tables, rows and frames begin."""
        if name == "table":
            self.rows = 0
            self.found.add("headings", attribute(element, "name"), 200)
        elif name == "table-row":
            self.rows += 1
            self.cells = 0
        elif name == "table-cell":
            self.cells += 1
        elif name == "frame":
            self.kind = attribute(element, "class")

    def _line(self, name: str, line: str) -> None:
        if name == "h" or (self.kind == "title" and line):
            self.found.set("title", line, 500)
            self.found.add("headings", line, 200)
        if self.rows == 1 and self.cells <= CELLS:
            self.found.add("columns", line, 100)
        if self.rows <= ROWS and self.cells <= CELLS:
            self.text.add(line + " ")
        if not self.rows:
            self.text.end()


SUMMARIZER = Summarizer(types=("OpenDocument",), run=run)
