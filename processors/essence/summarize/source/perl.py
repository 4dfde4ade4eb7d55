"""Perl: documentation (pod), packages, subroutines, used modules, comments (Essence, seed 003, table 3, Perl)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, hash_comments

MAX_NAME = 65_536
"""Characters of a pod in which its section NAME is searched."""

_POD = re.compile(r"^=[a-z]\w*\b.*?(?:^=cut\b[^\n]*\n?|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^=head[12][ \t]++(.{1,200})$", re.MULTILINE)
_NAME = re.compile(r"^=head1[ \t]++NAME[ \t]*+\n\s*+(.{1,500}?)\n[ \t]*+\n", re.MULTILINE | re.DOTALL)
_DESCRIPTION = re.compile(r"^=head1[ \t]++DESCRIPTION[ \t]*+\n\s*+(.{1,4000}?)(?:^=head|^=cut|\Z)", re.MULTILINE | re.DOTALL)
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+([\w:]{1,100})[ \t]*[;{]?", re.MULTILINE)
_SUB = re.compile(r"^[ \t]*sub[ \t]+(\w{1,100})", re.MULTILINE)
_USE = re.compile(r"^[ \t]*(?:use|require)[ \t]+([A-Z][\w:]{1,100})", re.MULTILINE)
_FORMAT = re.compile(r"[A-Z]<(?:<++ )?([^<>]{0,300})(?: >+)?>")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, description, headings and abstract (of the pod), packages, functions, imports and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    pods = [m[0] for m in _POD.finditer(text)]
    _pod("\n\n".join(pods), found)
    code = _POD.sub("", text) if pods else text
    add_all(found, "packages", _PACKAGE.findall(code))
    add_all(found, "functions", (name for name in _SUB.findall(code) if not name.startswith("_")))
    add_all(found, "imports", _USE.findall(code))
    add_comments(found, hash_comments(code))


def _pod(pod: str, found: Found) -> None:
    name = _NAME.search(pod[:MAX_NAME])
    if name:
        line = squeeze(_bare(name[1]))
        found.add("title", line, 300)
        found.add("description", line.partition(" - ")[2])
    description = _DESCRIPTION.search(pod)
    if description:
        abstract = _bare(re.sub(r"^=\w+.*\n?", "", description[1], flags=re.MULTILINE))
        found.add("abstract", abstract)
        found.set("description", first_sentence(abstract))
    add_all(found, "headings", map(_bare, _HEADING.findall(pod)))


def _bare(text: str) -> str:
    return _FORMAT.sub(r"\1", text)


SUMMARIZER = Summarizer(types=("Perl",), run=run)
