"""Workbooks of Office Open XML (ECMA-376-1, 18), with XML parts or binary ones: names of sheets, the first rows of each."""

from __future__ import annotations

from typing import NamedTuple

from processors.essence.formats import xlsb
from processors.essence.formats.line_buffer import Text
from processors.essence.formats.number_formats import BUILT_IN, SINCE_1904, shown
from processors.essence.formats.package_parts import related_id
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.summarize._base import Found
from processors.essence.summarize.office._office import SHEETS, Office

HEADINGS = 100
MOST_SHEETS, ROWS, CELLS = 20, 20, 50
"""Maximum sheets of a workbook, rows of a sheet and cells of a row that are read."""
STRINGS = 50_000
"""Maximum shared strings of a workbook that are kept, of STRING characters each."""
STRING = 500
BINARY = b"\x83\x01"
"""First record of a binary workbook ([MS-XLSB] 2.1.7.61, BrtBeginBook)."""
READING = frozenset(("rPh",))
"""Phonetic readings of Japanese words, which are no part of the text (ECMA-376-1, 18.4.6)."""


class Sheet(NamedTuple):
    """A sheet of a workbook."""

    name: str
    key: str
    """Its part; "" if the workbook names none."""


class Workbook:
    """The sheets of a workbook, in its order, and what is needed to display their cells."""

    def __init__(self, office: Office, main: str) -> None:
        self.office = office
        self.main = main
        raw = office.part(main)
        self.binary = main.endswith(".bin") or raw.startswith(BINARY)
        self.first = 0
        """Days to add to the workbook's dates."""
        named = xlsb.sheets(raw) if self.binary else self._named(raw)
        implied = [] if office.relations.of(main) else office.implied("worksheet")
        self.sheets = [
            Sheet(name, office.relations.target(main, identity) or next(iter(implied[at : at + 1]), ""))
            for at, (name, identity) in enumerate(named)
        ]

    def _named(self, raw: bytes) -> list[tuple[str, str]]:
        """Return the names of the sheets, and the ids of their relationships."""
        found: list[tuple[str, str]] = []
        for name, element, begins in elements(tree(raw)):
            if begins and name == "workbookPr" and attribute(element, "date1904") in ("1", "true", "on"):
                self.first = SINCE_1904
            if begins and name == "sheet" and len(found) < HEADINGS:
                found.append((attribute(element, "name"), related_id(element) or attribute(element, "id")))
        return found

    def displayed(self, most: int) -> list[str]:
        """Return the keys of the first sheets' parts."""
        return [sheet.key for sheet in self.sheets[:most] if sheet.key]

    def all(self) -> list[str]:
        """Return the keys of all sheets' parts."""
        related = self.office.related(self.main, *SHEETS)
        return related or self.office.implied("worksheet", absent=True)

    def add(self, text: Text, found: Found) -> None:
        """Add the names of the sheets as headings, the columns, and the text of the first rows."""
        for sheet in self.sheets:
            found.add("headings", sheet.name, 200)
        strings = self.office.parts.get(self.office.one(self.main, "sharedStrings"), b"")
        formats = self.office.parts.get(self.office.one(self.main, "styles"), b"")
        shared = xlsb.strings(strings) if self.binary else _strings(strings)
        cells = Cells(shared, [] if self.binary else _formats(formats), self.first)
        for sheet in self.sheets[: found.most(MOST_SHEETS)]:
            text.add(sheet.name if found.full else "")
            text.end()
            raw = self.office.part(sheet.key) if sheet.key else self._lost(sheet)
            if self.binary:
                rows = xlsb.rows(raw, shared, found.most(ROWS), found.most(CELLS))
            else:
                rows = _rows(raw, cells, found.most(ROWS), found.most(CELLS))
            _sheet(rows, text, found)
            if not shared and b't="s"' in raw:
                self.office.part(self.office.one(self.main, "sharedStrings") or "shared strings")

    def _lost(self, sheet: Sheet) -> bytes:
        """Record that no relationship leads to a sheet."""
        self.office.missing[f"sheet {sheet.name[:50]}"] = None
        return b""


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
    for name, element, begins in elements(tree(raw), READING) if raw else ():
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
    for name, element, begins in elements(tree(raw), READING) if raw else ():
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
