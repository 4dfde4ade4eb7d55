"""Database files: fields, texts and number of records of dBase tables, which FoxPro and shapefiles use too.

Other databases are summarized like unrecognized files, by their strings.
"""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import read_at, short_text, unpack

VERSIONS = {
    0x02: "FoxBASE", 0x03: "dBASE III", 0x04: "dBASE IV", 0x05: "dBASE V", 0x30: "Visual FoxPro",
    0x31: "Visual FoxPro", 0x32: "Visual FoxPro", 0x43: "dBASE IV", 0x63: "dBASE IV", 0x83: "dBASE III", 0x8B: "dBASE IV",
    0xCB: "dBASE IV", 0xF5: "FoxPro",
}  # fmt: skip
"""Format by the first byte of a table (Borland, dBASE Language Reference, appendix D)."""
CHARSETS = {
    0x01: "cp437", 0x02: "cp850", 0x03: "cp1252", 0x13: "cp932", 0x4D: "gbk", 0x4E: "cp949", 0x4F: "cp950", 0x57: "cp1252",
    0x64: "cp852", 0x65: "cp866", 0x66: "cp865", 0x68: "cp895", 0x6A: "cp737", 0x6B: "cp857", 0x78: "cp950", 0x79: "cp949",
    0x7A: "gbk", 0x7B: "cp932", 0xC8: "cp1250", 0xC9: "cp1251", 0xCA: "cp1254", 0xCB: "cp1253", 0xCC: "cp1257",
}  # fmt: skip
"""Charset by the number of the language driver."""
FIELDS = 255
ROWS = 20
"""Records whose texts are kept."""
END = 0x0D


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add columns, rows (number of records), modification-date, format and partial-text of a table; else what Unrecognized adds."""
    head = body.read(32)
    made = unpack("<3BIHH", head, 1)
    if len(head) < 32 or head[0] not in VERSIONS or not (1 <= made[1] <= 12 and 1 <= made[2] <= 31 and made[4] > 32):
        body.seek(0)
        unrecognized.run(facts, body, found)
        return
    year, month, day, count, start, size = made
    # Specified as the year less 1900; programs that stored two digits began again at 0.
    year = 1_900 + year if year >= 80 else 2_000 + year
    found.add("format", VERSIONS[head[0]])
    found.add("rows", str(count), 20)
    found.add("modification-date", f"{year}-{month:02}-{day:02}")
    charset = CHARSETS.get(head[29], "cp1252")
    raw = read_at(body, 32, min(start - 32, 32 * FIELDS))
    texts: list[tuple[int, int]] = []
    place = 1
    for at in range(0, len(raw) - 31, 32):
        if raw[at] == END:
            break
        found.add("columns", short_text(raw[at : at + 11], charset), 100)
        if raw[at + 11 : at + 12] == b"C":
            texts.append((place, raw[at + 16]))
        place += raw[at + 16]
    rows = read_at(body, start, min(count, ROWS) * size) if size else b""
    lines = (
        " ".join(filter(None, (short_text(rows[at + place : at + place + length], charset) for place, length in texts)))
        for at in range(0, len(rows), max(size, 1))
        # A star marks a deleted record.
        if rows[at : at + 1] != b"*"
    )
    found.body("\n".join(filter(None, lines)))
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


SUMMARIZER = Summarizer(types=("Database",), run=run)
