"""Lists of Debian packages (Packages, Sources, the status of dpkg): names and short descriptions (deb-control(5)).

`debiancontrol` summarizes control files, which describe one source and its packages.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import add_all

MAX_READ = 1 << 20

_FIELD = re.compile(r"^(Package|Maintainer|Description): ?([^\n]*)", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, packages, package-count, author (the maintainers) and partial-text (the one-line description of each package)."""
    values: dict[str, list[str]] = {"Package": [], "Maintainer": [], "Description": []}
    for name, value in _FIELD.findall(read_text(body, facts.charset, MAX_READ)):
        values[name].append(value.strip())
    found.add("title", f"Debian packages: {', '.join(values['Package'][:20])}", 300)
    add_all(found, "packages", values["Package"])
    found.add("package-count", str(len(values["Package"])))
    add_all(found, "author", values["Maintainer"])
    found.body("\n".join(values["Description"]))


SUMMARIZER = Summarizer(types=("DebianPackages",), run=run)
