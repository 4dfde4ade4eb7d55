"""Queries that name views, for several Brokers: each writes `view:PATH` out as its own view, and one without that view is left out.

A query that names no view is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from processors.query.parser import parse
from processors.query.terms import Views
from schemas.query import Every, Query


class InViews(NamedTuple):
    """A query that names views."""

    text: str
    paths: tuple[str, ...]
    """What it names, as `Views` has it."""

    def written_out(self, views: Views) -> Query:
        """Return the query for a Broker with these views. Raises QueryError."""
        return parse(self.text, views)


class NamedViews(Mapping[str, Query]):
    """Stands in for the views of all Brokers: any that is named is there, holds everything, and is noted."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}

    def __getitem__(self, path: str) -> Query:
        self.paths[path] = None
        return Every()

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def of(self, text: str) -> InViews | None:
        """Return the query with that text, which was parsed with these views; None if it names none."""
        return InViews(text, tuple(self.paths)) if self.paths else None


def parse_for_all(text: str) -> tuple[Query, InViews | None]:
    """Return a query, in which views hold everything, and as each Broker has it (None: no views). Raises QueryError."""
    views = NamedViews()
    return parse(text, views), views.of(text)


def has_views(views: Views, paths: Sequence[str]) -> bool:
    """Return whether a Broker has all views that are named; their case does not matter."""
    return all(path.strip("/").casefold() in views for path in paths)
