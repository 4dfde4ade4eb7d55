"""Definitions that `view:PATH` in a query is written out as."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import NoReturn

from processors.query.mistakes import QueryError
from schemas.query import And, Query

Views = Mapping[str, Query]
"""What each view of a Broker holds, by path: the queries of its path, joined with AND."""


def written_out(views: Views | None, path: str, at: int) -> Query:
    """Return the query of a view that a query names at a position. Raises QueryError if there is none."""
    if views is None:
        raise QueryError("view: names a view of a Broker, and cannot be used here", at)
    found = views.get(path.strip("/").casefold())
    if found is None:
        _unknown(views, path, at)
    return found


def joined(queries: tuple[Query, ...]) -> Query:
    """Return queries joined with AND; parts of an AND are not nested in another."""
    parts = tuple(part for query in queries for part in (query.parts if isinstance(query, And) else (query,)))
    return And(parts) if len(parts) > 1 else parts[0]


def _unknown(views: Views, path: str, at: int) -> NoReturn:
    close = difflib.get_close_matches(path.casefold(), views, 1)
    shown = close[0] if close else ""
    raise QueryError("there is no such view", at, f'view:"{shown}"' if " " in shown else f"view:{shown}" if shown else "")
