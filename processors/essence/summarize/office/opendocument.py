"""OpenDocument (OASIS ODF 1.3): metadata, headings and the first text of texts, tables and presentations.

The parts of a document have fixed names at the root of its package (part 2, 3.1), which the manifest lists (part 2, 3.2).
"""

from __future__ import annotations

from typing import BinaryIO

from lxml import etree

from processors.essence.formats.line_buffer import Text
from processors.essence.formats.package_parts import manifest_entries, part_key
from processors.essence.formats.xml import MAX_PART, attribute, elements, tree
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.office._package import Package, add_properties, add_reference

MAX_TEXT = 8_192
ROWS = 20
"""Maximum rows of each table that are read."""
CELLS = 50
SMALL = 262_144
CONTENT, META, MANIFEST = "content.xml", "meta.xml", "meta-inf/manifest.xml"
WANTED = {META: SMALL, CONTENT: MAX_PART, MANIFEST: SMALL}
STYLES = "styles.xml"
"""Part with headers and footers, which belong to the full text."""

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
"""Elements that are not part of the text."""
_SKIP_FULL = _SKIP - {"notes", "note", "annotation"}
_LINES = frozenset(("p", "h"))
_SPACES = frozenset(("s", "tab", "line-break"))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add metadata, headings (names of sheets, titles of slides), columns and partial-text."""
    package = Package(body, facts.size)
    parts = package.read(lambda name: WANTED.get(name, SMALL if name == STYLES and found.full else 0))
    manifest = parts.get(MANIFEST, b"")
    if META in parts:
        add_properties(parts[META], found, date="modification-date")
    if b"encryption-data" in manifest:
        found.add("encrypted", "a password is needed")
        return
    # A template may have only styles, without content.
    Content(found).take(parts.get(CONTENT, b""), parts.get(STYLES, b""))
    listed = {part_key(path) for path, _ in manifest_entries(manifest)}
    lacks = CONTENT not in package.names and (CONTENT in listed or STYLES not in package.names)
    package.close([CONTENT] if lacks else [])


class Content:
    """Collects the content of a document from its elements, in order."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.text = Text(found.most(MAX_TEXT))
        self.rows = 0
        self.cells = 0
        self.kind = ""
        """Class of the current frame: title, outline ..."""

    def take(self, raw: bytes, styles: bytes = b"") -> None:
        """Add headings, columns, url-references and the text; `styles`: the part with headers and footers, if these are wanted."""
        self._read(tree(raw) if raw else None)
        beside = tree(styles) if styles else None
        for root in beside.iterfind(".//{*}master-page/*") if beside is not None else ():
            self._read(root)
        self.found.body("\n".join(self.text.lines), MAX_TEXT)

    def _read(self, root: etree._Element | None) -> None:
        # A stack, since text boxes, notes and annotations have paragraphs inside of another paragraph.
        lines: list[tuple[str, list[str]]] = []
        most = self.found.most(MAX_TEXT)
        for name, element, begins in elements(root, _SKIP_FULL if self.found.full else _SKIP):
            if begins:
                self._begin(name, element)
                lines += [(_space(element), [])] if name in _LINES else []
            # Inline elements are in the namespace of paragraphs (part 3, 6); frames and their descriptions are in others.
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
        """Process the start of a table, row, cell, frame or link."""
        if name == "table":
            self.rows = 0
            self.found.add("headings", attribute(element, "name"), 200)
        elif name == "a":
            add_reference(attribute(element, "href"), self.found)
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
    """Return the namespace of an element, or its undeclared prefix."""
    tag = str(element.tag)
    return tag.rpartition("}")[0] or tag.rpartition(":")[0]


SUMMARIZER = Summarizer(types=("OpenDocument",), run=run)
