"""SQLite files: tables, views, indices and columns, from the schema alone (SQLite, Database File Format, 1.3 to 2.6).

The tree of the schema begins on the first page. Its pages are read one by one, each once; of a record that overflows its page, only
the start is read. No statement is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.binary._binary import read_at, unpack

PAGES = 200
"""Pages of the schema that are read."""
COLUMNS = 200
APPLICATIONS = {
    0x47504B47: "GeoPackage", 0x0F055112: "Fossil checkout", 0x0F055113: "Fossil global",
    0x0F055111: "Fossil repository", 0x42654462: "Bentley Systems", 0x4D504258: "MBTiles",
}  # fmt: skip
KINDS = {"table": "tables", "view": "views", "index": "indices", "trigger": "triggers"}
_COLUMN = re.compile(r"[\s(]*(?:\"([^\"]{1,100})\"|`([^`]{1,100})`|\[([^\]]{1,100})\]|([^\s(),]{1,100}))")
_NO_COLUMN = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "KEY", "--"))
_PART = re.compile(r"[(),]|'(?:[^']++|'')*+'?|--[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add application, version (user version), tables, views, indices, triggers and columns."""
    head = body.read(100)
    size = (unpack(">H", head, 16) or (0,))[0]
    size = 65_536 if size == 1 else size
    if len(head) < 100 or size < 512 or size & (size - 1):
        raise SummaryError("no header of SQLite")
    charset = {2: "utf-16-le", 3: "utf-16-be"}.get(head[59], "utf-8")
    version, application = unpack(">I4xI", head, 60)
    found.add("application", APPLICATIONS.get(application, f"{application:#x}") if application else "")
    found.add("version", str(version) if version else "")
    columns: list[str] = []
    for kind, name, sql in _schema(body, size, size - head[20], charset):
        if not name.startswith("sqlite_"):
            found.add(KINDS.get(kind, ""), name, 200) if kind in KINDS else None
            if kind == "table" and len(columns) < COLUMNS:
                columns += [f"{name}.{column}" for column in _columns(sql)]
    for column in columns[:COLUMNS]:
        found.add("columns", column, 200)


def _schema(body: BinaryIO, size: int, usable: int, charset: str) -> Iterator[tuple[str, str, str]]:
    """Yield type, name and statement of each entry of the schema."""
    waiting, seen = [1], {0}
    for _ in range(PAGES):
        number = waiting.pop() if waiting else 0
        if number in seen:
            if not waiting:
                return
            continue
        seen.add(number)
        page = read_at(body, (number - 1) * size, size)
        start = 100 if number == 1 else 0
        header = unpack(">BHH", page, start)
        if not header or header[0] not in (5, 13):
            continue
        cells = page[start + (12 if header[0] == 5 else 8) :][: 2 * header[2]]
        places = [int.from_bytes(cells[n : n + 2], "big") for n in range(0, len(cells) - 1, 2)]
        if header[0] == 5:
            children = [(unpack(">I", page, at) or (0,))[0] for at in places]
            waiting += reversed([*children, (unpack(">I", page, start + 8) or (0,))[0]][:PAGES])
        else:
            room = size
            for at in places:
                length, start = _varint(page, at)
                _, start = _varint(page, start)
                # Cells do not overlap: if their sizes add up to more than a page, the page is damaged.
                room -= min(length, usable) + start - at
                if room < 0:
                    break
                yield _record(page[at : min(start + length, at + usable)], charset)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length number at an offset (1.6), and the offset behind it."""
    value = 0
    for n in range(9):
        byte = raw[at + n] if at + n < len(raw) else 0
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + n + 1
    return value, at


def _record(cell: bytes, charset: str) -> tuple[str, str, str]:
    """Return type, name and statement: the first, second and fifth value of a record (2.1, 2.6)."""
    _, at = _varint(cell, 0)
    _, start = _varint(cell, at)
    length, at = _varint(cell, start)
    place, values = start + length, []
    for _ in range(5):
        kind, at = _varint(cell, at)
        size = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind] if kind < 12 else (kind - 12) // 2
        values.append(cell[place : place + size].decode(charset, "replace") if kind >= 13 and place < len(cell) else "")
        place += size
    return values[0], values[1], values[4]


def _columns(sql: str) -> list[str]:
    """Return the column names of a CREATE TABLE statement."""
    names, depth, start = [], 0, 0
    for part in _PART.finditer(sql[:20_000]):
        ends = (part[0] == "," and depth == 1) or (part[0] == ")" and depth == 1)
        if ends:
            column = _COLUMN.match(sql, start)
            name = next((g for g in column.groups() if g), "") if column else ""
            if name and name.upper() not in _NO_COLUMN:
                names.append(name)
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if ends or (part[0] == "(" and depth == 1):
            start = part.end()
        if part[0] == ")" and not depth:
            break
    return names


SUMMARIZER = Summarizer(types=("SQLite",), run=run)
