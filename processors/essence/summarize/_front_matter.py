"""Front matter: metadata for programs at the beginning of a text, in YAML, TOML or JSON (Jekyll, "Front Matter"; Hugo, the same).

YAML is between lines of three hyphens, TOML 1.0 between lines of three plus signs, JSON (RFC 8259) is an object that begins at the
first character. TOML and JSON are parsed; YAML is read by lines, as in `data/yaml.py`.

Laws:
- What is not well-formed, not closed, or longer than LONGEST is text: nothing is removed. A rule above a text is no front matter.
- A YAML block is front matter only if its first line is a key, and each further one at the margin a key, an item or a comment.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from processors.essence.summarize._base import Found
from processors.essence.summarize.data.yaml import KEY, values
from processors.essence.summarize.source._source import add_all

LONGEST = 65_536
"""Characters of front matter, at most."""
ITEMS = 100
"""Values of a list that are read."""

MARKS = (b"---", b"+++", b"{")
"""The beginnings of front matter."""
_BEGINS = tuple(mark.decode() for mark in MARKS)
_RULE = re.compile(r"(---|\+\+\+)[ \t]*+\n")
_END = {"---": re.compile(r"^(?:---|\.\.\.)[ \t]*+$", re.MULTILINE), "+++": re.compile(r"^\+\+\+[ \t]*+$", re.MULTILINE)}
_JSON = re.compile(r"\{\s*+[\"}]")
_REST = re.compile(r"[ \t]*+(?:\n|\Z)")
_FIRST = re.compile(r"(?:\"[^\"]{1,200}+\"|'[^']{1,200}+'|[\w.$-]{1,100}+)[ \t]*+:(?=\s|\Z)")
"""The first key of a YAML block: one word or in quotes, since a sentence may have a colon too."""
_KEYED = re.compile(r"(?:\"[^\"]{1,200}+\"[ \t]*+|'[^']{1,200}+'[ \t]*+|[^\s#:\[\]{},&*!|>'\"%@`-].{0,200}?):(?=\s|\Z)")
_DOTTED = re.compile(r"(?<![\w-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+|(?!)){16}+")
"""A key of so many parts that tomllib takes long: its time grows with the square of their number."""
_TAG = re.compile(r"([a-z]{2,3})(?:[-_]\w{1,20}|(?!))*+", re.IGNORECASE)
"""A language tag, or a locale; its first part is the language (RFC 5646, 2.1)."""

_FIELDS = {
    "title": "title", "author": "author", "authors": "author", "description": "description", "summary": "description",
    "keywords": "keywords", "tags": "keywords", "date": "date", "publishdate": "date", "lastmod": "modification-date",
    "lang": "language", "language": "language", "locale": "language",
}  # fmt: skip
"""Common fields, and the attribute of each."""
_TABLES = ("taxonomies", "params", "extra")
"""Tables whose fields count as those of the document, if it has none of that name: Zola's and Hugo's."""


def without_front_matter(text: str) -> str:
    """Return a text without its front matter."""
    return text if (front := _split(text)) is None else front[1]


def take_front_matter(text: str, found: Found) -> str:
    """Add the attributes of a text's front matter to `found`; return the text without it."""
    front = _split(text)
    if front is None:
        return text
    for name, stated in front[0]:
        add_all(found, name, _values(name, stated), 1_000 if name == "description" else 200)
    return front[1]


def _values(name: str, stated: list[str]) -> list[str]:
    """Return the stated values of an attribute as a summary has them: each keyword, the language without its region."""
    if name == "keywords":
        return [part for value in stated for part in value.split(",")]
    return [tag[1].lower() if name == "language" and (tag := _TAG.fullmatch(value)) else value for value in stated]


def _split(text: str) -> tuple[list[tuple[str, list[str]]], str] | None:
    """Return attributes with their values, and the rest of the text; None if it has no front matter."""
    if not text.startswith(_BEGINS):
        return None
    if text.startswith("{"):
        return _json(text)
    begin = _RULE.match(text)
    end = _END[begin[1]].search(text, begin.end(), begin.end() + LONGEST) if begin else None
    if not begin or not end or not _REST.match(text, end.end()):
        return None
    block, rest = text[begin.end() : end.start()], text[end.end() :].removeprefix("\n")
    if begin[1] == "---":
        return (list(_yaml(block)), rest) if _is_mapping(block) else None
    try:
        return None if _DOTTED.search(block) else (list(_fields(tomllib.loads(block))), rest)
    # ValueError: not TOML, or a number of too many digits; RecursionError: nesting too deep for the parser.
    except (ValueError, RecursionError):
        return None


def _json(text: str) -> tuple[list[tuple[str, list[str]]], str] | None:
    try:
        value, end = json.JSONDecoder().raw_decode(text[:LONGEST]) if _JSON.match(text) else (None, 0)
    except (ValueError, RecursionError):
        return None
    rest = _REST.match(text, end)
    return (list(_fields(value)), text[rest.end() :]) if value is not None and rest else None


def _is_mapping(block: str) -> bool:
    """Return whether a block may be a mapping in YAML, or has no content."""
    first = True
    for line in block.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        # The end of a list or mapping in brackets may be at the margin, and so may the items of a list.
        if first and not _FIRST.match(line):
            return False
        if line[0] not in " \t]}" and line != "-" and not line.startswith("- ") and not _KEYED.match(line):
            return False
        first = False
    return True


def _yaml(block: str) -> Iterator[tuple[str, list[str]]]:
    for key in KEY.finditer(block):
        name = _FIELDS.get(key[1].strip().lower(), "")
        # An item of a list is not a field of the document.
        if name and not key[0].startswith("- "):
            yield name, values(key[2] or "", block, key.end(), people=name == "author")


def _fields(table: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the attributes of a parsed table."""
    tables = (table, *(table[name] for name in _TABLES if isinstance(table.get(name), dict)))
    known: set[str] = set()
    for each in tables:
        stated = [(_FIELDS[key.lower()], _strings(value)) for key, value in each.items() if key.lower() in _FIELDS]
        yield from ((name, strings) for name, strings in stated if name not in known)
        known.update(name for name, strings in stated if strings)


def _strings(value: Any) -> list[str]:
    """Return a value as text: that of a list or of a table with a name, too; nothing for other tables and for Booleans."""
    if isinstance(value, list):
        return [text for each in value[:ITEMS] if not isinstance(each, list) for text in _strings(each)]
    if isinstance(value, dict):
        return [name] if isinstance(name := value.get("name"), str) else []
    if isinstance(value, date | datetime | time):
        return [value.isoformat()]
    return [str(value)] if isinstance(value, str | int | float) and not isinstance(value, bool) else []
