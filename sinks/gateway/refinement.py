"""What a state of the search page asks an index for: the query, with the refinements as conditions of it.

A mistake in a query or in a refinement is no error: what can be looked for is, and a message says what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from processors.query import QueryError, parse, parse_lenient
from processors.query.facets import FACETS, choice, narrowed
from processors.query.places import wanted
from processors.query.values import period
from schemas.query import Every, Inside, MomentRange, Not, Or, Query
from sinks.gateway.state import Choice, State


class Mistake(NamedTuple):
    """The first mistake of a query."""

    message: str
    before: str
    """The query up to the mistake."""
    after: str


class Asked(NamedTuple):
    """Query of a state."""

    tree: Query
    """The query with all refinements; Or(()) if nothing of it can be looked for."""
    typed: Query
    """The query as it was typed, without refinements."""
    mistake: Mistake | None
    left_out: tuple[str, ...]
    """Messages about what is not looked for."""


def asked(state: State, like: Query | None = None) -> Asked:
    """Return the query that a state asks for; `like`: the query for what is similar to `state.like`."""
    left_out: list[str] = []
    typed: Query = Every()
    mistake: Mistake | None = None
    if state.text.strip():
        mistake = _mistake(state.text)
        typed, messages = parse_lenient(state.text)
        left_out += messages
    tree = typed if like is None else narrowed(like, *([] if isinstance(typed, Every) else [typed]))
    if tree != Or(()):
        tree = narrowed(tree, *_conditions(state, left_out))
    return Asked(tree, typed, mistake, tuple(left_out))


def check(state: State, found: Asked) -> None:
    """Raise QueryError for any mistake of a state, whose query was found."""
    if state.text.strip():
        parse(state.text)
    if found.left_out:
        raise QueryError(found.left_out[0], 0)


def _mistake(text: str) -> Mistake | None:
    try:
        parse(text)
    except QueryError as error:
        return Mistake(error.message, text[: error.position], text[error.position :])
    return None


def _conditions(state: State, left_out: list[str]) -> list[Query]:
    """Return the refinements as conditions, and add messages about those that are none."""
    found: list[Query] = []
    for facet in FACETS:
        values = _choices(facet, state.chosen, left_out)
        if values:
            found.append(values[0] if len(values) == 1 else Or(tuple(values)))
        found += map(Not, _choices(facet, state.excluded, left_out))
    if (dates := _dates(state, left_out)) is not None:
        found.append(dates)
    if state.inside:
        try:
            wanted(state.inside)
        except ValueError as error:
            left_out.append(f"in '{state.inside[:40]}': {error}")
        else:
            found.append(Inside(state.inside))
    return found


def _choices(facet: str, choices: Sequence[Choice], left_out: list[str]) -> list[Query]:
    found = []
    for name, value in choices:
        if name == facet:
            try:
                found.append(choice(facet, value))
            except ValueError as error:
                left_out.append(str(error)[:200])
    return found


def _dates(state: State, left_out: list[str]) -> Query | None:
    bounds = []
    for name, text in (("from", state.since), ("to", state.until)):
        found = period(text) if text else None
        if text and found is None:
            left_out.append(f"{name} '{text[:40]}': a year, a month or a day is expected, such as 2024-03-05")
        bounds.append(found)
    low, high = bounds
    if low is None and high is None:
        return None
    return MomentRange("", low[0] if low else None, high[1] if high else None)
