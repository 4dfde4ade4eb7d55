"""Fortran, in fixed and in free form: programs, modules, procedures, types, used modules, included files, comments."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import add_remarks
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_FIXED = re.compile(r"(?:^(?:[Cc*!](?![A-Za-z]{2,}\b[ \t]*[=(])|[ \t]*!)[^\n]*\n?|(?!))++", re.MULTILINE)
_FREE = re.compile(r"(?:^[ \t]*![^\n]*\n?|(?!))++", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*[Cc*!]+[><!*=-]*[ \t]?", re.MULTILINE)
_COMMAND = re.compile(
    r"\\(?:brief|b|par|verbatim|endverbatim|htmlonly|endhtmlonly|ingroup|author|date|param\[[^\]\n]{1,10}\]|"
    r"a)\b[ \t]*|^[ \t]*[-=*+]{4,}[ \t]*$|<[^<>\n]{1,200}>",
    re.MULTILINE,
)
_PROCEDURE = re.compile(
    r"^(?![ \t]*+end\b)[ \t]*+(?:(?!(?:subroutine|function|entry)\b)\w{1,24}+(?:[ \t]*+\*[ \t]*+\d{1,3}+)?"
    r"(?:[ \t]*+\([^()\n]{1,60}+\))?[ \t]++|(?!)){0,5}+(?:subroutine|function|entry)[ \t]++([a-z]\w{0,80})",
    re.MULTILINE | re.IGNORECASE,
)
_PROGRAM = re.compile(r"^[ \t]*(?:program|block[ \t]*data)[ \t]+([a-z]\w{0,80})", re.MULTILINE | re.IGNORECASE)
_MODULE = re.compile(
    r"^[ \t]*(?:sub)?module[ \t]+(?:\([\w:]{1,80}\)[ \t]*)?(?!procedure\b|subroutine\b|function\b)([a-z]\w{0,80})",
    re.MULTILINE | re.IGNORECASE,
)
_TYPE = re.compile(
    r"^[ \t]*type(?:[ \t]*,[^:\n]{1,80}::[ \t]*|[ \t]+(?:::[ \t]*)?)([a-z]\w{0,80})[ \t]*(?:!|$)", re.MULTILINE | re.IGNORECASE
)
_USE = re.compile(
    r"^[ \t]*use(?:[ \t]*,[ \t]*(?:non_)?intrinsic[ \t]*::|[ \t]*::)?[ \t]+([a-z]\w{0,80})", re.MULTILINE | re.IGNORECASE
)
_INCLUDE = re.compile(r"^[ \t]*+(?:#[ \t]*+)?include[ \t]++[\"'<]([^\"'>\n]{1,200})", re.MULTILINE | re.IGNORECASE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add programs, modules, procedures, types, imports, includes, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    remark = _FIXED if facts.name.lower().endswith((b".f", b".for", b".f77", b".ftn", b".fpp")) else _FREE
    code = remark.sub("", text)
    add_all(found, "programs", _PROGRAM.findall(code))
    add_all(found, "modules", _MODULE.findall(code))
    add_all(found, "procedures", _PROCEDURE.findall(code))
    add_all(found, "types", _TYPE.findall(code))
    add_all(found, "imports", _USE.findall(code))
    add_all(found, "includes", _INCLUDE.findall(text))
    add_remarks(found, (_COMMAND.sub("", _MARKS.sub("", m[0][:20_000])).lstrip(" \t") for m in remark.finditer(text)))


SUMMARIZER = Summarizer(types=("Fortran",), run=run)
