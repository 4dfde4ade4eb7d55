"""Papers in troff: -ms, -me, -mm and -mom, distinguished by their macros; title, authors, abstract, headings (seed 003).

Lines are read once. The lines of an attribute (a title, a heading) extend to the next macro that is not a font change. Tables,
formulas, pictures, references of refer and definitions of macros are not text (groff_ms(7), groff_me(7), groff_mm(7)).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, first_sentence
from processors.essence.summarize.source._source import MAX_SOURCE
from processors.essence.summarize.text._troff import expand, unescape

MAX_TEXT = 6_144
MAX_LINES = 20_000
MAX_ABSTRACT = 4_096
COLLECTED = 200
"""Lines that are collected for one attribute, such as an abstract."""

_LINE = re.compile(r"^[.'][ \t]*([^\s\\]{1,20})[ \t]*(.*)$")
_ARGUMENT = re.compile(r"\"((?:[^\"]++|\"\")*+)\"?|(\S+)")
_INCLUDED = re.compile(r"^[.'][ \t]*so[ \t]+(\S+)", re.MULTILINE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SKIPPED = {
    "TS": "TE",
    "EQ": "EN",
    "PS": "PE",
    "G1": "G2",
    "[": "]",
    "[]": "]",
    "GS": "GE",
    "de": ".",
    "de1": ".",
    "am": ".",
    "ig": ".",
    "DS": "DE",
    "(x": ")x",
}
"""Macros that begin a block without text, and the macro that ends it."""
_FONTS = _words("B I R BI CW SM LG UL u i b r bi q sz BX NL IB IR RB RI BR ul cu rb")
"""Macros that print their arguments in another font."""
_LAYOUT = _words('br sp ft ps vs ce ad na fi nf hy nh ti in ll ne bp if ie el nr ds rm tr ta lg ss cs po mk rt \\" 2C 1C lp sz')
"""Requests that do not end an attribute."""
_COLLECTED: Mapping[str, Mapping[str, str]] = {
    "ms": {
        "TL": "title",
        "AU": "author",
        "AI": "organization",
        "AB": "abstract",
        "NH": "headings",
        "SH": "headings",
        "XH": "headings",
        "ND": "",
        "DA": "",
    },
    "me": {"sh": "", "uh": "", "(l": "title", "+c": "", "$c": ""},
    "mm": {"TL": "title", "AU": "", "AS": "abstract", "H": "", "HU": "", "AF": "", "ND": ""},
    "mom": {
        "TITLE": "",
        "SUBTITLE": "",
        "AUTHOR": "",
        "HEADING": "",
        "ABSTRACT_START": "abstract",
        "HEAD": "",
        "SUBHEAD": "",
        "DOCTITLE": "",
    },
}
"""Macros after which lines are collected, by package, with the attribute; "": the macro's arguments are the value."""
_GIVEN = {
    "AU": "author", "AUTHOR": "author", "H": "headings", "HU": "headings", "sh": "headings", "uh": "headings", "+c": "headings",
    "TITLE": "title", "DOCTITLE": "title", "SUBTITLE": "description", "HEADING": "headings", "HEAD": "headings",
    "SUBHEAD": "headings",
    "AF": "organization", "ND": "date", "DA": "date", "$c": "headings",
}  # fmt: skip
_TELLS = {
    "ms": _words("TL AB AE AI NH LP PP IP SH QP RP DA"),
    "me": _words("pp lp np ip sh uh tp (l (q (b (f +c $c"),
    "mm": _words("H HU P AS AE MT BL LI AL DL LE TL AF SA"),
    "mom": _words("TITLE DOCTITLE AUTHOR START PP HEADING PRINTSTYLE DOCTYPE HEAD"),
}


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add macro-package, title, author, organization, date, abstract, headings, includes, url-references and partial-text."""
    text = expand(read_text(body, facts.charset, MAX_SOURCE))
    lines = text.split("\n")[:MAX_LINES]
    package = _package(lines, facts.name.rpartition(b".")[2].decode("latin-1").lower())
    found.add("macro-package", package and f"-{package}")
    reader = _Reader(found, package)
    for line in lines:
        reader.line(line)
    reader.end()
    for name in _INCLUDED.findall(text)[:50]:
        found.add("includes", name, 200)
    if "abstract" in found.attributes:
        found.add("description", first_sentence(found.text("abstract")))
    printed = "\n".join(reader.printed)
    add_references(found, printed)
    found.body(printed, MAX_TEXT)


def _package(lines: list[str], suffix: str) -> str:
    """Return the macro package of a text: that of its suffix if any of its macros occur, else the most used; "" if none is used."""
    names = [line[1:].split(None, 1)[0] for line in lines if line[:1] == "." and len(line) > 2 and not line[1:].isspace()]
    counts = {package: sum(map(macros.__contains__, names)) for package, macros in _TELLS.items()}
    best = suffix if counts.get(suffix) else max(counts, key=lambda package: counts[package])
    return best if counts[best] else ""


class _Reader:
    """State of reading a text line by line: the printed text, and the attribute being collected."""

    def __init__(self, found: Found, package: str) -> None:
        self.found = found
        self.collected = _COLLECTED.get(package, {})
        self.name = ""
        """The attribute being collected."""
        self.kept: list[str] = []
        self.until = ""
        """The macro that ends the current block without text."""
        self.printed: list[str] = []
        self.room = found.most(MAX_TEXT)
        self.spare = 0
        """Lines that may still be collected."""

    def line(self, line: str) -> None:
        """Process the next line."""
        macro = _LINE.match(line) if line[:1] in (".", "'") else None
        if self.until:
            if macro and macro[1] == self.until:
                self.until = ""
        elif not macro:
            self._text("" if line[:1] in (".", "'") else unescape(line))
        elif macro[1] in _SKIPPED and not (macro[1] == "DS" and "abstract" in self.name):
            self.until = _SKIPPED[macro[1]]
        elif macro[1] in _FONTS:
            self._text(unescape(" ".join(_arguments(macro[2])[:1])))
        elif macro[1] == "UX":
            self._text("UNIX")
        elif macro[1] not in _LAYOUT and not (self.name == "abstract" and macro[1] in ("PP", "LP", "P", "IP", "pp", "SH")):
            self._macro(macro[1], macro[2])

    def _macro(self, name: str, rest: str) -> None:
        """End the attribute being collected, and begin another if the macro names one."""
        self.end()
        if name not in self.collected:
            return
        self.name = self.collected[name]
        self.spare = COLLECTED
        words = [unescape(word) for word in _arguments(rest)]
        if name in _GIVEN and not self.name:
            # Headings of -mm and -me begin with their level; initials and a telephone number follow an author of -mm.
            words = words[1:] if name in ("H", "sh") and words and words[0].isdecimal() else words
            self._put(_GIVEN[name], " ".join(words if name in ("ND", "DA") else words[:1]))
        elif name in ("SH", "XH"):
            self.kept += words

    def _text(self, text: str) -> None:
        if self.name and text and self.spare > 0:
            self.kept.append(text[:MAX_ABSTRACT])
            self.spare -= 1
        if text and not text.isspace() and self.room > 0:
            self.printed.append(text.strip())
            self.room -= len(text)

    def end(self) -> None:
        """Store the attribute being collected."""
        name, kept = self.name, self.kept
        self.name, self.kept = "", []
        if name == "author":
            for author in kept:
                self._put(name, author)
        elif name:
            self._put(name, "\n".join(kept))

    def _put(self, name: str, value: str) -> None:
        value = squeeze(value)
        if name == "title":
            self.found.set(name, value, 300)
        else:
            self.found.add(name, value, MAX_ABSTRACT if name == "abstract" else 200)


def _arguments(rest: str) -> list[str]:
    """Return the arguments of a macro; within quotes, two quotes are one."""
    return [quoted.replace('""', '"') or word for quoted, word in _ARGUMENT.findall(rest[:1_000])]


SUMMARIZER = Summarizer(types=("Troff",), run=run)
