"""Hints about a search with few or no hits: another spelling, attributes that no summary has, what each part finds by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from processors.query import QueryError
from processors.query.spelling import corrected
from schemas.ports import BrokerIndex
from schemas.query import And, Exists, Most, Not, Query

FEW = 3
"""Number of matches below which another spelling is looked for; always where most of the words are enough."""
MAX_PARTS = 20
"""Maximum number of parts of a query that are counted one by one."""


def respelled(index: BrokerIndex, tree: Query, total: int) -> Query | None:
    """Return a query in another spelling, if it finds more than this one with its `total` matches; else None."""
    if total >= FEW and not isinstance(tree, Most):
        return None
    # The engine may refuse the corrected query: it is not worth an error then.
    with suppress(QueryError):
        return corrected(tree, index)
    return None


def unknown(index: BrokerIndex, tree: Query) -> Iterator[str]:
    """Iterate over the attributes that a query names and no summary has."""
    return (name for name in dict.fromkeys(_named(tree)) if not index.count(Exists(name)))


def by_itself(index: BrokerIndex, tree: Query) -> list[tuple[Query, int | None]]:
    """Return the parts of a query that must match, if there are several, and how many summaries each finds by itself.

    None: too many summaries would have to be checked.
    """
    if not isinstance(tree, And | Most):
        return []
    parts = [part for part in dict.fromkeys(tree.parts) if not isinstance(part, Not)][:MAX_PARTS]
    return [(part, count_found(index, part)) for part in parts] if len(parts) > 1 else []


def count_found(index: BrokerIndex, query: Query) -> int | None:
    """Return the number of matches; None if too many summaries would have to be checked."""
    try:
        return index.search(query, limit=0).total
    except QueryError:
        return None


def _named(tree: Query) -> Iterator[str]:
    """Iterate over the attributes that a query names."""
    if name := getattr(tree, "attribute", ""):
        yield name
    for part in (*getattr(tree, "parts", ()), *([tree.part] if isinstance(tree, Not) else [])):
        yield from _named(part)
