"""What a state of the search page asks an index for: the query, with the refinements as conditions of it.

A mistake in a query or in a refinement is no error: what can be looked for is, and a message says what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from processors.query import QueryError, parse, parse_lenient
from processors.query.facets import FACETS, choice, narrowed
from processors.query.places import wanted
from processors.query.terms import Views
from processors.query.values import period
from schemas.query import Every, Inside, MomentRange, Not, Or, Query
from sinks.gateway.state import Choice, State


class Mistake(NamedTuple):
    """The first mistake of a query."""

    message: str
    bare: str
    """The message without a proposal."""
    before: str
    """The query up to the mistake."""
    after: str
    proposal: str
    """What to type instead of the mistaken part; empty if nothing is proposed."""


class Asked(NamedTuple):
    """Query of a state."""

    tree: Query
    """The query with all refinements; Or(()) if nothing of it can be looked for."""
    typed: Query
    """The query as it was typed, without refinements."""
    mistake: Mistake | None
    left_out: tuple[str, ...]
    """Messages about what is not looked for."""


def asked(state: State, like: Query | None = None, views: Views | None = None) -> Asked:
    """Return the query that a state asks for; `like`: the query for what is similar to `state.like`; `views`: the Broker's."""
    left_out: list[str] = []
    typed: Query = Every()
    mistake: Mistake | None = None
    if state.text.strip():
        mistake = _mistake(state.text, views)
        typed, messages = parse_lenient(state.text, views)
        # The mistake itself is shown with its place.
        left_out += [message for message in messages if mistake is None or not message.endswith(mistake.bare)]
    tree = typed if like is None else narrowed(like, *([] if isinstance(typed, Every) else [typed]))
    if tree != Or(()):
        tree = narrowed(tree, *_conditions(state, left_out))
    return Asked(tree, typed, mistake, tuple(left_out))


def check(state: State, found: Asked, views: Views | None = None) -> None:
    """Raise QueryError for any mistake of a state, whose query was found."""
    if state.text.strip():
        parse(state.text, views)
    if found.left_out:
        raise QueryError(found.left_out[0], 0)


def _mistake(text: str, views: Views | None) -> Mistake | None:
    try:
        parse(text, views)
    except QueryError as error:
        bare = error.message.partition(" (did you mean ")[0]
        return Mistake(error.message, bare, text[: error.position], text[error.position :], error.proposal)
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
    low, high = day_bounds(state)
    for name, text, found in (("from", state.since, low), ("to", state.until, high)):
        if text and found is None:
            left_out.append(f"{name} '{text[:40]}': a year, a month or a day that exists is expected, such as 2024-03-05")
    if low is not None and high is not None and low > high:
        left_out.append(f"from '{state.since}' to '{state.until}': the first is after the last")
        return None
    return None if low is None and high is None else MomentRange("", low, high)


def day_bounds(state: State) -> tuple[int | None, int | None]:
    """Return the first and the last second of the dates of a state; None for one that is not given, or is no date."""
    low, high = (period(text) if text else None for text in (state.since, state.until))
    return low[0] if low else None, high[1] if high else None
