"""SCCS files (POSIX.1-2017, sccsfile): revisions, their authors and comments, the description, the newest text."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import decode
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence

MAX_READ = 1 << 20
MAX_TEXT = 2_048
MESSAGES = 60

_DELTA = re.compile(r"\x01d D ([\d.]{1,40}) (\d\d/\d\d/\d\d) (\d\d:\d\d:\d\d) (\S{1,100})")
_EMPTY = re.compile(r"(?:date and time created .*)?\s*")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, head, date, author, revisions, description, log and partial-text."""
    lines = decode(body.read(MAX_READ), facts.charset).splitlines()
    revision, revisions = "", 0
    inside = ""
    text: list[str] = []
    told: list[str] = []
    for line in lines:
        mark = line[:2]
        if delta := _DELTA.match(line):
            revision, revisions = delta[1], revisions + 1
            found.set("head", revision)
            found.set("date", _date(delta[2], delta[3]))
            found.add("author", delta[4], 100)
        elif mark == "\x01c" and not _EMPTY.fullmatch(line[3:]) and revisions <= MESSAGES:
            found.add("log", f"{revision}: {line[3:]}", 500)
        elif mark in ("\x01t", "\x01T", "\x01D", "\x01I", "\x01E"):
            inside = mark[1]
        elif not line.startswith("\x01") and inside == "t":
            told.append(line)
        elif not line.startswith("\x01") and inside in ("I", "E"):
            text.append(line)
    found.add("revisions", str(revisions) if revisions else "")
    found.add("description", "\n".join(told), 1_000)
    found.body("\n".join(text), MAX_TEXT)
    name = facts.name.decode("utf-8", "replace").removeprefix("s.")
    description = first_sentence(found.text("description") or found.text("log").partition(": ")[2])
    found.set("title", f"{name}: {description}" if description else name, 300)


def _date(day: str, time: str) -> str:
    """Return date and time in ISO 8601; two-digit years below 69 are of this century (POSIX.1-2017, sccsfile)."""
    century = "20" if day[:2] < "69" else "19"
    return f"{century}{day.replace('/', '-')}T{time}Z"


SUMMARIZER = Summarizer(types=("SCCS",), run=run)
