"""Credits of software packages: AUTHORS, THANKS, CREDITS and similar files."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references, in_folder, plain, title_line
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.readme import FULL

AUTHORS = 100
ALONE = 3
"""Lines that consist of a name without an address count as authors if there are at least so many."""

_WORD = r"[^\W\d_][\w.'\u2019-]{0,30}+"
_LEAD = r"^[ \t*+-]{0,20}+(?:[A-Z][a-z]{2,20}(?: [a-z]{1,20})?:[ \t]{1,8}+)?"
_ADDRESSED = re.compile(
    rf"{_LEAD}((?:{_WORD}[ \t])?(?:{_WORD}[ \t])?(?:{_WORD}[ \t])?(?:{_WORD}[ \t])?{_WORD})"
    r"(?:[ \t]*+[<(][^<>()\n]{1,100}@|[ \t]{2,60}+\S{1,80}(?:@| at )\w|\t[ \t]{0,60}+\S{1,80}(?:@| at )\w)",
    re.MULTILINE,
)
_NAMED = re.compile(
    r"^[ \t*+-]{0,20}+((?:[^\W\d_a-z][\w.'\u2019-]{0,30}+[ \t]){1,3}[^\W\d_a-z][\w.'\u2019-]{0,30}+):?[ \t]*$", re.MULTILINE
)
_HEADING = re.compile(r"(?i)\W*(?:\w+ ){0,3}(?:authors|thanks|credits|contributors|maintainers|developers|people)\b[^@]{0,60}")
_GENERAL = re.compile(r"(?i)\W*(?:the )?(?:authors?|thanks(?: to)?|credits|contributors|maintainers|developers)\W*")
"""A heading that fits every file of this type."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add author (names with addresses, or lines that are names), title, partial-text (all text, up to 32 kB), url-references."""
    text = plain(read_text(body, facts.charset, 2 * found.most(FULL)))
    people = _ADDRESSED.findall(text[:FULL])
    alone = [] if people else _NAMED.findall(text[:FULL])
    add_all(found, "author", (people or (alone if len(alone) >= ALONE else []))[:AUTHORS])
    first = next((line for line in text[:FULL].split("\n") if any(map(str.isalpha, line))), "")
    heading = title_line(first) if _HEADING.fullmatch(first[:200]) and not first.rstrip().endswith(":") else ""
    name = facts.name.decode("utf-8", "replace").partition(".")[0]
    found.set("title", heading if heading and not _GENERAL.fullmatch(heading) else in_folder(facts.url, heading or name), 300)
    found.body(text, FULL)
    add_references(found, text[:FULL])


SUMMARIZER = Summarizer(types=("Credits",), run=run)
