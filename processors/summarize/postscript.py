"""PostScript: what its structuring comments say (DSC 3.0), and the words that it shows (Essence, seed 003, table 3, PostScript)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._dates import iso_date
from processors.summarize._text import decode, squeeze

MAX_READ = 262_144
MAX_TEXT = 4_096
TAIL = 4_096
"""Bytes at the end that are read for comments deferred by `(atend)`."""
COMMENTS = {"Title": "title", "Creator": "generator", "For": "author", "Author": "author", "CreationDate": "date", "Pages": "pages"}

_COMMENT = re.compile(r"^%%(Title|Creator|For|Author|CreationDate|Pages):[ \t]*+(.{1,300})$", re.MULTILINE)
_SHOWN = re.compile(r"\(((?:[^()\\]|\\.|(?!)){1,200}+)\)[ \t]*+(?:[\d.-]++[ \t]++|(?!))*+(?:show|[a-zA-Z]{1,2}\b)")
_ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|.)")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, generator, date, pages and partial-text (roughly: word processors cut words in pieces)."""
    head = body.read(MAX_READ)
    if facts.size > MAX_READ + TAIL:
        body.seek(facts.size - TAIL)
        head += body.read(TAIL)
    text = decode(head, facts.charset).replace("\r", "\n")
    for name, value in _COMMENT.findall(text):
        plain = squeeze(value.strip().removeprefix("(").removesuffix(")"))
        if plain and not plain.startswith("atend") and (COMMENTS[name] != "title" or "title" not in found.attributes):
            found.set(COMMENTS[name], iso_date(plain) if COMMENTS[name] == "date" else plain, 300)
    body_text = text[text.find("%%EndProlog") if "%%EndProlog" in text else 0 :]
    words = (_ESCAPE.sub("", shown[1]) for _, shown in zip(range(found.most(2_000)), _SHOWN.finditer(body_text), strict=False))
    found.body(squeeze(" ".join(w for w in words if any(map(str.isalpha, w)))), MAX_TEXT)


SUMMARIZER = Summarizer(types=("PostScript",), run=run)
