"""Debian copyright files, in the machine-readable format (DEP-5) and in the free format before it.

Strategy: copyright holders are named in the Copyright fields, and in statements as the law defines them: a sign or the word,
years, a name (17 U.S.C. 401 (b)). Sentences of licenses about copyright notices and holders are neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all

MAX_READ = 65_536
MAX_TEXT = 2_048
HOLDERS = 20

_NAME = re.compile(r"^Upstream-Name:[ \t]*(\S.*)$", re.MULTILINE)
_LICENSE = re.compile(r"^License:[ \t]*(\S.{0,100})$", re.MULTILINE)
_FAMILY = re.compile(r"/usr/share/common-licenses/([\w.+-]*\w)")
_PLACE = re.compile(r"/doc/([^/]+)/copyright\Z|/([^/]+)/debian/(?:[^/]{1,80}\.)?copyright\Z")
"""Paths of the file in installed packages, and in the sources of packages (Debian Policy, 12.5)."""
_FIELD = re.compile(r"^(Copyright|Upstream-Contact):[ \t]*+([^\n]*+(?:\n[ \t]++[^\n]*+|(?!)){0,200}+)", re.MULTILINE)
_YEAR = r"(?:19|20)\d\d"
_MARGIN = r"[ \t*#]{0,40}+"
_YEARS = (
    rf"(?:{_YEAR}(?:[ \t]?[-\u2010-\u2014][ \t]?(?:\d{{2,4}}|present|now|[Cc]urrent)?)?"
    rf"(?:[,;/&][ \t]?(?:\n{_MARGIN})?|\s{_MARGIN})?(?:and[ \t])?(?:\d\d,[ \t]?){{0,20}})"
)
_SIGN = r"(?:\([cC]\)|\u00a9)"
_GAP = r"[ \t:,]{0,8}"
_STATEMENT = re.compile(
    rf"(?<![\w/-])(?:[Cc]opyrights?|COPYRIGHT|{_SIGN})(?![\w/-]){_GAP}(?P<sign>{_SIGN})?{_GAP}"
    rf"(?P<years>(?:{_YEARS}|(?!)){{1,40}}+)?{_GAP}(?P<by>[Bb]y[ \t]{{1,4}})?(?P<after>{_SIGN})?"
    r"[ \t]{0,4}(?P<name>[^\n]{2,150})"
)
_DATED = re.compile(rf"{_YEAR}[\W]{{0,8}}\Z")
_FIRST = re.compile(rf"\s*+(?:{_SIGN}\s*+)?(?:{_YEARS}|(?!)){{1,40}}+{_GAP}(?:by )?")
_RIGHTS = re.compile(
    r"(?i)[\s.,;(]{0,8}(?:all rights? reserved|some rights reserved|\*/|and it is\b|and is (?:hereby|licensed|released)|"
    r"released under\b|licensed under|see (?:the )?(?:source|file|author)|this (?:program|file|software|is)\b|"
    rf"permission is (?=hereby)|,? {_YEAR}[\d, -]{{0,80}}+\Z).*"
)
"""Text behind the name of a holder: other sentences, or years."""
_LEGAL = re.compile(
    r"(?i)(?:copyright|holders?|owners?|notices?|n/?a|none|unknown|see|statements?|and|or|in|of|is|are|license|licence|status|year|"
    r"the (?:above|following|author|copyright|original)s?|information|public[ -]domain|yyyy|your|name of|disclaimer|law|for|on|to|"
    r"this|inc|ltd|foundation[,;])\b"
)
"""Words with which no name of a holder begins."""
_WORDS = "is are was were you may has have this that which under file files these those can be from any all subject terms version"
_PROSE = re.compile(rf"(?i)\b(?:{_WORDS.replace(' ', '|')}|licen[cs]es?|warrant(?:y|ies)|warranties|software;|http)\b")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author (the copyright holders), license, url-references and partial-text."""
    text = read_text(body, facts.charset, MAX_READ)
    name = _NAME.search(text)
    place = _PLACE.search(facts.url)
    called = name[1].strip() if name else (place[1] or place[2] if place else "")
    # The first line of the file is no title: it states the format, or a download address.
    found.add("title", f"{called}: copyright" if called else facts.name.decode("utf-8", "replace"), 200)
    fields = _FIELD.findall(text)
    contacts = (line.strip(" ,") for name, value in fields if name == "Upstream-Contact" for line in value.split("\n"))
    add_all(found, "author", (contact for contact in contacts if not contact.startswith(("http:", "https:"))))
    held = (holder for name, value in fields if name == "Copyright" for holder in _field(value))
    add_all(found, "author", list(dict.fromkeys((*held, *_stated(text))))[:HOLDERS])
    add_all(found, "license", (*_LICENSE.findall(text), *_FAMILY.findall(text)))
    add_references(found, text[:8_192])
    found.body(text[: 2 * MAX_TEXT], MAX_TEXT, whole=text)


def _field(value: str) -> Iterator[str]:
    """Yield the holders in a Copyright field, one per line, up to the first line of prose."""
    for line in value.split("\n"):
        if _STATEMENT.search(line):
            yield from _stated(line)
        elif dated := _FIRST.match(line):
            yield from _holder(line[dated.end() :])
        elif _PROSE.search(line):
            return
        else:
            yield from _holder(line)


def _stated(text: str) -> Iterator[str]:
    """Yield the holders in the copyright statements of a text: those with years, before or behind the name, or with a sign."""
    for found in _STATEMENT.finditer(text):
        name = found["name"]
        signed = found["sign"] or found["after"] or found["by"] or found[0].startswith(("(", "\u00a9")) or _DATED.search(name)
        if found["years"] or (signed and name[0].isupper() and not _PROSE.search(name)):
            yield from _holder(name)


def _holder(written: str) -> Iterator[str]:
    """Yield a holder without the text behind the name; nothing if it is not a name."""
    name = squeeze(_RIGHTS.sub("", written)).strip(" .,;:*#\"'/-")
    if len(name) > 2 and any(map(str.isalpha, name)) and name[0] not in "<[{$" and not _LEGAL.match(name):
        yield name.removeprefix("by ")


SUMMARIZER = Summarizer(types=("DebianCopyright",), run=run)
