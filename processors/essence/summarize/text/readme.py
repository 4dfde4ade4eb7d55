"""README, FAQ and similar files: all words, because people write these files to be found (Essence, seed 003, table 3)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._front_matter import take_front_matter
from processors.essence.summarize._text import add_references, plain

FULL = 32_768
"""Bytes of text that are kept: more than any README that is not a book."""

_QUESTION = re.compile(r"^[ \t]*+(?:Q[:.)]|\d++(?:\.\d++|(?!))*+[.)]|#++)?[ \t]*+([A-Z][^\n?]{8,160}\?)[ \t]*$", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add partial-text (all text, up to 32 kB), url-references, front matter and, for a FAQ, its questions as headings."""
    text = take_front_matter(plain(read_text(body, facts.charset, 2 * found.most(FULL))), found)
    if facts.type == "FAQ":
        for question in _QUESTION.findall(text)[:100]:
            found.add("headings", question)
    found.body(text, FULL)
    add_references(found, text[:FULL])


SUMMARIZER = Summarizer(types=("README", "FAQ"), run=run)
