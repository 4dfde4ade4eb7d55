"""Linux Software Map entries: title, version, description, keywords, authors, download sites (LSM, versions 1 to 4; seed 003)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all

MAX_READ = 65_536

NAMES = {
    "title": "title", "version": "version", "entered-date": "date", "description": "description", "keywords": "keywords",
    "author": "author", "maintained-by": "maintainer", "primary-site": "sites", "alternate-site": "sites", "original-site": "sites",
    "platforms": "platforms", "copying-policy": "license",
}  # fmt: skip
_TITLE = re.compile(r"^Title:[ \t]*([^\n]{1,200})", re.MULTILINE)
_FIELD = re.compile(r"^([A-Z][A-Za-z]{2,15}(?:-[A-Za-z]{2,10})?):[ \t]*([^\n]*(?:\n[ \t]+[^\n]+){0,60})", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add the attributes of the fields, keywords one by one; of several entries, their titles."""
    text = read_text(body, facts.charset, MAX_READ)
    titles = [squeeze(title) for title in _TITLE.findall(text)]
    if len(titles) > 1:
        found.add("title", f"Linux Software Map: {', '.join(titles[:20])}", 300)
        add_all(found, "titles", titles)
    for name, value in _FIELD.findall(text):
        meant = NAMES.get(name.lower(), "")
        for part in value.split(",") if meant == "keywords" else [value]:
            (found.set if meant == "title" else found.add)(meant, squeeze(part), 2_000) if meant else None
    add_references(found, text)


SUMMARIZER = Summarizer(types=("LSM",), run=run)
