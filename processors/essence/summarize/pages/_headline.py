"""Guesses the title of a page without metadata: the first lines in its largest type."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from statistics import median

from processors.essence.formats.text import squeeze

HEADLINES = 4
"""Maximum lines of a title."""
LETTERS = 3
"""Least letters of a line whose type size counts."""
SAME, NEAR, NOTE, STANDS_OUT = 0.95, 0.8, 0.85, 1.15
"""Ratios of sizes: within one type, title to largest, note mark to line (below it), title to the other lines."""
PARTS = frozenset(("contents", "table of contents", "abstract", "summary", "introduction", "index", "preface", "inhalt"))
"""Headings of parts of documents, which are not titles."""


def headline(chars: Sequence[str], sizes: Sequence[float]) -> str:
    """Return the first lines in the largest type; "" if no line stands out. `sizes`: of the characters, in points."""
    lines: list[tuple[float, str]] = []
    begin = 0
    for end, char in enumerate([*chars, "\n"]):
        if char in "\r\n":
            letters = [size for each, size in zip(chars[begin:end], sizes[begin:end], strict=True) if each.isalpha()]
            # The median, so that a large initial does not count, nor does a single letter in the margin.
            usual = median(letters) if len(letters) >= LETTERS else 0.0
            pairs = zip(chars[begin:end], sizes[begin:end], strict=True)
            # Smaller digits and signs are references to notes.
            said = "".join(each for each, size in pairs if each.isalpha() or each.isspace() or size >= usual * NOTE)
            if letters:
                lines.append((usual, said))
            begin = end + 1
    largest = max((size for size, _ in lines), default=0.0)
    # A section heading on the page may be in larger type than the title above it.
    at = next((at for at, (size, _) in enumerate(lines) if size >= largest * NEAR), 0)
    first = [said for _, said in takewhile(lambda line: line[0] >= lines[at][0] * SAME, lines[at : at + HEADLINES])]
    others = [size for size, _ in lines[:at] + lines[at + len(first) :] if size]
    title = squeeze(" ".join(first)) if others and lines[at][0] >= STANDS_OUT * median(others) else ""
    return "" if title.strip(" .:0123456789").lower() in PARTS else title
