"""An engine's query with what it leaves to the predicate.

Law: an engine may answer too widely, never too narrowly. Where its answer is not exact, every candidate is checked against its
record by the predicate, so that both engines and the predicate agree, whatever an engine lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from processors.query import unparse
from processors.query.forms import Analyzer
from processors.query.predicate import predicate
from schemas.query import Query
from schemas.records import Removed, Summary
from sinks.index.errors import QueryRefused

STEP = 200
"""Number of records that are in memory at a time."""

Records = Callable[[Sequence[str]], Mapping[str, Summary | Removed]]
"""Returns the newest records of some OIDs, without those that it does not have."""


Engine = TypeVar("Engine")


class Compiled(NamedTuple, Generic[Engine]):
    """Query of an engine. `inexact` is the first part of the query that the engine answers too widely, None if there is none."""

    engine: Engine
    inexact: Query | None = None


def refuse_above(most: int, candidates: int, inexact: Query) -> None:
    """Raise QueryRefused if more candidates would have to be read than one search may read."""
    if candidates > most:
        raise QueryRefused(
            f"{unparse(inexact)} would have to be looked for in {candidates:,} summaries, more than {most:,}: "
            "add a word that narrows the search"
        )


def checked(query: Query, analyzer: Analyzer, records: Records, candidates: Sequence[str]) -> Iterator[bool]:
    """Iterate over whether each candidate matches."""
    test = predicate(query, analyzer)
    for at in range(0, len(candidates), STEP):
        step = candidates[at : at + STEP]
        found = records(step)
        for oid in step:
            record = found.get(oid)
            yield isinstance(record, Summary) and test(record)


Hits = TypeVar("Hits")
Part = Callable[[int, int], tuple[Sequence[Hits], int]]
"""Returns a page of the matches of a part of a query, given offset and limit, and their number."""


def paged(parts: Sequence[Part[Hits]], offset: int, limit: int) -> tuple[list[Hits], int]:
    """Return a page of the matches of several parts, one part behind the other, and the number of all."""
    found: list[Hits] = []
    total = 0
    for part in parts:
        hits, number = part(max(offset - total, 0), limit - len(found))
        found += hits
        total += number
    return found, total
