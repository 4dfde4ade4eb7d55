"""Control files of Debian packages, binary and source, `.dsc` and `.changes` (Debian policy, chapter 5)."""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.debian_control import MAX_READ, attributes
from processors.essence.formats.text import read_text
from processors.essence.summarize._base import MAX_TITLE, MAX_VALUE, Facts, Found, Summarizer


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, name, version, summary, description, author, keywords, depends, url-references and the like."""
    for name, value in attributes(read_text(body, facts.charset, MAX_READ)):
        found.add(name, value, MAX_TITLE if name == "title" else MAX_VALUE)


SUMMARIZER = Summarizer(types=("DebianControl",), run=run)
