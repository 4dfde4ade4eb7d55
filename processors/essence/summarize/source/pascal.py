"""Pascal and Delphi: units, programs, used units, included files, types, procedures and functions, comments."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import SLASHES, add_remarks, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_TOKEN = re.compile(rf"\{{[^}}]*+\}}?|\(\*.*?(?:\*\)|\Z)|{SLASHES}|'[^'\n]*+'?", re.DOTALL)
_UNIT = re.compile(r"^[ \t]*(?:unit|library)[ \t]+([a-z_][\w.]{0,100})[ \t]*;", re.MULTILINE | re.IGNORECASE)
_PROGRAM = re.compile(r"^[ \t]*program[ \t]+([a-z_]\w{0,100})", re.MULTILINE | re.IGNORECASE)
_USES = re.compile(r"^[ \t]*+uses\b([\w.,\s\"]{1,4000}+)(;?)", re.MULTILINE | re.IGNORECASE)
"""A clause and its end. The end is optional, so that text without one is not scanned again from the next word."""
_PROCEDURE = re.compile(
    r"^[ \t]*(?:class[ \t]+)?(?:procedure|function|constructor|destructor|operator)[ \t]+([a-z_][\w.]{0,120})",
    re.MULTILINE | re.IGNORECASE,
)
_TYPE = re.compile(
    r"^[ \t]*(?:generic[ \t]+)?([a-z_]\w{0,80})(?:<[^<>\n]{1,60}>)?[ \t]*=[ \t]*(?:packed[ \t]+)?"
    r"(?:class|record|object|interface|dispinterface|set[ \t]+of|array|procedure|function|reference|\^|\()",
    re.MULTILINE | re.IGNORECASE,
)
_INCLUDE = re.compile(r"\{\$I(?:NCLUDE)?[ \t]+([^\s}+-][^}\n]{0,200})\}", re.IGNORECASE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add units, programs, imports, includes, types, procedures, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    code, comments = split(text, _TOKEN, opens="{ (* //")
    add_all(found, "units", _UNIT.findall(code)[:1])
    add_all(found, "programs", _PROGRAM.findall(code)[:1])
    add_all(
        found,
        "imports",
        (name for names, end in _USES.findall(code) if end for name in names.replace(",", " ").split() if name not in ("in", '""')),
    )
    add_all(found, "includes", _INCLUDE.findall(text))
    add_all(found, "types", _TYPE.findall(code))
    add_all(found, "procedures", _PROCEDURE.findall(code))
    add_remarks(found, (c[: c[0] == " "] + c.strip(" {}()*") for c in comments if not c.lstrip().startswith(("{$", "(*$"))))


SUMMARIZER = Summarizer(types=("Pascal",), run=run)
