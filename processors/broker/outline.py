"""Reader of a taxonomy as an indented outline: one view a line, `title: query`, below the nearest line with a smaller indent.

A title alone means its own words next to each other. Blank lines and lines that begin with # are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from processors.broker.views import MAX_LEVELS, MAX_VIEWS, ViewError, created, key_of, normal
from processors.query import QueryError
from schemas.records import View

MAX_SIZE = 1 << 20
"""Maximum size of a taxonomy in bytes."""
TAB = 8


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


def imported(views: Mapping[str, View], data: bytes, now: int) -> list[View]:
    """Return the definitions that add an outline to the known views. Raises ViewError with the line."""
    known, made = dict(views), []
    seen: dict[str, int] = {}
    for number, path, query in read_outline(data):
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
