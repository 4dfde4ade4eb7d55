"""Hits and facets of a search, as text and as JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streams.cli.common import counted, printable, put

if TYPE_CHECKING:
    from schemas.ports import FacetValue, Hit, Part
    from schemas.query import Query

MARKS = str.maketrans("", "", "\x02\x03")
COPIES = 3
"""Number of copies of a hit that are listed in text."""


def hit_object(hit: Hit, parts: Sequence[Part] | None = None) -> dict[str, Any]:
    """Return a hit as JSON, with its copies if it has any, and with the parts of its score unless they are None."""
    found: dict[str, Any] = {name: getattr(hit, name) for name in ("oid", "url", "title", "type", "score")}
    found["snippet"] = hit.snippet.translate(MARKS)
    if hit.copies_count:
        found |= {"copies": list(hit.copies), "copies_count": hit.copies_count}
    if parts is not None:
        found["explain"] = [part._asdict() for part in parts]
    return found


def print_hit(hit: Hit, parts: Sequence[Part] | None = None, attributes: Sequence[tuple[str, str]] = ()) -> None:
    """Print a hit as a few lines, with the parts of its score unless they are None; `attributes`: names and snippets."""
    title = printable(hit.title)
    put(f"{printable(hit.url)}\n  {title or '(no title)'} [{printable(hit.type)}, {hit.score:.2f}]")
    for part in parts or ():
        put(f"  {part.score:8.2f}  {printable(part.query)}")
    text = _without_title(hit.snippet, title)
    if text:
        put("  " + _marked(text))
    for name, shown in attributes:
        put(f"  {printable(name)}: {_marked(shown)}")
    for copy in hit.copies[:COPIES]:
        put(f"  copy: {printable(copy)}")
    if hit.copies_count > COPIES:
        put(f"  and {counted(hit.copies_count - COPIES, 'more copy', 'more copies')}")


def facet_objects(facet: str, values: Sequence[FacetValue]) -> Iterator[dict[str, Any]]:
    """Iterate over the values of a facet as JSON, each with the term that chooses it."""
    for each in values:
        yield {"facet": facet, "value": each.value, "total": each.total, "term": _term(facet, each.value)}


def print_facet(facet: str, values: Sequence[FacetValue], query: Query) -> None:
    """Print a facet: its values with their counts, and the terms that choose them.

    What the query has chosen already has no term; another value is chosen instead of it.
    """
    from processors.query import unparse
    from processors.query.facets import BY_VALUE, choice, chosen
    from processors.query.words import exact

    taken = chosen(query, facet)
    compared = set(taken) if facet in BY_VALUE else set(map(exact, taken))
    instead = " OR ".join(unparse(choice(facet, value)) for value in taken)
    put(facet + (f" (instead of {printable(instead)})" if taken else "") + ("" if values else " (none)"))
    width = max((len(printable(each.value)) for each in values), default=0)
    digits = max((len(f"{each.total:,}") for each in values), default=0)
    for each in values:
        is_chosen = (each.value if facet in BY_VALUE else exact(each.value)) in compared
        shown = "(chosen)" if is_chosen else printable(_term(facet, each.value))
        put(f"  {each.total:{digits},}  {printable(each.value):{width}}  {shown}")


def _term(facet: str, value: str) -> str:
    """Return what to add to a query to choose a value of a facet."""
    from processors.query import unparse
    from processors.query.facets import VIEW, choice
    from processors.query.terms import view_term

    return view_term(value) if facet == VIEW else unparse(choice(facet, value))


def _without_title(snippet: str, title: str) -> str:
    """Return a snippet without the title at its start: a text whose title is its first line would repeat it."""
    rest = re.match("[\x02\x03]*".join(map(re.escape, title)) + r"(?!\w)[\x03\s]*", snippet.lstrip("\x02")) if title else None
    return snippet.lstrip("\x02")[rest.end() :] if rest else snippet


def _marked(snippet: str) -> str:
    """Return a snippet with its matches in bold, if the terminal shows it."""
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    parts = re.split("[\x02\x03]", snippet)
    return "".join(f"\x1b[1m{printable(p)}\x1b[0m" if bold and n % 2 else printable(p) for n, p in enumerate(parts))
