"""Files of unrecognized type: name and strings (Essence, seed 003, table 3, Unrecognized). Never fails."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.summarize._base import Facts, Found, Summarizer

MAX_READ = 1 << 18
"""Bytes that are searched for strings."""
STRINGS = 2_048
"""Characters of strings that are kept."""

_RUN = re.compile(rb"[\x20-\x7e]{6,200}")
_WORDS = re.compile(rb"[A-Za-z]{4}")
_TELLING = re.compile(rb"(?i)copyright|\(c\) |version|usage:|license|author|description")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title (the file name) and strings, first those that mention version, usage or copyright."""
    found.add("title", facts.name.decode("utf-8", "replace"), 300)
    telling, others = _strings(body.read(MAX_READ))
    found.add("strings", "\n".join((*telling, *others)), STRINGS)


def _strings(raw: bytes) -> tuple[list[str], list[str]]:
    """Return the strings that contain a word, without duplicates: the informative ones, and the others."""
    seen: set[bytes] = set()
    telling: list[str] = []
    others: list[str] = []
    room = STRINGS
    for match in _RUN.finditer(raw):
        text = match[0].strip()
        if text in seen or not _WORDS.search(text):
            continue
        seen.add(text)
        if _TELLING.search(text):
            telling.append(text.decode("ascii"))
        elif room > 0:
            others.append(text.decode("ascii"))
            room -= len(text)
    return telling[:20], others


SUMMARIZER = Summarizer(types=("Unrecognized",), run=run)
