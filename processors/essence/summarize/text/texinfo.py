"""Texinfo: title, authors, description, chapters and sections, the first text.

Commands that print their argument keep it; blocks for one output format only, indices and menus are not text.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, first_sentence
from processors.essence.summarize.source._source import add_all

MAX_READ = 393_216
MAX_TEXT = 6_144

_SAYS = re.compile(
    r"^@(settitle|title|subtitle|author|documentlanguage|setfilename|dircategory|shorttitlepage)[ \t]++([^\n]{1,400})", re.MULTILINE
)
_HEADING = re.compile(
    r"^@(?:top|part|chapter|unnumbered|appendix|section|unnumberedsec|appendixsec|subsection|unnumberedsubsec|majorheading|chapheading|"
    r"heading|subheading|centerchap)[ \t]++([^\n]{1,300})",
    re.MULTILINE,
)
_INCLUDES = re.compile(r"^@include[ \t]++(\S{1,200})", re.MULTILINE)
_DEFINES = re.compile(r"^@def(?:un|fn|mac|spec|typefun|typefn|opt|var|vr|tp|method)x?[ \t]++([^\n]{1,200})", re.MULTILINE)
_SET = re.compile(r"^@set[ \t]++([\w-]{1,60})[ \t]++([^\n]{1,200})", re.MULTILINE)
_BEGIN = re.compile(
    r"^@(ignore|iftex|ifhtml|ifxml|ifdocbook|tex|html|xml|menu|direntry|copying|titlepage|macro|rmacro|detailmenu|ifclear|copyrightnotice)\b",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^\* ([^:\n]{1,100}):\s*\([^)\n]{1,100}\)[^.\n]{0,80}\.[ \t]*+\n?[ \t]*+([^\n*@]{0,200})", re.MULTILINE)
_COMMENT = re.compile(r"@c(?:omment)?(?![a-zA-Z])[^\n]*\n?")
_VALUE = re.compile(r"@value\{([\w-]{1,60})\}")
_BRACED = re.compile(r"@(?:url|uref|xref|pxref|ref|email|inforef|link)\{([^{},]{0,300})(?:,[^{}]{0,300})?\}")
_MARK = re.compile(
    r"@(?:dots|enddots)\{\}|@(?:anchor|cindex|footnote|image)\{[^{}]{0,300}+\}|"
    r"@([\"'`^~=,])\{?([a-zA-Z])\}?|@([@{}.!?:* \n-])|@[a-zA-Z]++\{?|[{}]"
)
_LINE = re.compile(
    r"^\\input texinfo[^\n]*\n?|^@(?!(?:code|samp|var|file|dfn|emph|strong|i|b|t|r|command|option|"
    r"env|kbd|key|cite|acronym|w|sc|dots|TeX)\{|item)[a-z]+\b[^\n]*\n?",
    re.MULTILINE,
)
_ACCENTS = dict(zip("\"'`^~=,", "\u0308\u0301\u0300\u0302\u0303\u0304\u0327", strict=True))
_NAMES = {
    "settitle": "title",
    "shorttitlepage": "title",
    "subtitle": "description",
    "documentlanguage": "language",
    "setfilename": "output",
    "dircategory": "category",
}


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, description, headings, documented functions, includes, url-references and partial-text."""
    text = _COMMENT.sub("\n", read_text(body, facts.charset, MAX_READ))
    values: dict[str, str] = dict(_SET.findall(text))
    text = _VALUE.sub(lambda m: values.get(m[1], m[1]), text)
    for name, value in _SAYS.findall(text)[:100]:
        kind = _NAMES.get(name, name)
        (found.set if kind in ("title", "language") else found.add)(kind, _flat(value), 300)
    entry = _ENTRY.search(text)
    if entry:
        found.add("description", _flat(entry[2]))
    copying = text.partition("\n@copying")[2][:4_000].partition("\n@end copying")[0]
    found.add("description", first_sentence(_flat(_LINE.sub("", copying)[:1_000])))
    add_all(found, "headings", map(_flat, islice((m[1] for m in _HEADING.finditer(text)), 200)))
    found.set("title", found.text("headings"))
    add_all(found, "functions", (_flat(m[1])[:80] for m in islice(_DEFINES.finditer(text), 100)))
    add_all(found, "includes", _INCLUDES.findall(text))
    add_references(found, text)
    prose = _flat_lines(_LINE.sub("", _without(text)[: 8 * found.most(MAX_TEXT)]))
    found.body(prose, MAX_TEXT)


def _without(text: str) -> str:
    """Return the text without blocks for one format only, menus and the title page."""
    kept: list[str] = []
    at = 0
    missing: set[str] = set()
    for begin in _BEGIN.finditer(text):
        # A block without an end has none after later beginnings either.
        if begin.start() < at or begin[1] in missing:
            continue
        end = text.find(f"\n@end {begin[1]}", begin.end())
        kept.append(text[at : begin.start()])
        at = end + 6 + len(begin[1]) if end >= 0 else begin.end()
        if end < 0:
            missing.add(begin[1])
    kept.append(text[at:])
    return "".join(kept)


def _flat(text: str) -> str:
    return squeeze(_MARK.sub(_mark, _BRACED.sub(r"\1", text)))


def _flat_lines(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", _MARK.sub(_mark, _BRACED.sub(r"\1", text))).strip()


def _mark(mark: re.Match[str]) -> str:
    """Return the characters that a command prints by itself."""
    accent, letter, single = mark.groups()
    if accent:
        return unicodedata.normalize("NFC", letter + _ACCENTS[accent])
    if single:
        return single if single in "@{}.!?" else " " if single in "* \n" else ""
    return "..." if "dots" in mark[0] else {"@TeX{": "TeX", "@copyright{": "\xa9", "@minus{": "-"}.get(mark[0], "")


SUMMARIZER = Summarizer(types=("Texinfo",), run=run)
