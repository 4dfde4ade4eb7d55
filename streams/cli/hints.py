"""Hints about a search with few or no hits: other spellings, attributes that no summary has, what each part of a query finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from streams.cli.common import printable

if TYPE_CHECKING:
    from schemas.ports import BrokerIndex
    from schemas.query import Query

FEW = 3
"""Number of matches below which another spelling is looked for; always where most of the words are enough."""
MAX_PARTS = 20
"""Maximum number of parts of a query that are counted one by one."""


def hints(index: BrokerIndex, tree: Query, total: int, *, spelled: bool = True) -> Iterator[str]:
    """Iterate over hints about a search with `total` matches. `spelled`: a user typed the words of the query."""
    from schemas.query import Most

    if not total:
        yield from _unknown(index, tree)
        yield from _parts(index, tree)
    if spelled and (total < FEW or isinstance(tree, Most)):
        yield from _spelling(index, tree)


def _spelling(index: BrokerIndex, tree: Query) -> Iterator[str]:
    """Iterate over proposals of other spellings: at most one."""
    from processors.query import QueryError, unparse
    from processors.query.spelling import corrected

    # The engine may refuse the corrected query: it is not worth an error then.
    with suppress(QueryError):
        if (other := corrected(tree, index)) is not None:
            yield f"did you mean: {printable(unparse(other))}"


def _unknown(index: BrokerIndex, tree: Query) -> Iterator[str]:
    """Iterate over notes on the attributes in a query that no summary has."""
    from schemas.query import Exists
    from schemas.soif_summary import NAMES

    for name in dict.fromkeys(_named(tree)):
        if not index.count(Exists(name)):
            shown = "; `harvest show` prints it, but it is not searchable" if name in NAMES else ""
            yield f"no summary has the attribute {printable(name)}{shown}"


def _parts(index: BrokerIndex, tree: Query) -> Iterator[str]:
    """Iterate over notes on how many summaries each part of a query finds by itself, if it has several that must match."""
    from processors.query import unparse
    from schemas.query import And, Most, Not

    if isinstance(tree, And | Most):
        parts = [part for part in dict.fromkeys(tree.parts) if not isinstance(part, Not)][:MAX_PARTS]
        if len(parts) > 1:
            yield "found by itself: " + ", ".join(f"{printable(unparse(part))} {_count(index, part)}" for part in parts)


def _count(index: BrokerIndex, part: Query) -> str:
    from processors.query import QueryError

    try:
        return f"{index.search(part, limit=0).total:,}"
    except QueryError:
        return "too many to check"


def _named(tree: Query) -> Iterator[str]:
    """Iterate over the attributes that a query names."""
    if name := getattr(tree, "attribute", ""):
        yield name
    for part in (*getattr(tree, "parts", ()), *([tree.part] if hasattr(tree, "part") else [])):
        yield from _named(part)
