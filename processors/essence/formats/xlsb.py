"""Workbooks of Excel in binary parts ([MS-XLSB]): the names of their sheets, the strings that cells name, the first rows.

A part is a row of records: a number and a size of seven bits a byte, then the data. One that is cut off ends the part.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

STRING, STRINGS = 500, 50_000
"""Characters of a string, and strings of a workbook, that are kept."""
SHEETS = 100
ROW, RK, REAL, TEXT, SHARED, FORMULA_TEXT, FORMULA_NUMBER, ITEM, SHEET = 0, 2, 5, 6, 7, 8, 9, 19, 156
_AT = 8
"""Where a cell's value stands: behind its column and its style."""


def _records(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The records of a part ([MS-XLSB] 2.1.4)."""
    at = 0
    while at + 2 <= len(raw):
        kind, at = raw[at], at + 1
        if kind & 0x80:
            kind, at = kind & 0x7F | (raw[at] & 0x7F) << 7, at + 1
        size = 0
        for shift in range(0, 28, 7):
            byte = raw[at] if at < len(raw) else 0
            size, at = size | (byte & 0x7F) << shift, at + 1
            if not byte & 0x80:
                break
        if at + size > len(raw):
            return
        yield kind, raw[at : at + size]
        at += size


def _string(data: bytes, at: int) -> tuple[str, int]:
    """A string ([MS-XLSB] 2.5.168) and the place behind it."""
    length = int.from_bytes(data[at : at + 4], "little") if len(data) >= at + 4 else 0
    length = 0 if length == 0xFFFF_FFFF else length
    return data[at + 4 : at + 4 + 2 * min(length, STRING)].decode("utf-16-le", "replace"), at + 4 + 2 * length


def sheets(raw: bytes) -> list[tuple[str, str]]:
    """The sheets of a workbook: their names, and the ids of their parts."""
    found: list[tuple[str, str]] = []
    for kind, data in _records(raw):
        if kind == SHEET and len(found) < SHEETS:
            part, end = _string(data, 8)
            if not part.isprintable():
                # The first versions had one number before it.
                part, end = _string(data, 4)
            found.append((_string(data, end)[0], part))
    return found


def strings(raw: bytes) -> list[str]:
    """The strings that cells name by number."""
    found: list[str] = []
    for kind, data in _records(raw):
        if kind == ITEM:
            found.append(_string(data, 1)[0])
            if len(found) >= STRINGS:
                break
    return found


def rows(raw: bytes, shared: list[str], most: int, cells: int) -> list[list[str]]:
    """The first rows of a sheet that have something in them."""
    found: list[list[str]] = []
    row: list[str] = []
    for kind, data in _records(raw):
        if kind == ROW:
            found += [row] if row else []
            row = []
            if len(found) >= most:
                return found
        elif len(row) < cells:
            value = _cell(kind, data, shared)
            row += [value] if value.strip() else []
    return [*found, row] if row else found


def _cell(kind: int, data: bytes, shared: list[str]) -> str:
    """The value of a cell as text; "" for what has none that is shown here."""
    if kind in (TEXT, FORMULA_TEXT):
        return _string(data, _AT)[0]
    if kind == SHARED:
        number = int.from_bytes(data[_AT : _AT + 4], "little")
        return shared[number] if number < len(shared) else ""
    if kind in (REAL, FORMULA_NUMBER) and len(data) >= _AT + 8:
        return f"{struct.unpack_from('<d', data, _AT)[0]:.15g}"
    if kind == RK and len(data) >= _AT + 4:
        bits = struct.unpack_from("<I", data, _AT)[0]
        # Two bits say whether it is a whole number, and whether it is hundredfold ([MS-XLSB] 2.5.123).
        whole = struct.unpack_from("<i", data, _AT)[0] >> 2
        value = whole if bits & 2 else struct.unpack("<d", struct.pack("<Q", (bits & ~3) << 32))[0]
        return f"{value / 100 if bits & 1 else value:.15g}"
    return ""
