"""Makefiles: targets, included files, comments (Essence, seed 003, table 3, Makefile)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, hash_comments

_TARGET = re.compile(r"^([A-Za-z0-9][\w.+/ -]{0,200}+)[ \t]*+::?(?!=)", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*[-.]?include[ \t]+([^\n#]{1,200})", re.MULTILINE)
_PROGRAM = re.compile(
    r"^[ \t]*(?:PACKAGE|PROG|PROGRAM|PROGRAMS|NAME|TARGET|LIB|BIN)[ \t]*[:?]?=[ \t]*([\w.+-]{1,100})", re.MULTILINE
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add programs, targets, includes and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE).replace("\\\n", " ")
    add_all(found, "programs", _PROGRAM.findall(text))
    add_all(found, "targets", (name for names in _TARGET.findall(text) for name in names.split()))
    add_all(found, "includes", _INCLUDE.findall(text))
    add_comments(found, hash_comments(text))


SUMMARIZER = Summarizer(types=("Makefile",), run=run)
