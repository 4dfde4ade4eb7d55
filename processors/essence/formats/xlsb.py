"""Excel workbooks in binary parts ([MS-XLSB]): names of sheets, shared strings, the first rows.

A part is a sequence of records: a kind and a size, in 7-bit groups, then the data. A truncated record ends the part.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

STRING, STRINGS = 500, 50_000
"""Maximum characters of a string, and strings of a workbook."""
SHEETS = 100
ROW, RK, REAL, TEXT, SHARED, FORMULA_TEXT, FORMULA_NUMBER, ITEM, SHEET = 0, 2, 5, 6, 7, 8, 9, 19, 156
_AT = 8
"""Offset of a cell's value: after its column and its style."""


def _records(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a part ([MS-XLSB] 2.1.4)."""
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
    """Return a string ([MS-XLSB] 2.5.168) and the offset after it."""
    length = int.from_bytes(data[at : at + 4], "little") if len(data) >= at + 4 else 0
    length = 0 if length == 0xFFFF_FFFF else length
    return data[at + 4 : at + 4 + 2 * min(length, STRING)].decode("utf-16-le", "replace"), at + 4 + 2 * length


def sheets(raw: bytes) -> list[tuple[str, str]]:
    """Return the name and the part's id of each sheet."""
    found: list[tuple[str, str]] = []
    for kind, data in _records(raw):
        if kind == SHEET and len(found) < SHEETS:
            part, end = _string(data, 8)
            if not part.isprintable():
                # The first versions of the format have one number before the id.
                part, end = _string(data, 4)
            found.append((_string(data, end)[0], part))
    return found


def strings(raw: bytes) -> list[str]:
    """Return the shared strings, which cells refer to by index."""
    found: list[str] = []
    for kind, data in _records(raw):
        if kind == ITEM:
            found.append(_string(data, 1)[0])
            if len(found) >= STRINGS:
                break
    return found


def rows(raw: bytes, shared: list[str], most: int, cells: int) -> list[list[str]]:
    """Return a sheet's first `most` rows that are not empty, with at most `cells` values each."""
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
    """Return a cell's value as text; "" if it has none, or one of another kind."""
    if kind in (TEXT, FORMULA_TEXT):
        return _string(data, _AT)[0]
    if kind == SHARED:
        number = int.from_bytes(data[_AT : _AT + 4], "little")
        return shared[number] if number < len(shared) else ""
    if kind in (REAL, FORMULA_NUMBER) and len(data) >= _AT + 8:
        return f"{struct.unpack_from('<d', data, _AT)[0]:.15g}"
    if kind == RK and len(data) >= _AT + 4:
        bits = struct.unpack_from("<I", data, _AT)[0]
        # Two bits state whether it is an integer and whether to divide by 100 ([MS-XLSB] 2.5.123).
        whole = struct.unpack_from("<i", data, _AT)[0] >> 2
        value = whole if bits & 2 else struct.unpack("<d", struct.pack("<Q", (bits & ~3) << 32))[0]
        return f"{value / 100 if bits & 1 else value:.15g}"
    return ""
