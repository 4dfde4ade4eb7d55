"""Markdown and wiki text: title, headings, links, the first lines and sentences of the text."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._front_matter import take_front_matter
from processors.essence.summarize._text import add_references
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 131_072
HEADINGS = 100

# An unclosed fence extends to the end (CommonMark 0.31, 4.5); a line with backquotes after the fence as well is a code span.
_FENCE = re.compile(r"^(`{3,}+|~{3,}+)(?![^\n`]*+`).*?(?:^\1[`~]*+[ \t]*+$|\Z)", re.MULTILINE | re.DOTALL)
_HASHES = re.compile(r"^(?:#{1,4}|={1,4})[ \t]++([^\n]{1,250}+)$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(?=[^\n]*\w)([^\s|+][^\n]{1,200})\n([=\-~^\"'`#*+.])\2{2,}[ \t]*$", re.MULTILINE)
_MARKS = re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\s]{0,500}[^)\n]{0,200}\)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|:\w+:`([^`]{1,200})`")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, headings, the fields of front matter, url-references and partial-text."""
    text = take_front_matter(read_text(body, facts.charset, MAX_READ), found)
    prose = _FENCE.sub("", text) if "```" in text or "~~~" in text else text
    marked = sorted([(m.start(), m[1]) for p in (_HASHES, _UNDERLINED) for m in p.finditer(prose)])[:HEADINGS]
    headings = [h for h in (bare(h) for _, h in marked) if h]
    found.set("title", headings[0] if headings else "")
    for heading in headings:
        found.add("headings", heading)
    add_references(found, text)
    raw_text(text, found)


def bare(heading: str) -> str:
    """Return a heading without inline markup and closing marks."""
    text = heading.rstrip()
    for mark in "#=":
        closed = text.rstrip(mark)
        text = closed.rstrip() if closed != text and closed.endswith((" ", "\t")) else text
    return squeeze(_MARKS.sub(lambda m: m[1] or m[2] or "", text))


SUMMARIZER = Summarizer(types=("Markdown",), run=run)
