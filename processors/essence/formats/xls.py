"""Cells of Excel workbooks until 2003 ([MS-XLS]): the displayed values, row by row, sheet by sheet.

One pass over the records, whose lengths are checked against the bytes available; an invalid record is skipped. A string that is
split over CONTINUE records is joined.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from processors.essence.formats.compound_file import windows_charset
from processors.essence.formats.line_buffer import Text
from processors.essence.formats.number_formats import BUILT_IN, SINCE_1904, shown

BOF, END, SHEET, CODEPAGE, SST, CONTINUE, XF, FORMAT = 0x809, 0x0A, 0x85, 0x42, 0xFC, 0x3C, 0xE0, 0x41E
FORMULA, FORMULA_TEXT, TRUTH, LABEL, LABEL_RICH, LABEL_SHARED = 0x06, 0x207, 0x205, 0x204, 0xD6, 0xFD
REAL, RK, RKS = 0x203, 0x27E, 0xBD
HEADER, FOOTER, DRAWN, DATE_1904 = 0x14, 0x15, 0x1B6, 0x22
BIFF8 = 0x600


def records(raw: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the records of a stream: the kind, and the data of the record and of the CONTINUE records behind it."""
    at = 0
    while at + 4 <= len(raw):
        kind, size = struct.unpack_from("<HH", raw, at)
        if kind == size == 0:
            return
        data = [raw[at + 4 : at + 4 + size]]
        at += 4 + size
        while raw[at : at + 2] == b"\x3c\0":
            size = int.from_bytes(raw[at + 2 : at + 4], "little")
            data.append(raw[at + 4 : at + 4 + size])
            at += 4 + size
        yield kind, data


class Strings:
    """A sequence of BIFF8 strings ([MS-XLS] 2.5.293); a string continued in the next record repeats its character width there."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts
        self._part = 0
        self._at = 0

    def _left(self) -> int:
        """Return the unread bytes of the current record. Raises IndexError after the last record."""
        return len(self._parts[self._part]) - self._at

    def _take(self, size: int) -> bytes:
        """Read bytes, across records if need be. Raises IndexError after the last record."""
        taken: list[bytes] = []
        while size:
            piece = self._parts[self._part][self._at : self._at + size]
            self._at += len(piece)
            size -= len(piece)
            taken.append(piece)
            if size:
                self._part, self._at = self._part + 1, 0
        return b"".join(taken)

    def pass_by(self, size: int) -> None:
        """Skip bytes. Raises IndexError."""
        self._take(size)

    def next(self) -> str:
        """Decode the next string. Raises IndexError."""
        length, flags = struct.unpack("<HB", self._take(3))
        runs = int.from_bytes(self._take(2), "little") if flags & 8 else 0
        extra = int.from_bytes(self._take(4), "little") if flags & 4 else 0
        text = self._characters(length, wide=bool(flags & 1))
        self._take(4 * runs)
        self._take(extra)
        return text

    def _characters(self, length: int, *, wide: bool) -> str:
        found: list[str] = []
        while length:
            left = self._left()
            if left <= 0:
                self._part += 1
                wide, self._at = bool(self._parts[self._part][0] & 1), 1
                continue
            size = min(length << wide, left) >> wide << wide
            if not size:
                raise IndexError
            found.append(self._take(size).decode("utf-16-le" if wide else "latin-1", "replace"))
            length -= size >> wide
        return "".join(found)


class Sheets:
    """Decodes the cells of a workbook from its records, in one pass."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._wide = True
        self._charset = "cp1252"
        self._names: list[str] = []
        self._strings: list[str] = []
        self._formats = dict(BUILT_IN)
        self._styles: list[int] = []
        self._first = 0
        """Days to add to the workbook's dates."""
        self._begun = -1
        self._row = -1
        self._style = 0

    def read(self, raw: bytes) -> None:
        """Add the sheets' names, and each sheet's cells, one row a line."""
        for kind, data in records(raw):
            try:
                self._record(kind, data)
            except (struct.error, IndexError, UnicodeError):
                continue
            if self._text.full:
                break
        self._text.end()

    def _record(self, kind: int, data: list[bytes]) -> None:
        first = data[0]
        if kind == BOF:
            self._begin(*struct.unpack_from("<HH", first))
        elif kind in (LABEL, LABEL_RICH, LABEL_SHARED, REAL, RK, RKS, TRUTH, FORMULA):
            self._cells(kind, first)
        elif kind in (FORMULA_TEXT, HEADER, FOOTER) and first:
            self._text.add(self._string(first, 0) + " ")
        elif kind == DRAWN and len(data) > 1:
            self._text.end()
            self._text.add(data[1][1:].decode("utf-16-le" if data[1][:1] == b"\1" else "latin-1", "replace") + " ")
        else:
            self._told(kind, data)

    def _told(self, kind: int, data: list[bytes]) -> None:
        """Decode a record about the whole workbook; these precede the sheets."""
        first = data[0]
        if kind == SHEET:
            self._names.append(self._short(first, 6))
        elif kind == CODEPAGE:
            self._charset = windows_charset(struct.unpack_from("<H", first)[0])
        elif kind == DATE_1904:
            self._first = SINCE_1904 if first[:1] == b"\1" else 0
        elif kind == SST:
            strings = Strings(data)
            strings.pass_by(8)
            for _ in range(struct.unpack_from("<I", first, 4)[0]):
                self._strings.append(strings.next())
        elif kind == XF:
            self._styles.append(struct.unpack_from("<H", first, 2)[0])
        elif kind == FORMAT:
            code = self._string(first, 2) if self._wide else first[3 : 3 + first[2]].decode(self._charset, "replace")
            self._formats[struct.unpack_from("<H", first)[0]] = code

    def _begin(self, version: int, kind: int) -> None:
        """Begin a workbook (5), a sheet (0x10), or a chart (0x20), which may be nested in a sheet."""
        self._wide = version >= BIFF8
        if kind != 5:
            self._begun += 1
            self._row = -1
            self._text.end()
            self._text.add(self._names[self._begun] if self._begun < len(self._names) else "")
            self._text.end()

    def _short(self, data: bytes, at: int) -> str:
        """Return a string whose length field is one byte."""
        if not self._wide:
            return data[at + 1 : at + 1 + data[at]].decode(self._charset, "replace")
        wide = data[at + 1] & 1
        return data[at + 2 : at + 2 + (data[at] << wide)].decode("utf-16-le" if wide else "latin-1", "replace")

    def _string(self, data: bytes, at: int) -> str:
        """Return a string whose length field is two bytes."""
        length = struct.unpack_from("<H", data, at)[0]
        if not self._wide:
            return data[at + 2 : at + 2 + length].decode(self._charset, "replace")
        return Strings([data[at:]]).next()

    def _cells(self, kind: int, data: bytes) -> None:
        """Add one cell, or the cells of a row of compressed numbers (RKS)."""
        row, _, style = struct.unpack_from("<HHH", data)
        if row != self._row:
            self._text.end()
            self._row = row
        if kind == RKS:
            for at in range(4, len(data) - 6, 6):
                style, bits = struct.unpack_from("<HI", data, at)
                self._text.add(self._shown(decode_rk(bits), style) + " ")
            return
        self._text.add(self._value(kind, data, style) + " ")

    def _value(self, kind: int, data: bytes, style: int) -> str:
        if kind == LABEL_SHARED:
            return self._strings[int.from_bytes(data[6:10], "little")]
        if kind in (LABEL, LABEL_RICH):
            return self._string(data, 6)
        if kind == RK:
            return self._shown(decode_rk(struct.unpack_from("<I", data, 6)[0]), style)
        if kind == TRUTH:
            return "" if data[7] else ("TRUE" if data[6] else "FALSE")
        if kind == FORMULA and data[12:14] == b"\xff\xff":
            # A text result follows in a record of its own (0); a boolean is stored here (1); errors and empty results are not
            # displayed.
            return ("TRUE" if data[8] else "FALSE") if data[6] == 1 else ""
        return self._shown(struct.unpack_from("<d", data, 6)[0], style)

    def _shown(self, value: float, style: int) -> str:
        return shown(value, self._formats.get(self._styles[style], "") if style < len(self._styles) else "", self._first)


def decode_rk(bits: int) -> float:
    """Return an RK number ([MS-XLS] 2.5.218): two of its bits state whether it is an integer and whether to divide by 100."""
    whole = (bits - (1 << 32) if bits & 0x8000_0000 else bits) >> 2
    value: float = whole if bits & 2 else struct.unpack("<d", struct.pack("<Q", (bits & ~3) << 32))[0]
    return value / 100 if bits & 1 else value
