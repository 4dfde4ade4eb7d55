"""Office Open XML (ECMA-376): metadata, headings and the first text of documents, workbooks and presentations.

The parts tell the kind of document. Embedded files are members (`processors/essence/unnest/containers/office.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from lxml import etree

from processors.essence.formats import xlsb
from processors.essence.formats.line_buffer import Text
from processors.essence.formats.number_formats import BUILT_IN, SINCE_1904, shown
from processors.essence.formats.xml import MAX_PART, attribute, elements, tree
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office._links import fields
from processors.essence.summarize.office._package import Package, add_properties, add_reference, hyperlinks, number, relations

MAX_TEXT = 8_192
HEADINGS = 100
SHEETS, ROWS, CELLS = 20, 20, 50
"""Maximum sheets of a workbook, rows of a sheet and cells of a row that are read."""
SLIDES = 200
STRINGS = 50_000
"""Maximum shared strings of a workbook that are kept, of STRING characters each."""
STRING = 500
SMALL = 262_144
LINK, FIELD = b"HYPERLINK", 4_096
"""First word of a field with a link, and maximum characters of an instruction."""

_BIG = re.compile(r"word/(?:document\d*|styles)\.xml|xl/styles\.xml|xl/sharedStrings\.(?:xml|bin)")
_SMALL = re.compile(
    r"docProps/(?:core|app)\w*\.xml|(?:word|xl|ppt)/(?:workbook|_rels/workbook)\.(?:xml|bin)(?:\.rels)?|ppt/slides/slide\d+\.xml"
)
_LINKS = re.compile(
    r"(?:word|ppt/slides|xl/worksheets)/_rels/\w{1,40}\.(?:xml|bin)\.rels"
    r"|(?:ppt/notesSlides|(?:word|ppt|xl)/(?:drawings|diagrams|charts))/_rels/(?:notesSlide|drawing|data|chart)\d*\.xml\.rels"
)
"""Relationships of displayed parts: shapes and pictures have links, too."""
_BESIDE = re.compile(
    r"word/(?:header|footer|footnotes|endnotes|comments)\d*\.xml|ppt/(?:notesSlides/notesSlide|comments/comment)\d+\.xml"
    r"|(?:word|ppt|xl)/(?:charts/chart|diagrams/data|drawings/drawing)\d+\.xml|xl/comments\d+\.xml|xl/comments/comment\d+\.xml"
)
"""Parts outside of the main text, which belong to the full text."""
_SHEET = re.compile(r"xl/worksheets/\w{1,40}\.(?:xml|bin)")
_SKIP = frozenset(("Fallback", "delText", "instrText"))
"""Fallback content for old programs, and text that is not displayed."""
_SIGNS = {"tab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
"""Elements that represent a character."""
_TITLES = ("title", "ctrTitle")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add metadata, headings (names of sheets, titles of slides), columns, links and partial-text."""
    package = Package(body, facts.size)
    parts = package.read(_wanted(found))
    for name in sorted(n for n in parts if n.startswith("docProps/")):
        add_properties(parts[name], found)
    text = Text(found.most(MAX_TEXT))
    _read(parts, text, found)
    for name in parts:
        if _LINKS.fullmatch(name):
            hyperlinks(parts[name], found)
        elif _BESIDE.fullmatch(name):
            _beside(parts[name], text, found)
    found.body("\n".join(text.lines), MAX_TEXT)
    if not parts and not package.damage:
        raise SummaryError("OfficeDocument: no known part")
    package.close()


def _wanted(found: Found) -> Callable[[str], int]:
    """Return a function that gives the number of bytes to read of a part, by its name."""
    sheets = 0

    def wanted(name: str) -> int:
        nonlocal sheets
        if _SHEET.fullmatch(name):
            sheets += 1
            return (MAX_PART if found.full else SMALL) if sheets <= found.most(SHEETS) else 0
        if _BIG.fullmatch(name) or (found.full and _BESIDE.fullmatch(name)):
            return MAX_PART
        return SMALL if _SMALL.fullmatch(name) or _LINKS.fullmatch(name) else 0

    return wanted


def _read(parts: dict[str, bytes], text: Text, found: Found) -> None:
    """Add the main text: of a document, a workbook or slides."""
    for name in [n for n in parts if n.startswith("word/document")]:
        _document(parts[name], _styles(parts.get("word/styles.xml", b"")), text, found)
    if "xl/workbook.xml" in parts:
        _workbook(parts, text, found)
    if "xl/workbook.bin" in parts:
        _binary(parts, text, found)
    slides = sorted((n for n in parts if n.startswith("ppt/slides/slide")), key=number)
    for name in slides[:SLIDES]:
        _slide(parts[name], text, found)


def _styles(raw: bytes) -> dict[str, str]:
    """Return the names of styles by id: the id of a heading style is in the author's language."""
    found: dict[str, str] = {}
    style = ""
    for name, element, begins in elements(tree(raw)) if raw else ():
        if name == "style":
            style = attribute(element, "styleId") if begins else ""
        elif name == "name" and begins and style:
            found[style] = attribute(element, "val").lower()
    return found


def _document(raw: bytes, styles: dict[str, str], text: Text, found: Found) -> None:
    style = ""
    headings = Text(HEADINGS * 200)
    root = tree(raw)
    if LINK in raw:
        _fields(root, found)
    for name, element, begins in elements(root, _SKIP):
        if name == "p":
            text.end()
            line = headings.end()
            if line and styles.get(style, style.lower()).startswith(("heading", "title")):
                if styles.get(style, style.lower()) == "title":
                    found.set("title", line, 500)
                found.add("headings", line, 200)
            style = ""
        elif begins and name == "pStyle":
            style = attribute(element, "val")
        elif begins and (name == "t" or name in _SIGNS):
            piece = (element.text or "") if name == "t" else _SIGNS[name]
            text.add(piece)
            # Headings are collected beyond the text that is kept, too.
            if styles.get(style, style.lower()).startswith(("heading", "title")):
                headings.add(piece)
        if text.full and headings.full:
            break


def _fields(root: etree._Element | None, found: Found) -> None:
    """Add the targets of fields: instructions are split between marks, or in an attribute (ECMA-376-1, 17.16.18)."""
    told = ""
    for name, element, begins in elements(root):
        if begins and name == "instrText":
            told = (told + (element.text or ""))[:FIELD]
        elif begins and name in ("fldChar", "fldSimple"):
            for url in fields(told + attribute(element, "instr")[:FIELD]):
                add_reference(url, found)
            told = ""


def _beside(raw: bytes, text: Text, found: Found) -> None:
    """Add the text of headers, notes, comments or charts, one paragraph or value a line."""
    root = tree(raw)
    if LINK in raw:
        _fields(root, found)
    for name, element, begins in elements(root, _SKIP):
        if begins and (name in ("t", "v", "text") or name in _SIGNS):
            text.add(_SIGNS.get(name) or element.text or "")
        elif name in ("p", "v", "si", "comment") and not begins:
            text.end()


def _workbook(parts: dict[str, bytes], text: Text, found: Found) -> None:
    related = relations(parts.get("xl/_rels/workbook.xml.rels", b""), "xl")
    sheets: list[tuple[str, str]] = []
    first = 0
    for name, element, begins in elements(tree(parts["xl/workbook.xml"])):
        if begins and name == "workbookPr" and attribute(element, "date1904") in ("1", "true", "on"):
            first = SINCE_1904
        if begins and name == "sheet" and len(sheets) < HEADINGS:
            sheets.append((attribute(element, "name"), related.get(attribute(element, "id"), ("", ""))[1]))
            found.add("headings", attribute(element, "name"), 200)
    strings = _strings(parts.get("xl/sharedStrings.xml", b""))
    formats = _formats(parts.get("xl/styles.xml", b""))
    for sheet, part in sheets[: found.most(SHEETS)]:
        text.add(sheet if found.full else "")
        text.end()
        cells = Cells(strings, formats, first)
        _sheet(_rows(parts.get(part, b""), cells, found.most(ROWS), found.most(CELLS)), text, found)


def _binary(parts: dict[str, bytes], text: Text, found: Found) -> None:
    """Add the sheets of a workbook with binary parts."""
    related = relations(parts.get("xl/_rels/workbook.bin.rels", b""), "xl")
    strings = xlsb.strings(parts.get("xl/sharedStrings.bin", b""))
    for name, part in xlsb.sheets(parts["xl/workbook.bin"])[: found.most(SHEETS)]:
        found.add("headings", name, 200)
        text.add(name if found.full else "")
        text.end()
        rows = xlsb.rows(parts.get(related.get(part, ("", ""))[1], b""), strings, found.most(ROWS), found.most(CELLS))
        _sheet(rows, text, found)


def _sheet(rows: list[list[str]], text: Text, found: Found) -> None:
    for at, row in enumerate(rows):
        for cell in row if at == 0 else ():
            found.add("columns", cell, 100)
        text.add(" ".join(row))
        text.end()


def _strings(raw: bytes) -> list[str]:
    """Return the shared strings, which cells refer to by index; without the phonetic readings of Japanese words (rPh)."""
    found: list[str] = []
    pieces: list[str] = []
    for name, element, begins in elements(tree(raw), frozenset(("rPh",))) if raw else ():
        if name == "t" and begins:
            pieces.append((element.text or "")[:STRING])
        elif name == "si" and not begins:
            found.append("".join(pieces[:STRING])[:STRING])
            pieces.clear()
            if len(found) >= STRINGS:
                break
    return found


class Cells(NamedTuple):
    """Shared data needed to display the cells of a workbook."""

    strings: list[str]
    formats: list[str]
    """Format codes, by style."""
    first: int
    """Days to add to the workbook's dates."""

    def shown(self, kind: str, value: str, style: str) -> str:
        """Return a cell's value as displayed."""
        if kind == "s":
            return _nth(self.strings, value)
        if kind not in ("", "n"):
            return value
        try:
            return shown(float(value), _nth(self.formats, style), self.first)
        except (ValueError, OverflowError):
            return value


def _nth(values: list[str], number: str) -> str:
    """Return the value at a decimal index; "" if there is none."""
    at = int(number) if number.isdecimal() and len(number) < 10 else len(values)
    return values[at] if at < len(values) else ""


def _rows(raw: bytes, shows: Cells, most: int, cells: int) -> list[list[str]]:
    """Return the first rows of a sheet that are not empty, with their first cells."""
    rows: list[list[str]] = []
    row: list[str] = []
    kind, value, style = "", "", ""
    for name, element, begins in elements(tree(raw)) if raw else ():
        if name == "c" and begins:
            kind, value, style = attribute(element, "t"), "", attribute(element, "s")
        elif name in ("v", "t") and begins:
            value += (element.text or "")[:STRING]
        elif name == "c" and len(row) < cells:
            value = shows.shown(kind, value, style)
            row += [value[:STRING]] if value.strip() else []
        elif name == "row" and not begins and row:
            rows.append(row)
            row = []
            if len(rows) >= most:
                break
    return rows


def _formats(raw: bytes) -> list[str]:
    """Return the number format codes by cell style (ECMA-376-1, 18.8.10)."""
    codes, found = dict(BUILT_IN), list[str]()
    cells = False
    for name, element, begins in elements(tree(raw)) if raw else ():
        number = attribute(element, "numFmtId")
        if name == "cellXfs":
            cells = begins
        elif begins and name == "numFmt" and number.isdecimal():
            codes[int(number[:6])] = attribute(element, "formatCode")
        elif begins and name == "xf" and cells:
            found.append(codes.get(int(number[:6]), "") if number.isdecimal() else "")
    return found


def _slide(raw: bytes, text: Text, found: Found) -> None:
    """Add the title and the text of a slide."""
    title: list[str] = []
    kind = ""
    for name, element, begins in elements(tree(raw), _SKIP):
        if name == "sp":
            kind = ""
        elif name == "ph" and begins:
            kind = attribute(element, "type")
        elif name in ("t", "br") and begins:
            piece = (element.text or "") if name == "t" else " "
            text.add(piece)
            title += [piece] if kind in _TITLES else []
        elif name == "p" and not begins:
            text.end()
            title += [" "]
    line = " ".join("".join(title).split())
    found.add("headings", line, 200)
    found.set("title", line, 500)


SUMMARIZER = Summarizer(types=("OfficeDocument",), run=run)
