"""RFCs and Internet drafts as text: number, title, authors, date, abstract, obsoleted and updated RFCs, sections (RFC 7322).

The first page has two columns: series and status on the left, authors, organizations and date on the right, then the title.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, first_sentence
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 524_288
FIRST = 12_000
"""Characters that contain the first page and the abstract."""

_PAGE = re.compile(r"^[^\n\[]{0,80}+\[Page +[\divx]+\][ \t]*\n(?:\f?\n?[^\n]{0,80}(?:RFC|DRAFT|Draft)[^\n]{0,80}\n)?", re.MULTILINE)
_COLUMNS = re.compile(r"[ \t]{3,}")
_LEFT = re.compile(
    r"(?i)(request for comments|rfc|obsoletes|updates|category|bcp|std|fyi|intended status|expires|"
    r"doi)[ :#]+(.*)"
)
_AUTHOR = re.compile(
    r"(?:[A-Z][\w'-]{0,20}\.?[ -]?){1,3} ?(?:(?:van|von|de|der|del|la|Le) )?[A-Z][\w'\u2019-]{1,30}(?:,? (?:Ed\.|"
    r"Editor|Jr\.|III?))?"
)
_INITIAL = re.compile(r"[A-Z]\.")
_DATE = re.compile(
    r"(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{1,2},)? \d{4}"
)
_ABSTRACT = re.compile(r"^(?:\d\.? +)?(?:Abstract|ABSTRACT|Summary)[ \t]*\n", re.MULTILINE)
_HEADING = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,2}\.?|Appendix [A-Z]\.?) {1,3}([A-Z][^\n.]{2,80})$", re.MULTILINE)
_DRAFT = re.compile(r"<?(draft-[a-z0-9-]{3,100})(?:\.txt)?>?", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,5}")
_NAMES = {
    "category": "category",
    "intended status": "category",
    "bcp": "series",
    "std": "series",
    "fyi": "series",
    "expires": "expires",
    "doi": "doi",
}


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add number, title, author, organization, date, category, obsoletes, updates, abstract, headings, url-references and text."""
    text = _PAGE.sub("", read_text(body, facts.charset, MAX_READ))
    head, rest = _head(text[:FIRST])
    for left, right in head:
        _left(left, found)
        _right(right, found)
    title = next((p for p in re.split(r"\n[ \t]*\n", rest) if any(map(str.isalpha, p))), "")
    draft = _DRAFT.search(title) or _DRAFT.search(text[:2_000])
    found.add("draft", draft[1].lower() if draft else "", 120)
    found.add("title", squeeze(_DRAFT.sub("", title)), 300)
    mark = _ABSTRACT.search(text, 0, FIRST)
    if mark:
        found.add("abstract", _paragraphs(text[mark.end() : mark.end() + 6_000]))
        found.add("description", first_sentence(found.text("abstract")))
    add_all(found, "headings", (f"{number} {name}" for number, name in _HEADING.findall(text) if ". ." not in name))
    add_references(found, text)
    raw_text(rest + text[FIRST:], found)


def _head(page: str) -> tuple[list[tuple[str, str]], str]:
    """Return the rows of the first page's two columns, and the text after them."""
    lines = page.lstrip("\n\f").split("\n")
    rows: list[tuple[str, str]] = []
    for number, line in enumerate(lines[:40]):
        if not line.strip():
            # Old RFCs have empty lines among the columns, which end at a line without text at the left margin.
            below = next((x for x in lines[number:] if x.strip()), "")
            if below[:1].isspace() and not _LEFT.match(below.strip()) and not _DATE.search(below):
                return rows, "\n".join(lines[number:])
            continue
        columns = _COLUMNS.split(line.strip(), maxsplit=1)
        rows.append(("", columns[0]) if line.startswith(" " * 20) else (columns[0], columns[1] if len(columns) > 1 else ""))
    return rows, "\n".join(lines[40:])


def _left(left: str, found: Found) -> None:
    said = _LEFT.match(left)
    if not said:
        return
    name, value = said[1].lower(), said[2].strip()
    if name in ("request for comments", "rfc"):
        number = _NUMBER.search(value)
        found.add("number", number[0] if number else "")
    elif name in ("obsoletes", "updates"):
        for number in _NUMBER.findall(value)[:50]:
            found.add(name, f"RFC {number}")
    else:
        found.add(_NAMES[name], value, 100)


def _right(right: str, found: Found) -> None:
    date = _DATE.search(right)
    if date:
        found.set("date", date[0])
    elif _AUTHOR.fullmatch(right[:100]) and _INITIAL.match(right):
        found.add("author", right, 100)
    else:
        found.add("organization", right, 100)


def _paragraphs(text: str) -> str:
    """Return the indented paragraphs before the next line that begins at the left margin."""
    kept = []
    for line in text.split("\n"):
        if line and not line[0].isspace():
            break
        kept.append(line.strip())
    return "\n".join(kept).strip()


SUMMARIZER = Summarizer(types=("RFC",), run=run)
