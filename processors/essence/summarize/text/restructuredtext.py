"""reStructuredText: title, docinfo, headings, objects that directives document, text (docutils, Markup Specification).

Line by line: a heading is a line with an underline of one repeated mark; comments, options of directives and inline markup are not
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._front_matter import take_front_matter
from processors.essence.summarize._text import add_references, first_sentence
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 262_144
MAX_LINES = 20_000
HEADINGS = 150

_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_FIELD = re.compile(r"^[ \t]*:([A-Za-z][\w ]{0,30}):[ \t]+(\S[^\n]{0,600}+(?:\n[ \t]+(?!:)\S[^\n]{0,200}+){0,20})", re.MULTILINE)
_OPTIONS = re.compile(r"^([ \t]*+\.\. (?!meta::)[a-z][\w:+-]{0,40}::[^\n]*+)(?:\n[ \t]++:[^\n]*+|(?!))*+", re.MULTILINE)
"""Options of a directive look like fields and are removed; those of `meta` are fields of the document and stay."""
_DIRECTIVE = re.compile(r"^[ \t]*\.\. ([a-z][\w:-]{0,40})::[ \t]*([^\n]{0,300})", re.MULTILINE)
_INLINE = re.compile(
    r":[a-z][\w:+.-]{0,30}:`([^`\n]{1,300})`|``([^`\n]{1,300})``|`([^`\n]{1,300})`_{0,2}|"
    r"\*{1,2}(?=\S)([^*\n]{1,300})\*{1,2}|\|([^|\n]{1,80})\|"
)
_TARGET = re.compile(r"(?<=\S)[ \t]?<[^<>\n]{1,500}>$")
_FIELDS = {
    "author": "author", "authors": "author", "organization": "organization", "date": "date", "version": "version",
    "copyright": "copyright", "abstract": "abstract", "keywords": "keywords", "description": "description", "title": "title",
    "subtitle": "description", "tags": "keywords", "category": "category", "language": "language", "summary": "description",
}  # fmt: skip
_NAMED = (
    "function class method attribute module exception data decorator option envvar currentmodule macro type struct member var "
    "describe confval setting command program automodule autoclass autofunction"
)
_DOCUMENTS = frozenset(_NAMED.split())


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, headings, the fields of the docinfo, documented functions, includes, url-references and partial-text."""
    text = take_front_matter(read_text(body, facts.charset, MAX_READ), found)
    lines = text.split("\n")[:MAX_LINES]
    headings = _headings(lines)
    found.set("title", headings[0] if headings else "", 300)
    for name, value in _FIELD.findall(_OPTIONS.sub(r"\1", text[:8_192])):
        kind = _FIELDS.get(name.lower(), "")
        parts = re.split("[,;]", value) if kind in ("keywords", "author") else [value]
        for part in parts if kind else ():
            found.add(kind, _bare(squeeze(part)), 2_000)
    named: list[str] = []
    for name, value in _DIRECTIVE.findall(text):
        kind = name.rpartition(":")[2]
        if kind in _DOCUMENTS:
            named.append(value.strip())
        elif kind in ("include", "literalinclude", "toctree"):
            found.add("includes", value.strip(), 200)
    for heading in headings[:HEADINGS]:
        found.add("headings", heading, 200)
    add_all(found, "functions", named, 120)
    add_references(found, text)
    prose = "\n".join(_prose(lines))
    raw_text(prose, found)
    found.set("description", first_sentence(found.text("abstract")))


def _headings(lines: list[str]) -> list[str]:
    """Return the underlined lines, in order."""
    found: list[str] = []
    for above, line in pairwise(lines):
        # An underline is usually as long as its title or longer; docutils accepts a shorter one of four marks or more.
        if line and not line[0].isalnum() and _RULE.fullmatch(line) and any(map(str.isalnum, above[:300])):
            text = above.rstrip()
            indented = text[:1].isspace()
            if len(text) <= 250 and (len(line) >= len(text) or len(line) >= 4) and not (indented and len(line) < len(text)):
                found.append(_bare(squeeze(text)))
    return [heading for heading in found if heading]


def _prose(lines: list[str]) -> Iterator[str]:
    """Yield the lines that are text, without inline markup."""
    comment = -1
    for line in lines:
        stripped = line.lstrip()
        indent = len(line) - len(stripped)
        if comment >= 0 and (not stripped or indent > comment):
            continue
        comment = -1
        if stripped.startswith("..") and (len(stripped) == 2 or stripped[2] == " "):
            # A directive: the indented lines below are its content, unless it is one without text.
            if "::" not in stripped or stripped.startswith(
                (".. toctree", ".. index", ".. image", ".. raw", ".. contents", ".. only")
            ):
                comment = indent
            continue
        if not _RULE.fullmatch(stripped) and not (indent and stripped.startswith(":")):
            yield _bare(line)


def _bare(text: str) -> str:
    """Return a line without inline markup (Inline Markup): roles, literals, references, emphasis, substitutions."""
    return _INLINE.sub(_shown, text) if "`" in text or "*" in text or "|" in text else text


def _shown(mark: re.Match[str]) -> str:
    shown = next((group for group in mark.groups() if group), "")
    return _TARGET.sub("", shown).lstrip("~!")


SUMMARIZER = Summarizer(types=("ReStructuredText",), run=run)
