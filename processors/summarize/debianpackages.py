"""Lists of Debian packages (Packages, Sources) and single stanzas (control, .dsc): package, version, description (deb-control(5)).

Of a list, the names of the packages and what they are for; of one stanza, what its fields say.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._source import add_all
from processors.summarize._text import add_references, read_text, squeeze

MAX_READ = 1 << 20

NAMES = {
    "maintainer": "author", "uploaders": "author", "version": "version", "architecture": "machine", "section": "category",
    "homepage": "url-references", "depends": "depends", "build-depends": "depends", "license": "license",
}  # fmt: skip
_FIELD = re.compile(r"^([A-Z][A-Za-z0-9-]{2,30}):[ \t]*([^\n]*)((?:\n[ \t][^\n]*)*)", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add packages, how many, and description; of a single one author, version, machine, category, depends, abstract."""
    text = read_text(body, facts.charset, MAX_READ)
    fields = [(name.lower(), value.strip(), more) for name, value, more in _FIELD.findall(text)]
    names = list(dict.fromkeys(value for name, value, _ in fields if name in ("package", "source")))
    add_all(found, "packages", names, 100)
    described = [(value, more) for name, value, more in fields if name == "description"]
    if len(names) > 3:
        found.add("package-count", str(len(names)))
        found.add("partial-text", "\n".join(value for value, _ in described))
        return
    for name, value, more in fields:
        if name in NAMES:
            for part in (value + more).split(",") if name in ("depends", "build-depends", "uploaders") else [value]:
                found.add(NAMES[name], squeeze(part), 200)
    for value, more in described[:3]:
        found.add("description", value, 300)
        found.add("abstract", re.sub(r"^[ \t]\.?", "", more.strip("\n"), flags=re.MULTILINE))
    found.add("title", f"{names[0]}: {described[0][0]}" if names and described else names[0] if names else "", 300)
    add_references(found, text)


SUMMARIZER = Summarizer(types=("DebianPackages",), run=run)
