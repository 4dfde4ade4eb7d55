"""What the summarizers of program sources share: reading, comments, and what a source says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from processors.summarize._base import Found
from processors.summarize._text import first_sentence, squeeze

MAX_SOURCE = 262_144
"""Bytes of a source that are read: what comes later adds names, not what the source is about."""
COMMENTS = 4_096
"""Bytes of comments that are kept."""

LEGAL = re.compile(
    r"(?i)copyright|\(c\)|©|licen[cs]e|SPDX|warrant|all rights reserved|permission is|redistribut|without modification|"
    r"-\*-|^\s*\$(?:Id|Header|RCS)|vim?:|eslint|istanbul|pragma|noqa|under section \d|\bGPL\b|do not (?:edit|modify)|"
    r"(?:was|automatically) (?:generated|preprocessed)|\b(?:created|generated|produced) (?:by|from|with) \S{1,100}\.\w{1,4}\b"
)
_GUTTER = re.compile(r"^[ \t]*(?:/?\*+/?|//+!?|#+|;+|--+|%+|\"+|dnl\b)?[ \t]?", re.MULTILINE)
_DRAWN = re.compile(r"^[^\w\n]{3,}+$|(?<![ \t])[ \t]++[*#;|]{1,3}+$|^[ \t]*+[|^][ \t]", re.MULTILINE)
"""What is drawn around a comment, and the marks of Haddock: no words."""
_PATH = re.compile(r"[\w.+/\\-]+\.\w{1,6}")
"""The name of a file, and no more: its own, mostly."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
_HASH = re.compile(r"(?:^[ \t]*#(?!!)[^\n]*\n?)+", re.MULTILINE)


def bare(comment: str) -> str:
    """A comment without the marks that make it one."""
    return _GUTTER.sub("", comment.removeprefix("/*").removesuffix("*/")).strip()


def add_comments(found: Found, comments: Iterable[str]) -> None:
    """Add comments in order, and as description the first paragraph of them that speaks neither of law nor to tools."""
    kept: list[str] = []
    room = COMMENTS
    for comment in comments:
        text = bare(comment)
        if not _LETTERS.search(text):
            continue
        for paragraph in _DRAWN.sub("", text).strip().split("\n\n") if "description" not in found.attributes else ():
            if len(paragraph) > 12 and not LEGAL.search(paragraph) and not _PATH.fullmatch(paragraph.strip()):
                found.set("description", first_sentence(paragraph))
                break
        kept.append(text)
        room -= len(text) + 1
        if room < 0:
            break
    found.add("comments", "\n".join(kept), COMMENTS)


def hash_comments(text: str) -> list[str]:
    """The comments of a language whose comments are lines that begin with #; consecutive lines are one comment."""
    return [m[0] for m in _HASH.finditer(text)]


def add_all(found: Found, name: str, values: Iterable[str], limit: int = 200) -> None:
    """Add values in order, each on one line."""
    for value in dict.fromkeys(values):
        found.add(name, squeeze(value), limit)
