"""IAFA templates (Internet Anonymous FTP Archives, draft of 1994; ROADS): titles, descriptions, keywords, people, places."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all

MAX_READ = 262_144

NAMES = {
    "title": "title", "version": "version", "description": "description", "short-description": "summary", "abstract": "abstract",
    "discussion": "description", "keywords": "keywords", "subject-descriptor": "keywords", "category": "category",
    "author-name": "author", "admin-name": "author", "owner-name": "author", "record-maintained-by": "maintainer",
    "organization-name": "organization", "author-email": "email", "admin-email": "email", "copying-policy": "license",
    "copyright": "copyright", "uri": "url-references", "url": "url-references", "location": "sites", "site-name": "sites",
    "host-name": "sites", "requirements": "platforms", "platform": "platforms", "language": "language",
    "creation-date": "creation-date", "service-name": "title", "user-name": "author",
    "source": "published-in", "citation": "published-in",
}  # fmt: skip
_FIELD = re.compile(
    r"^([A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){0,4})(?:-v\d{1,3})?:[ \t]*([^\n]*(?:\n[ \t]+[^\n]+){0,100})", re.MULTILINE
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add the attributes of the fields, keywords one by one; of several records, the kinds and titles of all."""
    text = read_text(body, facts.charset, MAX_READ)
    pairs = [(name.lower(), value) for name, value in _FIELD.findall(text)]
    kinds = [value.strip() for name, value in pairs if name == "template-type"]
    add_all(found, "template-type", kinds)
    titles = [squeeze(value) for name, value in pairs if NAMES.get(name) == "title" and value.strip()]
    if len(kinds) > 1:
        add_all(found, "titles", titles, 300)
        found.add("title", f"IAFA templates: {', '.join(titles[:20])}" if titles else "", 300)
    for name, value in pairs:
        meant = NAMES.get(name, "")
        for part in re.split("[,;]", value) if meant == "keywords" else [value]:
            (found.set if meant in ("title", "language") else found.add)(meant, squeeze(part), 2_000) if meant else None
    add_references(found, text)


SUMMARIZER = Summarizer(types=("IAFA",), run=run)
