"""Change logs (Debian, GNU and free format): the latest changes, and the authors."""

from __future__ import annotations

import re
from collections import Counter
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._front_matter import without_front_matter
from processors.essence.summarize._text import in_folder, plain, title_line
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text
from processors.essence.types import markup_of

MAX_READ = 65_536
MAX_TEXT = 4_096
AUTHORS = 20
VERSIONS = 50

_DEBIAN = re.compile(r"^([a-z0-9][a-z0-9+.-]+) \(([^)\s]+)\) [^;\n]*; ?urgency=", re.MULTILINE)
_SIGNED = re.compile(r"^ -- (.{1,100}?) <[^>\n]*>  ", re.MULTILINE)
_DATED = r"(?:\d{4}-\d\d-\d\d(?:[ \t]++\d\d?:\d\d(?::\d\d)?)?|[A-Z][a-z]{2},? [A-Z][a-z]{2} [ \d]\d [\d: ]+(?:[A-Z]+ )?\d{4})"
_GNU = re.compile(rf"^(?:{_DATED} +|Author:[ \t]{{1,8}})(\S.{{1,80}}?) +<.*>", re.MULTILINE)
_VERSION = re.compile(
    r"^(?:#+ |\* |=+ )?(?:(?:(?:Noteworthy|Major) )?[Cc]hanges (?:in|for|from|since) )?(?:[\w+-]{2,30} )?"
    r"\[?(?:[Vv]ersion v?|[Rr]elease v?|[A-Za-z][\w-]{1,30}[ -]v?|v)?(\d+(?:\.\d+){1,4}[\w.-]{0,20})\b.{0,60}$",
    re.MULTILINE,
)
_ENTRY = re.compile(
    rf"{_DATED}|(?:commit )?[0-9a-f]{{7,40}}\b|.*[\w.+-]@[\w.-]|.*\bdo not edit\b|this file\b|\W*generated\b|[-*o+][ \t]|[ \t]",
    re.IGNORECASE,
)
"""A first line that is a log entry, or carries no title."""
_GENERAL = re.compile(r"(?i)\W*(?:change[ -]?s?(?:log)?|history|revision history|release notes|news)\W*")
"""A heading that fits every change log."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, package, version (latest first), author (most frequent first) and partial-text (the latest changes)."""
    text = without_front_matter(plain(read_text(body, facts.charset, MAX_READ)))
    debian = _DEBIAN.findall(text)
    if debian:
        package, latest = debian[0]
        found.add("title", f"{package} ({latest}): changes", 200)
        found.add("package", package)
    versions = [version for _, version in debian] or _VERSION.findall(text)
    add_all(found, "version", versions[:VERSIONS])
    authors = Counter(_SIGNED.findall(text) or _GNU.findall(text))
    add_all(found, "author", (name for name, _ in authors.most_common(AUTHORS)))
    if not markup_of(facts.type, facts.name):
        # In a change log in a markup language, that language's summarizer finds the title.
        found.set("title", _title(text, facts), 200)
    if debian or authors:
        found.body(text[: 2 * MAX_TEXT], MAX_TEXT, whole=text)
    else:
        # News are prose for users.
        raw_text(text, found)


def _title(text: str, facts: Facts) -> str:
    """Return a title for a change log without a package name: its heading, else the folder that contains it."""
    first = next((line for line in text[:MAX_TEXT].split("\n") if line.strip()), "")
    heading = "" if _ENTRY.match(first[:300]) else title_line(first)
    if heading and not _GENERAL.fullmatch(heading):
        return heading
    return in_folder(facts.url, heading or facts.name.decode("utf-8", "replace").partition(".")[0])


SUMMARIZER = Summarizer(types=("ChangeLog",), run=run)
