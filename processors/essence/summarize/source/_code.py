"""Helpers for languages with their own comment and string syntax: code without comments and strings, and the comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from processors.essence.summarize._base import Found
from processors.essence.summarize.source._source import add_comments, inner

BLOCK = r"/\*.*?(?:\*/|\Z)"
SLASHES = r"//[^\n]*+(?:\n[ \t]*+//[^\n]*+|(?!))*+"
DOUBLE = r"\"(?:[^\"\\\n]++|\\(?:.|\Z)|(?!))*+\"?"
"""A double-quoted string. An unclosed one ends with its line, so that the search does not start again at each quote inside it."""
SINGLE = r"'(?:[^'\\\n]++|\\(?:.|\Z)|(?!))*+'?"
CHARACTER = r"'(?:[^'\\\n]|\\.[^'\\\n]{0,8}+)'"

_LAW = re.compile(
    r"(?i)[\W_]*+(?:(?:portions )?copyright|\(c\)|licensed|spdx|this file is (?:part|distributed)|permission|do not alter|@license|"
    r"license|author|generated|go:|\+build|eslint|jshint|jslint|global|istanbul|<reference|-\*-|the contents of this file)"
)
_TAG = re.compile(
    r"<(?:see|seealso|paramref)[ \t]+\w{1,10}=\"([^\"\n]{1,200})\"[ \t]*/>|</?[a-zA-Z][^<>\n]{0,200}+>|"
    r"\{@\w{1,20}\s([^{}\n]{0,200}+)\}"
)


def split(text: str, token: re.Pattern[str], *, opens: str = "/") -> tuple[str, list[str]]:
    """Return code with empty strings and without comments, and the comments. `opens`: comment openers, separated by spaces."""
    comments: list[str] = []

    def blank(found: re.Match[str]) -> str:
        if found[0].startswith(tuple(opens.split())):
            comments.append(inner(found[0], text, found.start()))
            return " "
        return '""'

    return token.sub(blank, text), comments


def add_remarks(found: Found, comments: Iterable[str], *, markup: bool = False) -> None:
    """Add comments; those that begin with legal text or tool directives come last. `markup`: remove tags from them."""
    texts = [_TAG.sub(lambda m: m[1] or m[2] or "", c[:20_000]) if markup else c for c in comments]
    add_comments(found, sorted(texts, key=lambda comment: bool(_LAW.match(comment))))


def named(names: Iterable[str], never: frozenset[str] = frozenset()) -> list[str]:
    """Return non-empty names in order, without duplicates and without those in `never`."""
    return [name for name in dict.fromkeys(names) if name and name not in never]
