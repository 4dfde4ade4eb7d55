"""CSV and TSV: columns, number of rows, delimiter, first rows (RFC 4180, and files that deviate from it).

The delimiter is the character that occurs equally often in the first lines. The first row names columns if none of its fields is a
number, and all are filled and different.
"""

from __future__ import annotations

import csv
import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import add_all

MAX_READ = 4 << 20
LINES = 20
"""Lines that decide the delimiter, and rows that are kept."""
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

_NUMBER = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?%?|\d[\d/:T.Z-]*")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add columns, rows, delimiter and partial-text. Rows are counted in the first 4 MB; rows of longer files says "more than"."""
    text = read_text(body, facts.charset, MAX_READ)
    if text.startswith("#"):
        found.add("comments", "\n".join(line for line in text[:4_096].split("\n") if line.startswith("#")))
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    delimiter = _delimiter(lines[:LINES], facts)
    found.add("delimiter", NAMES[delimiter] if lines else "")
    first, count = [], 0
    try:
        for row in csv.reader(lines, delimiter=delimiter):
            if count < LINES:
                first.append(row)
            count += 1
    # An unclosed quote makes a field longer than the csv module accepts; the rows before it are kept.
    except csv.Error:
        count += 1
    named = bool(first) and len(first) > 1 and _names(first[0])
    if named:
        add_all(found, "columns", (field.strip() for field in first[0]), 100)
    elif first:
        found.add("column-count", str(len(first[0])))
    rows = str(count - named) if count else ""
    found.add("rows", f"more than {rows}" if facts.size > MAX_READ else rows)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)
    found.body("\n".join(" ".join(field.strip()[:200] for field in row if field) for row in first), whole=text)


def _delimiter(lines: list[str], facts: Facts) -> str:
    """Return the character that occurs equally often in most of the first lines."""
    if facts.content_type == "text/tab-separated-values":
        return "\t"
    best, score = ",", 0
    for mark in NAMES:
        counts = [line.count(mark) for line in lines]
        alike = sum(count == counts[0] for count in counts) if counts and counts[0] else 0
        if alike * counts[0] > score if counts else False:
            best, score = mark, alike * counts[0]
    return best


def _names(row: list[str]) -> bool:
    """Return whether a row names columns."""
    fields = [field.strip() for field in row]
    return len(set(fields)) == len(fields) and not any(not field or _NUMBER.fullmatch(field) for field in fields)


SUMMARIZER = Summarizer(types=("CSV",), run=run)
