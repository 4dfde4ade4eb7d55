"""Change logs, of Debian packages, of GNU and free ones: what changed last, and who changes things."""

from __future__ import annotations

import re
from collections import Counter
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._source import add_all
from processors.summarize._text import FRONT, plain, read_text
from processors.summarize.rawtext import raw_text

MAX_READ = 65_536
MAX_TEXT = 4_096
AUTHORS = 20
VERSIONS = 50

_DEBIAN = re.compile(r"^([a-z0-9][a-z0-9+.-]+) \(([^)\s]+)\) [^;\n]*; ?urgency=", re.MULTILINE)
_SIGNED = re.compile(r"^ -- (.{1,100}?) <[^>\n]*>  ", re.MULTILINE)
_GNU = re.compile(
    r"^(?:\d{4}-\d\d-\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d: ]+(?:[A-Z]+ )?\d{4}) +(\S.{1,80}?) +<.*>", re.MULTILINE
)
_VERSION = re.compile(
    r"^(?:#+ |\* |=+ )?\[?(?:[Vv]ersion |[Rr]elease |[A-Za-z][\w-]{1,30} |v)?(\d+(?:\.\d+){1,4}[\w.-]{0,20})\b.{0,60}$",
    re.MULTILINE,
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, package, version (the latest first), author (the busiest first) and partial-text (the latest changes)."""
    text = FRONT.sub("", plain(read_text(body, facts.charset, MAX_READ)))
    debian = _DEBIAN.findall(text)
    if debian:
        package, latest = debian[0]
        found.add("title", f"{package} ({latest}): changes", 200)
        found.add("package", package)
    versions = [version for _, version in debian] or _VERSION.findall(text)
    add_all(found, "version", versions[:VERSIONS])
    authors = Counter(_SIGNED.findall(text) or _GNU.findall(text))
    add_all(found, "author", (name for name, _ in authors.most_common(AUTHORS)))
    if debian or authors:
        found.body(text[: 2 * MAX_TEXT], MAX_TEXT, whole=text)
    else:
        # News for users are written to be read.
        raw_text(text, found)


SUMMARIZER = Summarizer(types=("ChangeLog",), run=run)
