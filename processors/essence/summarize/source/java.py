"""Java, Kotlin, Scala and Groovy: package, imports, types, methods, comments (javadoc without its tags)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import BLOCK, CHARACTER, DOUBLE, SLASHES, add_remarks, named, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_TOKEN = re.compile(rf"{BLOCK}|{SLASHES}|\"\"\".*?(?:\"\"\"|\Z)|{DOUBLE}|{CHARACTER}", re.DOTALL)
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+([\w.]{1,200})", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]{1,200})", re.MULTILINE)
_MODIFIERS = r"(?:[a-z-]{3,12}[ \t\n]+){0,6}"
_TYPE = re.compile(
    rf"(?:^|[;{{}}])[ \t]*{_MODIFIERS}(?:class|@?interface|enum|record|object|trait)[ \t]+([A-Z]\w{{0,100}})", re.MULTILINE
)
_METHOD = re.compile(r"^[ \t]{1,16}((?:[\w<>\[\].,?@&:]++[ \t]++){1,10})([a-zA-Z_]\w{0,80}+)[ \t]*+\(", re.MULTILINE)
_FUNCTION = re.compile(r"\b(?:fun|def)[ \t]+(?:<[^<>\n]{1,80}>[ \t]*)?(?:\w{1,80}\.)?([a-zA-Z_]\w{0,80})")
_NO_RESULT = frozenset(("return", "new", "throw", "else", "case", "assert", "yield", "def", "fun", "await", "import", "package"))
_NO_METHOD = frozenset(("if", "for", "while", "switch", "catch", "synchronized", "super", "this", "record", "try", "when"))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add packages, imports, types, functions, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    code, comments = split(text, _TOKEN)
    add_all(found, "packages", _PACKAGE.findall(code)[:1])
    add_all(found, "imports", (name.rstrip(".") for name in _IMPORT.findall(code)))
    add_all(found, "types", _TYPE.findall(code))
    methods = (name for before, name in _METHOD.findall(code) if before.split(None, 1)[0] not in _NO_RESULT)
    add_all(found, "functions", named((*methods, *_FUNCTION.findall(code)), _NO_METHOD))
    add_remarks(found, comments, markup=True)


SUMMARIZER = Summarizer(types=("Java",), run=run)
