"""Debian control files (Debian policy, chapter 5) as attributes: of binary and source packages, `.dsc`, `.changes`."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


def fields_of(text: str) -> Iterator[tuple[str, str]]:
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


def attributes(text: str) -> Iterator[tuple[str, str]]:
    """Yield title, name, version, summary, description, author, keywords, depends, url-references and the like."""
    name = synopsis = ""
    packages = 0
    for field, value in fields_of(text):
        packages += field == "package"
        if field in ("package", "source") and not name:
            name = value.split()[0] if value.split() else ""
            yield "name", name
        elif field == "package":
            yield "package", value
        elif field == "description":
            brief, full = _described(value)
            synopsis = synopsis or brief
            yield "summary", brief
            yield "description", full
        elif field in RELATED:
            for related in _NAME.findall(re.sub(r"\([^()]*+\)|\[[^\[\]]*+\]|<[^<>]*+>", "", value))[:MAX_RELATED]:
                yield "depends", related
        elif attribute := FIELDS.get(field):
            for part in value.split(",") if attribute in LISTED else [value]:
                yield attribute, " ".join(part.split())
    # A list of packages is named by none of them.
    if packages < 2 or text.startswith("Source:"):
        yield "title", ": ".join(part for part in (name, synopsis) if part)
