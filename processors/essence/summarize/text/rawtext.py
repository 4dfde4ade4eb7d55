"""Plain text: the first 100 lines, then the first sentence of each later paragraph (Essence, seed 003, table 3, RawText)."""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.text import MAX_TEXT, read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence, paragraphs, plain

LINES = 100
FIRST = 6_144
"""Characters of the first lines, at most."""
LATER = 6_144
"""Characters of the sentences of later paragraphs, at most."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add partial-text."""
    raw_text(plain(read_text(body, facts.charset, max(MAX_TEXT, found.full))), found)


def raw_text(text: str, found: Found, whole: str = "") -> None:
    """Add partial-text for a decoded text, also for other summarizers. `whole`: as for `Found.body`."""
    end = _nth_line(text, LINES)
    found.body(text[:end] + "\n" + sentences(text[end:]), FIRST + LATER, whole=whole or text)


def _nth_line(text: str, lines: int) -> int:
    """Return the end of the first `lines` lines of a text, at most FIRST."""
    end = -1
    for _ in range(lines):
        end = text.find("\n", end + 1, FIRST)
        if end < 0:
            return min(len(text), FIRST)
    return end


def sentences(text: str) -> str:
    """Return the first sentence of each paragraph, one a line."""
    taken, room = [], LATER
    for paragraph in paragraphs(text):
        sentence = first_sentence(paragraph)
        room -= len(sentence) + 1
        if room < 0:
            break
        taken.append(sentence)
    return "\n".join(taken)


SUMMARIZER = Summarizer(types=("RawText",), run=run)
