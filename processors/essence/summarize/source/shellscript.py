"""Shell scripts: head comment, functions, usage, comments (Essence, seed 003, table 3, ShellScript)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, hash_comments

_FUNCTION = re.compile(r"^[ \t]*(?:function[ \t]+([\w:.-]{1,80})|([\w:.-]{1,80})[ \t]*\(\))", re.MULTILINE)
_SOURCED = re.compile(r"^[ \t]*(?:\.|source)[ \t]+[\"']?([^\s;\"'&|]{2,200})", re.MULTILINE)
_USAGE = re.compile(r"(?i)\b(usage:[^\n\"']{4,300})")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add interpreter, description, usage, functions, includes and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    if text.startswith("#!"):
        found.add("interpreter", squeeze(text[2:].partition("\n")[0]), 200)
    usage = _USAGE.search(text)
    found.add("usage", squeeze(usage[1]) if usage else "")
    add_all(found, "functions", (a or b for a, b in _FUNCTION.findall(text)))
    add_all(found, "includes", _SOURCED.findall(text))
    add_comments(found, hash_comments(text))


SUMMARIZER = Summarizer(types=("ShellScript",), run=run)
