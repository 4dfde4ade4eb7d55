"""OpenDocument (OASIS ODF 1.3): texts, tables and presentations, with their properties, headings and the text they begin with."""

from __future__ import annotations

from typing import BinaryIO

from lxml import etree

from processors.essence.formats.line_buffer import Text
from processors.essence.formats.xml import MAX_PART, attribute, elements, tree
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office._package import Package, add_properties, reference

MAX_TEXT = 8_192
ROWS = 20
"""Rows of each table that are looked at."""
CELLS = 50
SMALL = 262_144
WANTED = {"meta.xml": SMALL, "content.xml": MAX_PART, "META-INF/manifest.xml": SMALL}
STYLES = "styles.xml"
"""Where headers and footers are; they are part of a full text."""

_SKIP = frozenset(
    (
        "annotation",
        "tracked-changes",
        "styles",
        "automatic-styles",
        "font-face-decls",
        "scripts",
        "script",
        "notes",
        "note",
        "note-citation",
        "ruby-text",
    )
)
"""What is not the text itself."""
_SKIP_FULL = _SKIP - {"notes", "note", "annotation"}
_LINES = frozenset(("p", "h"))
_SPACES = frozenset(("s", "tab", "line-break"))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add what its properties say, headings (of sheets: their names; of slides: their titles), columns and partial-text."""
    package = Package(body, facts.size)
    parts = package.read(lambda name: WANTED.get(name, SMALL if name == STYLES and found.full else 0))
    if "meta.xml" in parts:
        add_properties(parts["meta.xml"], found, date="modification-date")
    if b"encryption-data" in parts.get("META-INF/manifest.xml", b""):
        found.add("encrypted", "a password is needed")
        return
    # A template of styles alone has no content.
    Content(found).take(parts.get("content.xml", b""), parts.get(STYLES, b""))
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

    def take(self, raw: bytes, styles: bytes = b"") -> None:
        """Add headings, columns, url-references and the text; `styles`: where headers and footers are, if they are wanted."""
        self._read(tree(raw) if raw else None)
        beside = tree(styles) if styles else None
        for root in beside.iterfind(".//{*}master-page/*") if beside is not None else ():
            self._read(root)
        self.found.body("\n".join(self.text.lines), MAX_TEXT)

    def _read(self, root: etree._Element | None) -> None:
        # Text boxes, notes and remarks have paragraphs inside of that which they are in.
        lines: list[tuple[str, list[str]]] = []
        most = self.found.most(MAX_TEXT)
        for name, element, begins in elements(root, _SKIP_FULL if self.found.full else _SKIP):
            if begins:
                self._begin(name, element)
                lines += [(_space(element), [])] if name in _LINES else []
            # What marks a part of a line has the namespace of paragraphs (part 3, 6); frames and what describes them have others.
            held = element if begins else element.getparent()
            if lines and (begins or name not in _LINES) and held is not None and _space(held) == lines[-1][0]:
                lines[-1][1].append(((element.text if begins else element.tail) or "")[:most] or " " * (name in _SPACES))
            if name in _LINES and not begins:
                self._line(name, " ".join("".join(lines.pop()[1])[: 2 * most].split()))
            elif name == "table-row" and not begins:
                self.text.end()
            elif name == "table" and not begins:
                self.rows = 0

    def _begin(self, name: str, element: etree._Element) -> None:
        """See where tables, rows and frames begin."""
        if name == "table":
            self.rows = 0
            self.found.add("headings", attribute(element, "name"), 200)
        elif name == "a":
            reference(attribute(element, "href"), self.found)
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
        if self.found.full or (self.rows <= ROWS and self.cells <= CELLS):
            self.text.add(line + " ")
        if not self.rows:
            self.text.end()


def _space(element: etree._Element) -> str:
    """The namespace of an element, or the prefix that was never declared."""
    tag = str(element.tag)
    return tag.rpartition("}")[0] or tag.rpartition(":")[0]


SUMMARIZER = Summarizer(types=("OpenDocument",), run=run)
