"""Helpers for summarizers of program sources: limits, comments, and the purpose that a comment states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Found
from processors.essence.summarize._text import first_sentence

MAX_SOURCE = 262_144
"""Bytes of a source that are read: later parts add names, but not what the source is about."""
COMMENTS = 4_096
"""Bytes of comments that are kept."""

LEGAL = re.compile(
    r"(?i)copyright|\(c\)|©|licen[cs]e|SPDX|warrant|all rights reserved|permission (?:is|to)|redistribut|without modification|"
    r"-\*-|^\s*\$[A-Za-z]+(?::|\$)|vim?:|eslint|istanbul|pragma|noqa|under section \d|\bGPL\b|do not (?:edit|modify)|"
    r"(?:was|automatically) (?:generated|preprocessed)|\b(?:created|generated|produced) (?:by|from|with) \S{1,100}\.\w{1,4}\b"
)
_LAW = re.compile(r"(?i)[\W_]*+(?:(?:portions )?copyright|\(c\)|©|spdx|licen[cs]ed?\b|all rights)")
"""Start of a line from which on a comment is legal text only."""
_ORDER = re.compile(
    r"(?i)[\W_]*+(?:clang-|nolint|shellcheck|eslint|[jt]s[hl]int|prettier|biome-|istanbul|[cv]8 ignore|globals?\s+[\w$]+\s*+[:,]|"
    r"@ts-|@flow|@generated|@preserve|type:|mypy:|pylint:|flake8:|ruff:|pyright:|isort:|fmt:|yapf:|noqa|pragma|lgtm|codespell|"
    r"rubocop|frozen_string_literal|(?:file)?(?:en)?coding[:=]|vim?:|ex:|emacs:|local variables|source(?:mapping)?url=|go:|\+build|"
    r"todo|fixme|xxx|use strict|(?-i:define [A-Z_]{3}))"
)
"""Starts of lines with a tool directive, or with the name of the tool that wrote the file."""
_MADE = re.compile(
    r"(?i)[\W_]*+(?:th(?:is|e) file (?:is|was) )?(?:(?:auto|machine)-?generated|automatically generated|(?:generat|creat)ed by)|"
    r"[\W_]*+do not (?:edit|modify)"
)
_FACT = re.compile(
    r"(?i)[ \t]*+(?:(?:(?:original |previous )?(?:authors?|maintainers?)|last (?:change|modified|update)d?|language|revision|"
    r"version|date|url|homepage|e-?mail|contact|contributors?|created|modified)[ \t]*+:|written by |copied from )"
)
"""Starts of lines with facts such as author, version and date."""
_PART = re.compile(r"(?i)\bthis (?:file|program|library|source|software|module|code)(?: file)? is (?:a )?part of\b[^.]*+\.?")
_NAME = re.compile(r"[ \t]*+(?=\S*[./\\:])\S++[ \t]*+\Z")
"""A line that is a path or the name of a module."""
_TAGGED = re.compile(r"[ \t]*+[@\\](file|brief|short|summary|details?|description|desc|overview|fileoverview|class|module)\b(.*)\Z")
_TAG = re.compile(r"[ \t]*+[@\\][a-z]{3,}(?![\w(])")
"""Tags of documentation tools, such as `@param`."""
_FILE = re.compile(r"[ \t]*+[\w/+-]++\.[\w.]{1,8}+(?:[ \t]++(?:--?|:|\u2013|\u2014)|:)[ \t]++(?=\S)")
_DRESS = re.compile(r"(?<![=-])[=-]*-\*-[^\n]*?-\*-[=-]*|(?<![=-])[=-]*//+$|(?<![=*-])[=*-]{2,}+$|[ \t]\*?\\$|^[=*-]{2,}+")
"""Decoration of comment lines, and settings for editors (`-*- ... -*-`)."""
_CODE = re.compile(r"[;{}]\s*\Z")
_NAMES = frozenset(("file", "class", "module"))
"""Documentation tags whose argument is a name."""
_GUTTER = re.compile(r"^[ \t]*(?:/?\*+/?!?|//+!?|#+|;+|--+|%+|\"+|dnl\b)?[ \t]?", re.MULTILINE)
_DRAWN = re.compile(r"^[^\w\n]{3,}+$|(?<![ \t])[ \t]++[*#;|]{1,3}+$|^[ \t]*+[|^][ \t]", re.MULTILINE)
"""Frames around a comment, and Haddock's markers: no words."""
_RULE = re.compile(r"[!#*=~_+-]{4,}+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_WORDS = re.compile(r"[^\W\d_]{2,}[\W\d_]+[^\W\d_]{2}|[^\W\d_]{13}|[^\x00-\u024f]{6}")
"""Two words, or the equivalent in scripts without spaces."""
_NO_REMARK = (
    r"(?!!|[ \t]*(?:(?:ifn?def|define|endif|undef)\b(?=[ \t]*(?:[A-Z_@]|\w*_\w|$))|(?:el)?if[ \t]+!?defined\b)|include[ \t]*[<\"])"
)
"""Excludes `#!` lines, and the # of preprocessor directives."""
_HASH = re.compile(rf"(?:^[ \t]*#{_NO_REMARK}[^\n]*\n?)+", re.MULTILINE)
HASH_OR_SEMICOLON = re.compile(rf"(?:^[ \t]*(?:#{_NO_REMARK}|;)[^\n]*\n?|(?!))++", re.MULTILINE)


def bare(comment: str) -> str:
    """Return a comment without its comment markers."""
    return _GUTTER.sub("", comment.strip(" \t").removeprefix("/*").removeprefix("!").removesuffix("*/")).strip()


def inner(comment: str, text: str, start: int) -> str:
    """Return a comment found at offset `start` of `text`, with a space in front unless it begins in the first column."""
    return comment if start == 0 or text[start - 1] == "\n" else " " + comment


def purpose(text: str) -> str:
    """Return the first sentence of a bare comment that states a purpose; "" if the comment has only legal text and directives."""
    for paragraph in _DRAWN.sub("", text).strip().split("\n\n"):
        said = _PART.sub("", _RULE.sub(" ", "\n".join(_saying(paragraph.split("\n")))))
        if (
            len(said) > 12
            and not _CODE.search(said)
            and not LEGAL.search(said)
            and _WORDS.search(sentence := first_sentence(said.lstrip()))
        ):
            return sentence
    return ""


def _saying(lines: list[str]) -> Iterator[str]:
    """Yield the informative lines of a paragraph, up to the first with legal text, a documentation tag or facts such as authors."""
    for number, line in enumerate(lines):
        if tagged := _TAGGED.match(line):
            said = "" if tagged[1] in _NAMES and len(tagged[2].split()) < 2 else tagged[2].strip()
        elif (number and _LAW.match(line)) or _TAG.match(line) or _MADE.match(line) or _FACT.match(line):
            return
        else:
            said = _DRESS.sub("", _DRESS.sub("", line)).rstrip()
        if said and not _ORDER.match(said) and not (number == 0 and _NAME.match(said)):
            yield said if number else _FILE.sub("", said)


def add_comments(found: Found, comments: Iterable[str]) -> None:
    """Add comments in order, and as description the first one that states what the source is for.

    A comment that begins with white space is inside of a definition, and describes that. It becomes the description of the source
    only if it is a documentation comment and no comment outside of definitions states a purpose.
    """
    kept: list[str] = []
    room, second = COMMENTS, ""
    for number, comment in enumerate(comments):
        text = bare(comment)
        if not _LETTERS.search(text):
            continue
        if "description" not in found.attributes:
            if not comment.startswith((" ", "\t")):
                said = purpose(text)
                # A later comment that begins in lower case is a remark about one line of the source.
                found.set("description", said if number < 2 or not said[:1].islower() else "")
            elif not second and comment.lstrip().startswith(("/**", "///", "//!", "/*!")):
                second = purpose(text)
        kept.append(text)
        room -= len(text) + 1
        if room < 0:
            break
    found.set("description", second)
    found.add("comments", "\n".join(kept), COMMENTS)


def hash_comments(text: str) -> list[str]:
    """Return the comments of a language whose comment lines begin with #; consecutive lines are one comment."""
    return [m[0] for m in _HASH.finditer(text)]


def add_all(found: Found, name: str, values: Iterable[str], limit: int = 200) -> None:
    """Add values in order, without duplicates, each on one line and cut to `limit` bytes."""
    for value in dict.fromkeys(values):
        found.add(name, squeeze(value), limit)
