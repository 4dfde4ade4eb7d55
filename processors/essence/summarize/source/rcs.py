"""RCS files: head, authors, symbolic names, description, log messages, the start of the newest text (rcsfile(5); seed 003).

Strings are enclosed in @, with @ doubled inside; they are read in order, each once, with the words before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence
from processors.essence.summarize.source._source import add_all

MAX_READ = 1 << 20
MAX_TEXT = 2_048
MESSAGES = 60

_STRING = re.compile(r"@((?:[^@]++|@@)*+)@?")
_HEAD = re.compile(r"\bhead[ \t\n]+([\d.]{1,40})")
_DELTA = re.compile(r"^[ \t]*([\d.]{1,40})[ \t\n]+date[ \t\n]+([\d.]{8,25});[ \t]*author[ \t\n]+([^;\n]{1,100});", re.MULTILINE)
_REVISION = re.compile(r"([\d.]{1,40})[ \t\n]+log[ \t\n]*\Z")
_EMPTY = frozenset(("Initial revision", "*** empty log message ***", ""))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, head, date, authors, revisions, symbols, description, log and partial-text."""
    text = read_text(body, facts.charset, MAX_READ)
    name = facts.name.decode("utf-8", "replace").removesuffix(",v")
    admin = text.partition("@")[0] if "desc" not in text[:200_000] else text[: text.find("desc")]
    head = _HEAD.search(admin)
    found.add("head", head[1] if head else "")
    deltas = _DELTA.findall(text[: max(text.find("\ndesc"), 0) or len(text)])
    found.add("revisions", str(len(deltas)) if deltas else "")
    if deltas:
        found.add("date", _date(max((date for _, date, _ in deltas), key=_sortable)))
    add_all(found, "author", (author.strip() for _, _, author in deltas))
    symbols = admin.partition("symbols")[2][:20_000].partition(";")[0]
    add_all(found, "symbols", (word.partition(":")[0] for word in symbols.split()), 80)
    _strings(text, found)
    description = first_sentence(found.text("description") or found.text("log").partition(": ")[2])
    found.set("title", f"{name}: {description}" if description else name, 300)


def _strings(text: str, found: Found) -> None:
    """Add description, log messages and the first text from the strings of a file."""
    logs = 0
    for before, value in _tokens(text):
        revision = _REVISION.search(before)
        if before.endswith("desc"):
            found.add("description", value.strip(), 1_000)
        elif revision and logs < MESSAGES and value.strip() not in _EMPTY:
            found.add("log", f"{revision[1]}: {value.strip()}", 500)
            logs += 1
        elif before.endswith("text") and not found.said:
            found.body(value, MAX_TEXT)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield each string, preceded by the (at most 80) characters before it."""
    end = 0
    for string in _STRING.finditer(text):
        yield text[max(end, string.start() - 80) : string.start()].rstrip(), string[1].replace("@@", "@")
        end = string.end()


def _sortable(date: str) -> str:
    """Return a date that sorts: years before 2000 have two digits (rcsfile(5))."""
    return f"19{date}" if date.find(".") == 2 else date


def _date(date: str) -> str:
    parts = (_sortable(date).split(".") + ["00"] * 6)[:6]
    return f"{'-'.join(parts[:3])}T{':'.join(parts[3:])}Z"


SUMMARIZER = Summarizer(types=("RCS",), run=run)
