"""Hints about a search with few or no hits, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streams.cli.common import printable

if TYPE_CHECKING:
    from schemas.ports import BrokerIndex
    from schemas.query import Query


def hints(index: BrokerIndex, tree: Query, total: int, *, spelled: bool = True) -> Iterator[str]:
    """Iterate over hints about a search with `total` matches. `spelled`: a user typed the words of the query."""
    from processors.query import unparse
    from schemas.soif_summary import NAMES
    from sinks.index.hints import by_itself, respelled, unknown

    if not total:
        for name in unknown(index, tree):
            shown = "; `harvest show` prints it, but it is not searchable" if name in NAMES else ""
            yield f"no summary has the attribute {printable(name)}{shown}"
        if parts := by_itself(index, tree):
            counts = (
                f"{printable(unparse(part))} {'too many to check' if found is None else f'{found:,}'}" for part, found in parts
            )
            yield f"found by itself: {', '.join(counts)}"
    if spelled and (other := respelled(index, tree, total)) is not None:
        yield f"did you mean: {printable(unparse(other))}"
