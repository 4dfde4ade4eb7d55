"""C#: namespaces, usings, types, methods, comments (documentation comments without their tags)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import BLOCK, CHARACTER, DOUBLE, SLASHES, add_remarks, named, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_TOKEN = re.compile(rf"{BLOCK}|{SLASHES}|\$?@\$?\"(?:[^\"]++|\"\")*+\"?|{DOUBLE}|{CHARACTER}", re.DOTALL)
_NAMESPACE = re.compile(r"^[ \t]*namespace[ \t]+([\w.]{1,200})", re.MULTILINE)
_USING = re.compile(r"^[ \t]*(?:global[ \t]+)?using[ \t]+(?:static[ \t]+)?(?:\w+[ \t]*=[ \t]*)?([\w.]{1,200})[ \t]*;", re.MULTILINE)
_TYPE = re.compile(
    r"^[ \t]*(?:[a-z]{3,10}[ \t]+){0,6}(?:class|struct|interface|enum|record)[ \t]+(?:(?:class|"
    r"struct)[ \t]+)?([A-Za-z_]\w{0,100})",
    re.MULTILINE,
)
_METHOD = re.compile(
    r"^[ \t]*((?:(?:public|private|protected|internal|static|virtual|override|abstract|sealed|async|extern|unsafe|new|"
    r"partial)[ \t]++){1,6})(?:[\w<>\[\].,?*():]++[ \t]++){0,6}([A-Za-z_][\w.]{0,100}+)(?:<[^<>\n]{1,80}>)?[ \t]*+\(",
    re.MULTILINE,
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add namespaces, imports, types, functions, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    code, comments = split(text, _TOKEN)
    add_all(found, "namespaces", _NAMESPACE.findall(code))
    add_all(found, "imports", _USING.findall(code))
    types = _TYPE.findall(code)
    add_all(found, "types", types)
    add_all(found, "functions", named((name for _, name in _METHOD.findall(code)), frozenset(("if", "base", "this", *types))))
    add_remarks(found, comments, markup=True)


SUMMARIZER = Summarizer(types=("CSharp",), run=run)
