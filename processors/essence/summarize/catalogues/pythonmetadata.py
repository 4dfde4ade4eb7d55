"""Metadata of Python packages: METADATA, PKG-INFO (core metadata of the Python packaging user guide)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 1 << 18

_FIELD = re.compile(r"^([A-Za-z][A-Za-z-]{1,40}):[ \t]*([^\n]*(?:\n[ \t]+[^\n]*|(?!))*+)", re.MULTILINE)
_GUTTER = re.compile(r"^(?:[ ]{8}|[ ]{7}\|)", re.MULTILINE)
"""Indentation of the lines of a description in the header."""
_REQUIRED = re.compile(r"[A-Za-z0-9][\w.-]{0,100}")
_MEANS = {
    "name": "name", "version": "version", "summary": "summary", "author": "author", "author-email": "author",
    "maintainer": "author", "keywords": "keywords", "license": "license", "license-expression": "license",
    "home-page": "url-references", "requires-dist": "depends",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, name, version, summary, author, keywords, license, depends, url-references and the text of the description."""
    head, _, rest = read_text(body, facts.charset, max(MAX_READ, found.full)).lstrip("\n").partition("\n\n")
    inside = ""
    for field, value in _FIELD.findall(head):
        name = field.lower()
        meant = "" if value.strip() in ("", "UNKNOWN") else _MEANS.get(name, "")
        if name == "description":
            inside = _GUTTER.sub("", value)
        elif name == "project-url":
            add_references(found, value)
        elif meant == "depends":
            required = None if "extra ==" in value else _REQUIRED.match(value)
            add_all(found, meant, [required[0]] if required else [])
        elif meant:
            add_all(found, meant, re.split(r"[,;]" if "," in value else r"\s", value) if meant == "keywords" else [value], 500)
    found.set("title", ": ".join(v for v in (found.text("name"), found.text("summary")) if v), 300)
    raw_text(rest or inside, found)


SUMMARIZER = Summarizer(types=("PythonMetadata",), run=run)
