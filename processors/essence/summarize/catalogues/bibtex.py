"""BibTeX and RIS: number and kinds of the entries, their titles and authors (Essence, seed 003, table 3, Bibliographic).

This is one summary of the whole file; each entry also gets its own, by the same code (`unnest/lists/bibtex.py` separates them).
Values are read brace by brace: an unclosed value ends where the next entry begins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text._tex import argument, plain_tex

MAX_READ = 1 << 20
MAX_FIELD = 2_000
TITLES = 100
"""Titles, and authors, of one file that are kept."""

_ENTRY = re.compile(r"^[ \t]*@[ \t]*([a-zA-Z]{2,30})[ \t]*[{(][ \t]*([^\s,{}=]{0,100})", re.MULTILINE)
_FIELD = re.compile(
    r"(?<![\w-])(title|author|editor|year|journal|booktitle|keywords)[ \t]*+=[ \t\n]*+([{\"]|\w[\w-]{0,80})", re.IGNORECASE
)
_RIS = re.compile(r"^([A-Z][A-Z0-9])  - ?(.*)$", re.MULTILINE)
_RIS_NAMES = {
    "TI": "title",
    "T1": "title",
    "AU": "author",
    "A1": "author",
    "PY": "year",
    "Y1": "year",
    "KW": "keywords",
    "JO": "journal",
    "JF": "journal",
}
_AND = re.compile(r"\s+and\s+")
_MODE = re.compile(r"-\*-|JabRef|(?i:encoding:)")
_NO_ENTRY = frozenset(("string", "comment", "preamble"))

Fields = list[tuple[str, str]]


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add entries (their number), entry-types, titles, author, editor, journals, keywords, years, url-references and title."""
    text = read_text(body, facts.charset, MAX_READ)
    entries = _bibtex(text) if "@" in text[:65_536] and not text.startswith("TY  -") else _ris(text)
    kinds = Counter(kind for kind, _ in entries)
    found.add("entries", str(kinds.total()) if kinds else "")
    for kind, count in kinds.most_common(20):
        found.add("entry-types", f"{kind} {count}")
    names: dict[str, list[str]] = {}
    for _, fields in entries:
        for name, value in fields:
            names.setdefault(name, []).append(value)
    add_all(found, "titles", names.get("title", [])[:TITLES], 300)
    add_all(found, "author", _people(names.get("author", []))[:TITLES])
    add_all(found, "editor", _people(names.get("editor", []))[:20])
    add_all(found, "journals", _often([*names.get("journal", []), *names.get("booktitle", [])]))
    add_all(found, "keywords", _often(k.strip() for value in names.get("keywords", []) for k in re.split("[,;]", value)))
    years = sorted(y for value in names.get("year", []) if (y := value[:4]).isdecimal() and len(y) == 4)
    found.add("years", f"{years[0]}-{years[-1]}" if years else "")
    add_references(found, text[:262_144])
    found.add("title", _title(text, found), 300)


def _title(text: str, found: Found) -> str:
    """Return the title of the only entry; of a file with several entries, the first heading above them."""
    titles = found.attributes.get("titles", [])
    if len(titles) == 1:
        return found.text("titles")
    said = next(
        (line for line in text[:4_096].partition("@")[0].split("\n") if sum(map(str.isalpha, line)) > 5 and not _MODE.search(line)),
        "",
    )
    return squeeze(said.strip("%#*=-/ \t")) if titles else ""


def _often(values: Iterable[str]) -> list[str]:
    return [value for value, _ in Counter(v for v in values if v).most_common(30)]


def _people(values: list[str]) -> list[str]:
    """Return the names in fields like "Knuth, Donald E. and Plass, Michael F."."""
    people = (squeeze(name) for value in values for name in _AND.split(value))
    return list(dict.fromkeys(p for p in people if p and p != "others"))


def _bibtex(text: str) -> list[tuple[str, Fields]]:
    """Return the entries of BibTeX; an abbreviation of @string is replaced where it is a whole value."""
    marks = list(_ENTRY.finditer(text))
    short: dict[str, str] = {}
    entries: list[tuple[str, Fields]] = []
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), *([len(text)] if marks else [])], strict=True):
        kind = mark[1].lower()
        entry = text[mark.end() : min(end, mark.end() + 20_000)]
        if kind == "string":
            opened = re.match(r"[ \t\n]*+=[ \t\n]*+(?=[{\"])", entry)
            short[mark[2].lower()] = _value(entry, opened.end()) if opened else ""
        if kind not in _NO_ENTRY:
            entries.append((kind, _fields(entry, short)))
    return entries


def _fields(entry: str, short: dict[str, str]) -> Fields:
    fields: Fields = []
    at = 0
    for _ in range(50):
        mark = _FIELD.search(entry, at)
        if not mark:
            break
        word = mark[2]
        value = _value(entry, mark.start(2)) if word in '{"' else short.get(word.lower(), word)
        # The field does not end before this offset, however much TeX was removed from the value.
        at = mark.end() + (len(value) // 2 if word in '{"' else 0)
        fields.append((mark[1].lower(), value))
    return fields


def _value(entry: str, at: int) -> str:
    """Return the value in braces or quotes at an offset."""
    return squeeze(plain_tex(argument(entry, at, MAX_FIELD)))


def _ris(text: str) -> list[tuple[str, Fields]]:
    """Return the entries of RIS: one tag of two letters per line, TY first."""
    entries: list[tuple[str, Fields]] = []
    for tag, value in _RIS.findall(text):
        if tag == "TY":
            entries.append((value.strip().lower(), []))
        elif entries and tag in _RIS_NAMES:
            entries[-1][1].append((_RIS_NAMES[tag], squeeze(value)[:MAX_FIELD]))
    return entries


SUMMARIZER = Summarizer(types=("Bibliographic",), run=run)
