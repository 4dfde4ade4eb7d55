"""What Debian says of a package (Debian policy, chapter 5): control files of binary and source packages, `.dsc`, `.changes`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import read_text

MAX_READ = 1 << 18
MAX_RELATED = 100
"""Names of packages that are kept of one field."""

_FIELD = re.compile(r"([!-9;-~]{1,100}):(.*)")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]++")
FIELDS = {
    "version": "version",
    "architecture": "architecture",
    "maintainer": "author",
    "original-maintainer": "author",
    "uploaders": "author",
    "homepage": "url-references",
    "vcs-browser": "url-references",
    "section": "keywords",
    "source": "source-package",
    "binary": "package",
    "date": "creation-date",
    "license": "license",
}
"""Fields by their names, and the attributes that they become."""
LISTED = ("author", "keywords", "package")
"""Attributes whose fields list several values, with commas between them."""
RELATED = ("depends", "pre-depends", "build-depends")


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """The fields of all paragraphs, with their continuation lines, in order; what is no field is passed over."""
    name, lines = "", [""]
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            lines.append(line)
            continue
        if name:
            yield name, "\n".join(lines)
        field = _FIELD.fullmatch(line)
        name, lines = (field[1].lower(), [field[2].strip()]) if field else ("", [""])
    if name:
        yield name, "\n".join(lines)


def _described(value: str) -> tuple[str, str]:
    """A description as its synopsis and its text: a line with a dot alone is an empty one."""
    synopsis, _, rest = value.partition("\n")
    lines = ("" if line.strip() == "." else line.strip() for line in rest.splitlines())
    return synopsis.strip(), "\n".join(lines).strip()


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, name, version, summary, description, author, keywords, depends, url-references and the like."""
    text = read_text(body, facts.charset, MAX_READ)
    name = synopsis = ""
    packages = 0
    for field, value in _fields(text):
        packages += field == "package"
        if field in ("package", "source") and not name:
            name = value.split()[0] if value.split() else ""
            found.add("name", name)
        elif field == "package":
            found.add("package", value)
        elif field == "description":
            brief, full = _described(value)
            synopsis = synopsis or brief
            found.add("summary", brief)
            found.add("description", full)
        elif field in RELATED:
            for related in _NAME.findall(re.sub(r"\([^()]*+\)|\[[^\[\]]*+\]|<[^<>]*+>", "", value))[:MAX_RELATED]:
                found.add("depends", related)
        elif attribute := FIELDS.get(field):
            for part in value.split(",") if attribute in LISTED else [value]:
                found.add(attribute, " ".join(part.split()))
    # A list of packages is named by none of them.
    if packages < 2 or text.startswith("Source:"):
        found.add("title", ": ".join(part for part in (name, synopsis) if part), 300)


SUMMARIZER = Summarizer(types=("DebianControl",), run=run)
