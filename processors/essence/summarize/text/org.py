"""Org, the outlines of Emacs: the keywords of a document, its headlines without their states, and its text."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._front_matter import take_front_matter
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 131_072
HEADINGS = 100

_KEYWORD = re.compile(r"^[ \t]*+#\+(\w{1,40}):[ \t]*([^\n]*)\n?", re.MULTILINE)
_HEADLINE = re.compile(
    r"^\*{1,8}[ \t]++(?:(?:TO(?:DO)|DONE|NEXT|WAITING|CANCELLED)[ \t]++)?(?:\[#\w\][ \t]++)?([^\n]{1,250})$", re.MULTILINE
)
_TAGS = re.compile(r"(?<![ \t])[ \t]++:([\w@#%:]{1,200}):[ \t]*$")
_DRAWER = re.compile(
    r"^[ \t]*+:(?:PROPERTIES|LOGBOOK):[ \t]*\n(?:[ \t]*+(?!:END:)[^\n]*\n|(?!)){0,200}+[ \t]*+:END:[ \t]*\n?", re.MULTILINE
)
_LINK = re.compile(r"\[\[([^\[\]\n]{1,500})\](?:\[([^\[\]\n]{1,300})\])?\]")
_MEANS = {
    "title": "title", "subtitle": "description", "author": "author", "date": "date", "description": "description",
    "keywords": "keywords", "filetags": "keywords", "language": "language",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, date, description, keywords, headings, url-references and partial-text."""
    text = take_front_matter(read_text(body, facts.charset, max(MAX_READ, found.full)), found)
    for name, value in _KEYWORD.findall(text):
        meant = _MEANS.get(name.lower(), "")
        if meant == "keywords":
            add_all(found, meant, (part.strip() for part in re.split("[:,]", value)))
        elif meant:
            add_all(found, meant, [value])
    add_references(found, text)
    prose = _LINK.sub(lambda m: m[2] or m[1], _DRAWER.sub("", _KEYWORD.sub("", text)))
    for headline in _HEADLINE.findall(prose)[:HEADINGS]:
        tags = _TAGS.search(headline)
        add_all(found, "headings", [headline[: tags.start()] if tags else headline])
        add_all(found, "keywords", tags[1].split(":") if tags else [])
    found.set("title", found.text("headings"))
    raw_text(prose, found)


SUMMARIZER = Summarizer(types=("Org",), run=run)
