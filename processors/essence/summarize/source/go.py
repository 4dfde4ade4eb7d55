"""Go: package and its documentation (the comment above the package clause, as in godoc), imports, types, functions, methods."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence
from processors.essence.summarize.source._code import BLOCK, CHARACTER, DOUBLE, SLASHES, add_remarks, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, bare

_TOKEN = re.compile(rf"{BLOCK}|{SLASHES}|{DOUBLE}|`[^`]*+`?|{CHARACTER}", re.DOTALL)
_PACKAGE = re.compile(r"^package[ \t]+(\w{1,80})", re.MULTILINE)
_IMPORTS = re.compile(r"^import[ \t]*(?:\(([^()]{0,20000})\)|(?:[\w.]+[ \t]+)?\"([^\"\n]{1,200})\")", re.MULTILINE)
_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"")
_FUNCTION = re.compile(r"^func[ \t]+(?:\([^()\n]{0,120}\)[ \t]*)?([A-Za-z_]\w{0,80})", re.MULTILINE)
_TYPE = re.compile(
    r"^(?:type[ \t]+|\t)([A-Za-z_]\w{0,80})(?:\[[^\]\n]{1,80}\])?[ \t]+(?:struct|interface)\b|"
    r"^type[ \t]+(\w{1,80})",
    re.MULTILINE,
)
HEAD = 65_536
"""Characters in which the package clause is searched."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add packages, description and abstract (of the package), imports, types, functions and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    code, comments = split(text, _TOKEN)
    package = _PACKAGE.search(code)
    add_all(found, "packages", [package[1]] if package else [])
    _package(text, found)
    for block, single in _IMPORTS.findall(text):
        add_all(found, "imports", _QUOTED.findall(block) if block else [single])
    add_all(found, "types", (a or b for a, b in _TYPE.findall(code)))
    add_all(found, "functions", _FUNCTION.findall(code))
    add_remarks(found, comments)


def _package(text: str, found: Found) -> None:
    """Add the comment directly above the package clause as abstract, and its first sentence as description."""
    clause = _PACKAGE.search(text, 0, HEAD)
    above = text[: clause.start()].rstrip(" \t") if clause else ""
    if above.endswith("*/\n"):
        comment = above[above.rfind("/*") :].strip()
    else:
        lines = above.split("\n")[:-1]
        start = next((n for n in range(len(lines), 0, -1) if not lines[n - 1].startswith("//")), 0)
        comment = "\n".join(line for line in lines[start:] if not line.startswith(("//go:", "// +build")))
    said = bare(comment)
    if said and not said.startswith(("Copyright", "Code generated")):
        found.add("abstract", said)
        found.add("description", first_sentence(said.partition("\n\n")[0]))


SUMMARIZER = Summarizer(types=("Go",), run=run)
