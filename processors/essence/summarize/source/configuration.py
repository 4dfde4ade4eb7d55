"""Configurations (INI, TOML, desktop entries, properties, shell-like): sections, keys, values of common keys, comments.

All dialects are read line by line: no value is evaluated, and no table is built.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, first_sentence, paragraphs
from processors.essence.summarize.source._source import COMMENTS, HASH_OR_SEMICOLON, MAX_SOURCE, add_all, add_comments
from processors.essence.summarize.text.rawtext import raw_text

MAX_ABOUT = 65_536
"""Characters in which the documentation of a module is searched."""

_SECTION = re.compile(r"^[ \t]*\[{1,2}[ \t]*([^\[\]\n]{1,120})\]{1,2}[ \t]*(?:[#;].*)?$", re.MULTILINE)
_KEY = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]{0,80}(?:\[[\w@.-]{1,20}\])?)[ \t]*(?:=|:[ \t])[ \t]*([^\n]{0,500})", re.MULTILINE
)
_PERSON = re.compile(r"\bname[ \t]*=[ \t]*\"([^\"]{1,200})\"")
_DOCUMENTED = re.compile(
    r"^#\[(=*)\[\.rst:[ \t]*\n(.*?)(?:^#?\]\1\]|\Z)|^#\.rst:[ \t]*\n((?:#[^\n]*+\n?|(?!))*+)", re.MULTILINE | re.DOTALL
)
"""Documentation of a CMake module (cmake-developer(7)): in a bracket comment, or in comment lines, the older form."""
_HEADED = re.compile(r"\s*+(\S[^\n]{0,200})\n[-=]{3,}[ \t]*\n")
_MEANS = {
    "name": "title", "title": "title", "description": "description", "comment": "description", "summary": "description",
    "genericname": "description", "author": "author", "authors": "author", "maintainer": "author", "version": "version",
    "license": "license", "keywords": "keywords", "homepage": "url-references", "url": "url-references", "exec": "programs",
    "execstart": "programs", "categories": "category",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add sections, keys, attributes of common keys, comments, url-references and partial-text."""
    whole = text = read_text(body, facts.charset, MAX_SOURCE)
    documented = _DOCUMENTED.search(text[:MAX_ABOUT])
    if documented:
        # The documentation names the module; no key does.
        _documented(documented[2] or re.sub(r"^# ?", "", documented[3] or "", flags=re.MULTILINE), found)
        text = text[: documented.start()] + text[documented.end() :]
    add_all(found, "sections", (name.strip(" \"'") for name in _SECTION.findall(text)))
    pairs = _KEY.findall(text)
    add_all(found, "keys", (key for key, _ in pairs if not key.endswith("]")))
    for key, value in pairs:
        meant = _MEANS.get(key.lower(), "")
        if meant:
            people = _PERSON.findall(value) if meant == "author" else []
            for each in people or re.split("[,;]", value.strip("[] ")) if meant in ("keywords", "category", "author") else [value]:
                (found.set if meant in ("title", "version") else found.add)(meant, each.strip(" \t\"'{}"), 500)
    if not documented:
        add_comments(found, (m[0] for m in HASH_OR_SEMICOLON.finditer(text)))
    add_references(found, whole)
    raw_text(whole, found)


def _documented(said: str, found: Found) -> None:
    """Add a module's documentation (reStructuredText): underlined name as title, first sentence as description, all as comments."""
    headed = _HEADED.match(said)
    if headed:
        found.add("title", headed[1], 300)
    about = (p for p in paragraphs(said[headed.end() :] if headed else said) if not p.lstrip().startswith(".. "))
    found.add("description", first_sentence(next(about, "")))
    found.add("comments", said.strip(), COMMENTS)


SUMMARIZER = Summarizer(types=("Configuration",), run=run)
