from __future__ import annotations

import struct
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats import xlsb
from processors.essence.summarize import Found
from tests.processors.essence.summarize.packages import packed

RELATIONS = (
    '<Relationships><Relationship Id="rId1" Type="http://example.org/worksheet" Target="worksheets/sheet1.bin"/></Relationships>'
)


def _record(kind: int, data: bytes) -> bytes:
    number = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return number + bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) + data


def _string(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def _cell(kind: int, value: bytes) -> bytes:
    return _record(kind, bytes(8) + value)


def _workbook() -> dict[str, str | bytes]:
    row = _record(xlsb.ROW, bytes(4))
    names = row + _cell(xlsb.SHARED, b"\0\0\0\0") + _cell(xlsb.TEXT, _string("Whales"))
    counts = row + _cell(xlsb.SHARED, b"\1\0\0\0") + _cell(xlsb.RK, struct.pack("<I", 250 << 2 | 3))
    more = (
        row
        + _cell(xlsb.REAL, struct.pack("<d", 0.5))
        + _cell(xlsb.RK, struct.pack("<d", 3.0)[4:])
        + _cell(xlsb.SHARED, b"\7\0\0\0")
    )
    return {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.bin": _record(xlsb.SHEET, bytes(8) + _string("rId1") + _string("Log")),
        "xl/_rels/workbook.bin.rels": RELATIONS,
        "xl/sharedStrings.bin": _record(xlsb.ITEM, b"\0" + _string("Day")) + _record(xlsb.ITEM, b"\0" + _string("Monday")),
        "xl/worksheets/sheet1.bin": names + counts + more,
    }


def test_binary_workbook_has_sheets_columns_and_cells(summary: Callable[..., Found]) -> None:
    """The summary of a workbook in binary parts has its sheet names, columns, and cells of each kind."""
    found = summary(b"log.xlsb", packed(_workbook()))
    assert found.attributes["headings"] == ["Log"]
    assert found.attributes["columns"] == ["Day", "Whales"]
    assert found.text("partial-text") == "Day Whales\nMonday 2.5\n0.5 3"


@given(st.sampled_from(["workbook", "sharedStrings", "worksheets/sheet1"]), st.integers(0, 200), st.binary(max_size=40))
def test_any_truncated_part_raises_nothing(part: str, at: int, noise: bytes) -> None:
    """Truncated parts with random bytes after them are read as far as possible, without an exception."""
    raw = _workbook()[f"xl/{part}.bin"]
    assert isinstance(raw, bytes)
    damaged = raw[:at] + noise
    shared = xlsb.strings(damaged)
    assert len(xlsb.sheets(damaged)) <= xlsb.SHEETS
    assert len(xlsb.rows(damaged, shared, 3, 2)) <= 3
