"""Patches: purpose (the text above: DEP-3, mail, git), changed files, number of changed lines (Essence, seed 003, table 3)."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import add_all

_START = re.compile(r"^(?:diff |Index: |--- \S|\*\*\* \S)", re.MULTILINE)
_FILE = re.compile(r"^(?:\+\+\+|\*\*\*|Index:)[ \t]+(?:[ab]/)?([^\s]{1,300})", re.MULTILINE)
_OLD = re.compile(r"^---[ \t]+(?:[ab]/)?([^\s]{1,300})", re.MULTILINE)
_SUBJECT = re.compile(
    r"^(?:#\s*+)?(?:Subject|Description):[ \t]*+(?:\[[^\]\n]{0,200}+\][ \t]*+)?(.++(?:\n[ \t]++\S.*+|(?!))*+)", re.MULTILINE
)
_AUTHOR = re.compile(r"^(?:From|Author):[ \t]*+(.{3,200}@.{1,100}|[A-Z].{2,200})$", re.MULTILINE)
_DATE = re.compile(r"^(?:#\s*+)?(?:Date|Last-Update):[ \t]*+(.{4,100})$", re.MULTILINE)
"""Date of creation, in the headers of mail, git and DEP-3."""
_UNIFIED = re.compile(r"^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.MULTILINE)
_HUNK = re.compile(r"^(?:@@ |\*{15})", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, date, partial-text, files, hunks, lines-added and lines-removed."""
    text = read_text(body, facts.charset)
    start = _START.search(text)
    head = text[: start.start()] if start else text[:4_096]
    subject = _SUBJECT.search(head)
    if subject:
        found.add("title", squeeze(subject[1]), 300)
    for author in _AUTHOR.findall(head):
        found.add("author", squeeze(author), 300)
    for date in _DATE.findall(head)[:1]:
        found.add("date", squeeze(date), 100)
    found.body(head, whole=text)
    names = [n for n in (*_FILE.findall(text), *_OLD.findall(text)) if n not in ("/dev/null", "----", "****")]
    add_all(found, "files", (n for n in names if not re.fullmatch(r"[\d,]+", n)), 300)
    found.add("hunks", str(len(_HUNK.findall(text))))
    added, removed = _counts(text) if _UNIFIED.search(text) else _marks(text[start.start() if start else 0 :])
    found.add("lines-added", str(added))
    found.add("lines-removed", str(removed))


def _counts(text: str) -> tuple[int, int]:
    """Count the lines added and removed in the hunks of a unified patch: only as many lines as each hunk header states."""
    added = removed = old = new = 0
    for line in text.split("\n"):
        if old <= 0 and new <= 0:
            if hunk := _UNIFIED.match(line):
                old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif line.startswith("+"):
            added, new = added + 1, new - 1
        elif line.startswith("-"):
            removed, old = removed + 1, old - 1
        elif not line.startswith("\\"):
            old, new = old - 1, new - 1
    return added, removed


def _marks(text: str) -> tuple[int, int]:
    """Count the lines added and removed in any other patch, by the first character of each line."""
    return text.count("\n+") - text.count("\n+++ "), text.count("\n-") - text.count("\n--- ")


SUMMARIZER = Summarizer(types=("Patch",), run=run)
