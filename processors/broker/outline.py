"""Reader of a taxonomy as an indented outline: one view a line, `title: query`, below the nearest line with a smaller indent.

A file that begins as XML does is read as SKOS (`skos.py`).

A title alone means its own words next to each other. Blank lines and lines that begin with # are left out.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence

from processors.broker.skos import read_skos
from processors.broker.views import MAX_LEVELS, MAX_VIEWS, ViewError, created, key_of, normal
from processors.query import QueryError
from processors.query.forms import DEFAULT_LANGUAGES
from schemas.records import View

MAX_SIZE = 1 << 20
"""Maximum size of a taxonomy in bytes."""
TAB = 8
OTHERS = (b"@prefix", b"@base", b"PREFIX ", b"BASE ", b"{", b"[")
"""What Turtle and JSON-LD begin with, and no outline: a title begins with a letter or a digit."""


def read_outline(data: bytes) -> list[tuple[int, str, str]]:
    """Return (line number, path, query) of each view, parents first. Raises ViewError with the line."""
    if len(data) > MAX_SIZE:
        raise ViewError(f"a taxonomy has at most {MAX_SIZE:,} bytes")
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ViewError("it is not UTF-8 text") from None
    found: list[tuple[int, str, str]] = []
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        text = line.expandtabs(TAB).strip()
        if not text or text.startswith("#"):
            continue
        if len(found) >= MAX_VIEWS:
            raise ViewError(f"line {number}: a Broker has at most {MAX_VIEWS:,} views")
        indent = len(line.expandtabs(TAB)) - len(line.expandtabs(TAB).lstrip())
        above = [(at, path) for at, path in above[: MAX_LEVELS + 1] if at < indent]
        title, _, query = text.partition(":")
        path = _path(above[-1][1] if above else "", title.strip(), number)
        above.append((indent, path))
        found.append((number, path, query.strip() or f'"{title.strip()}"'))
    return found


def read_taxonomy(data: bytes, languages: Sequence[str] = DEFAULT_LANGUAGES) -> list[tuple[int, str, str]]:
    """Return the views of an outline, or of SKOS for labels in one of the languages. Raises ViewError."""
    begin = data[:200].removeprefix(codecs.BOM_UTF8).lstrip()
    if begin.startswith((b"<", codecs.BOM_UTF16_LE + b"<", codecs.BOM_UTF16_BE + b"\0<")):
        return read_skos(data, languages)
    if begin.startswith(OTHERS):
        raise ViewError("SKOS is read as RDF/XML: convert this file, which is Turtle or JSON-LD")
    return read_outline(data)


def imported(views: Mapping[str, View], data: bytes, now: int, languages: Sequence[str] = DEFAULT_LANGUAGES) -> list[View]:
    """Return the definitions that add a taxonomy to the known views. Raises ViewError with the line."""
    known, made = dict(views), []
    seen: dict[str, int] = {}
    for number, path, query in read_taxonomy(data, languages):
        if (first := seen.setdefault(key_of(path), number)) != number:
            raise ViewError(f"line {number}: {path} is in line {first}, too")
        if key_of(path) in known and known[key_of(path)].query == query:
            continue
        try:
            view = created(known, path, query, now)
        except QueryError as error:
            raise ViewError(f"line {number}: {error.line(query)}") from None
        except ViewError as error:
            raise ViewError(f"line {number}: {error}") from None
        known[key_of(path)] = view
        made.append(view)
    return made


def _path(above: str, title: str, number: int) -> str:
    if "/" in title:
        raise ViewError(f"line {number}: a title has no slash: the indent says what is below what")
    try:
        return normal(f"{above}/{title}" if above else title)
    except ViewError as error:
        raise ViewError(f"line {number}: {error}") from None
