"""The title of a page that nothing names but its type: what stands first in the largest one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from statistics import median

from processors.essence.formats.text import squeeze

HEADLINES = 4
"""Lines that a title may have."""
LETTERS = 3
"""Letters of a line whose size counts."""
SAME, NEAR, NOTE, STANDS_OUT = 0.95, 0.8, 0.85, 1.15
"""Sizes by each other: of one type, of a title to what is largest, of a sign that leads to a note, of a title to other lines."""
PARTS = frozenset(("contents", "table of contents", "abstract", "summary", "introduction", "index", "preface", "inhalt"))
"""What parts of documents are called: no titles."""


def headline(chars: Sequence[str], sizes: Sequence[float]) -> str:
    """The first lines that are in the largest type, of characters and their sizes in points; "" where nothing stands out."""
    lines: list[tuple[float, str]] = []
    begin = 0
    for end, char in enumerate([*chars, "\n"]):
        if char in "\r\n":
            letters = [size for each, size in zip(chars[begin:end], sizes[begin:end], strict=True) if each.isalpha()]
            # Larger initials are no larger type, nor is a single letter in the margin.
            usual = median(letters) if len(letters) >= LETTERS else 0.0
            pairs = zip(chars[begin:end], sizes[begin:end], strict=True)
            # Digits and signs that are smaller lead to notes.
            said = "".join(each for each, size in pairs if each.isalpha() or each.isspace() or size >= usual * NOTE)
            if letters:
                lines.append((usual, said))
            begin = end + 1
    largest = max((size for size, _ in lines), default=0.0)
    # A part that begins on the page may be in larger type than the title above it.
    at = next((at for at, (size, _) in enumerate(lines) if size >= largest * NEAR), 0)
    first = [said for _, said in takewhile(lambda line: line[0] >= lines[at][0] * SAME, lines[at : at + HEADLINES])]
    others = [size for size, _ in lines[:at] + lines[at + len(first) :] if size]
    title = squeeze(" ".join(first)) if others and lines[at][0] >= STANDS_OUT * median(others) else ""
    return "" if title.strip(" .:0123456789").lower() in PARTS else title
