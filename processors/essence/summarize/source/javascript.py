"""JavaScript and TypeScript: functions, classes and other types, imported modules, exports, comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import BLOCK, DOUBLE, SINGLE, SLASHES, add_remarks, named, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_TOKEN = re.compile(rf"{BLOCK}|{SLASHES}|{DOUBLE}|{SINGLE}|`(?:[^`\\]++|\\(?:.|\Z)|(?!))*+`?", re.DOTALL)
_NAME = r"([A-Za-z_$][\w$]{1,80})"
_FUNCTION = re.compile(rf"\bfunction\*?[ \t]+{_NAME}[ \t]*[(<]")
_ASSIGNED = re.compile(
    rf"(?<![\w$]){_NAME}[ \t]*[=:][ \t]*(?:async[ \t]+)?(?:function\b|"
    rf"\([\w$,:<>\[\]?=.{{}} \t]{{0,200}}\)(?::[ \t]?[\w<>\[\]]{{1,60}})?[ \t]*=>)"
)
_METHOD = re.compile(
    rf"^[ \t]{{1,12}}(?:(?:public|private|protected|static|async|get|set|readonly|abstract|"
    rf"override)[ \t]+){{0,4}}\*?{_NAME}[ \t]*"
    r"(?:<[^<>()\n]{1,80}>)?\([^()\n;]{0,300}\)[ \t]*(?::[^{}\n;]{1,120})?\{",
    re.MULTILINE,
)
_TYPE = re.compile(
    rf"(?:^|[;{{}}])[ \t]*(?:(?:export|default|declare|abstract|const)[ \t]+){{0,4}}(?:class|interface|enum|type|"
    rf"namespace)[ \t]+{_NAME}(?=[ \t\n]*[{{<=]|[ \t]+(?:extends|implements)\b)",
    re.MULTILINE,
)
_IMPORT = re.compile(
    r"^[ \t]*+(?:import|export)\b([\w$*,{} \t\n]{0,2000}+)(?:[\"']([^\"'\n]{1,200}+)[\"'])?",
    re.MULTILINE,
)
"""A statement up to its first string. The string is optional, so that text without one is not scanned again from the next line."""
_SOURCE = re.compile(r"(?:\bfrom|^|\n[ \t]*+(?:import|export))[ \t]*\Z")
"""End of the text before a string that names a module. If the text spans two statements, the last one counts."""
_REQUIRE = re.compile(r"\b(?:require|import)[ \t]*+\([ \t]*+[\"']([^\"'\n]{1,200}+)[\"']")
_EXPORT = re.compile(
    rf"^[ \t]*(?:(?:module\.)?exports\.{_NAME}[ \t]*=|export[ \t]+(?:default[ \t]+)?(?:async[ \t]+)?(?:function\*?|"
    rf"class|const|let|var|abstract[ \t]+class)[ \t]+{_NAME})",
    re.MULTILINE,
)
_TAIL = 100
"""Characters before a string that decide whether it names a module."""
_NO_FUNCTION = frozenset(
    ["if", "for", "while", "switch", "catch", "return", "function", "constructor", "with", "else", "do", "typeof", "new", "super"]
)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add imports, exports, types, functions, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    code, comments = split(text, _TOKEN)
    add_all(found, "imports", _modules(text))
    add_all(found, "exports", (a or b for a, b in _EXPORT.findall(code)))
    add_all(found, "types", _TYPE.findall(code))
    functions = (m[1] for m in sorted([*_FUNCTION.finditer(code), *_ASSIGNED.finditer(code), *_METHOD.finditer(code)], key=_place))
    add_all(found, "functions", named(functions, _NO_FUNCTION))
    add_remarks(found, comments, markup=True)


def _modules(text: str) -> Iterator[str]:
    """Return the imported modules, in the order of the source."""
    asked = [(m.start(), m[2]) for m in _IMPORT.finditer(text) if m[2] and _SOURCE.search(m[1][-_TAIL:])]
    asked += [(m.start(), m[1]) for m in _REQUIRE.finditer(text)]
    return (name for _, name in sorted(asked))


def _place(match: re.Match[str]) -> int:
    return match.start()


SUMMARIZER = Summarizer(types=("JavaScript",), run=run)
