"""Configurations (INI, TOML, desktop entries, properties, shell-like): sections, keys, what the usual ones say, comments.

Line by line, whatever the dialect: no value is evaluated, and no table is built.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._source import MAX_SOURCE, add_all, add_comments
from processors.summarize._text import add_references, read_text
from processors.summarize.rawtext import raw_text

_SECTION = re.compile(r"^[ \t]*\[{1,2}[ \t]*([^\[\]\n]{1,120})\]{1,2}[ \t]*(?:[#;].*)?$", re.MULTILINE)
_KEY = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]{0,80}(?:\[[\w@.-]{1,20}\])?)[ \t]*(?:=|:[ \t])[ \t]*([^\n]{0,500})", re.MULTILINE
)
_PERSON = re.compile(r"\bname[ \t]*=[ \t]*\"([^\"]{1,200})\"")
_COMMENT = re.compile(r"(?:^[ \t]*[#;][^\n]*\n?|(?!))++", re.MULTILINE)
_MEANS = {
    "name": "title", "title": "title", "description": "description", "comment": "description", "summary": "description",
    "genericname": "description", "author": "author", "authors": "author", "maintainer": "author", "version": "version",
    "license": "license", "keywords": "keywords", "homepage": "url-references", "url": "url-references", "exec": "programs",
    "execstart": "programs", "categories": "category",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add sections, keys, the usual attributes, comments and partial-text."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    add_all(found, "sections", (name.strip(" \"'") for name in _SECTION.findall(text)))
    pairs = _KEY.findall(text)
    add_all(found, "keys", (key for key, _ in pairs if not key.endswith("]")))
    for key, value in pairs:
        meant = _MEANS.get(key.lower(), "")
        if meant:
            people = _PERSON.findall(value) if meant == "author" else []
            for each in people or re.split("[,;]", value.strip("[] ")) if meant in ("keywords", "category", "author") else [value]:
                (found.set if meant in ("title", "version") else found.add)(meant, each.strip(" \t\"'{}"), 500)
    add_comments(found, (m[0] for m in _COMMENT.finditer(text)))
    add_references(found, text)
    raw_text(text, found)


SUMMARIZER = Summarizer(types=("Configuration",), run=run)
