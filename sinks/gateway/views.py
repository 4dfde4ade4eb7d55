"""What templates show of an answer, beside the hits: refinements, facets with their links, orders, pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from processors.identity import readable
from processors.query import unparse
from processors.query.facets import BY_VALUE, FACETS, choice
from processors.query.snippet import plain
from processors.query.terms import view_term
from processors.query.words import exact
from schemas.query import Every, Or, Query
from sinks.gateway.answers import Answer
from sinks.gateway.brokers import tree
from sinks.gateway.refinement import asked, day_bounds
from sinks.gateway.state import MAX_HIT, SIZES, SORTS, Choice, State

LABELS = {"type": "Type", "site": "Site", "language": "Language", "author": "Author", "year": "Year", "gatherer": "Gatherer"}
ORDERS = {
    "relevance": "Best first", "newest": "Newest first", "oldest": "Oldest first", "largest": "Largest first", "url": "By address",
}  # fmt: skip
EXAMPLES = ("type", "year", "author", "site", "language")
"""Facets whose most frequent values make the example queries."""
MAX_EXAMPLES = 3
UNFOLDED = 5
"""Values of a facet that are shown before the rest is folded."""
UNFOLDED_VIEWS = 20
"""Views of a level of the tree that are shown before the rest is folded."""
FORMATS = {"JSON lines": "jsonl", "CSV": "csv", "SOIF": "soif"}
MIN_FUZZY = 2
"""A word with an error has more letters than this."""
MAX_SAVED = 1_000
"""Maximum characters of the query of a search that can be saved as a view: it is a part of a URL."""
NEAR = 3
"""Pages that are linked before and after the current one."""


class ValueView(NamedTuple):
    """Value of a facet."""

    value: str
    total: int | None
    """Number of hits with this value chosen; None if it is not counted."""
    chosen: bool
    excluded: bool
    choose: State
    """State in which the value is chosen, or no longer."""
    exclude: State
    """State in which the value is excluded, or no longer."""


class FacetView(NamedTuple):
    """A facet with its values."""

    name: str
    label: str
    values: Sequence[ValueView]
    cleared: State | None
    """State without a choice in this facet; None if there is no choice."""


class Chip(NamedTuple):
    """A refinement that is in force, and the state without it."""

    label: str
    value: str
    excluded: bool
    removed: State


class PageLink(NamedTuple):
    """Link to a page of hits; None for a gap."""

    number: int
    state: State
    current: bool


class Choosable(NamedTuple):
    """One of several states to choose from."""

    label: str
    state: State
    current: bool


def facets(answer: Answer) -> list[FacetView]:
    """Return the facets that have values, in the order in which they were counted; others only with what is chosen in them."""
    names = dict.fromkeys((*answer.facets, *FACETS))
    made = [_facet(name, answer) for name in names]
    return [facet for facet in made if facet.values]


def _facet(name: str, answer: Answer) -> FacetView:
    state, counted = answer.state, answer.facets.get(name, ())
    totals = {_alike(name, each.value): each for each in counted}
    mine = [value for facet, value in (*state.chosen, *state.excluded) if facet == name]
    # A choice that finds nothing is shown, too, so that it can be taken back.
    missing = [value for value in dict.fromkeys(mine) if _alike(name, value) not in totals]
    values = [_value(name, state, each.value, each.total) for each in counted]
    is_counted = name in answer.facets
    values += [_value(name, state, value, 0 if is_counted and (name, value) in state.chosen else None) for value in missing]
    kept = tuple(each for each in state.chosen if each[0] != name)
    cleared = state.changed(chosen=kept) if kept != state.chosen else None
    return FacetView(name, LABELS[name], values, cleared)


def _alike(name: str, value: str) -> str:
    """Return what the values of a facet are compared by."""
    return value if name in BY_VALUE else exact(value)


def _value(name: str, state: State, value: str, total: int | None) -> ValueView:
    chosen = _spelled(name, value, state.chosen)
    excluded = _spelled(name, value, state.excluded)
    as_given = chosen or excluded or value
    choose, exclude = state.toggled(name, as_given), state.without(name, as_given)
    return ValueView(plain(value), total, bool(chosen), bool(excluded), choose, exclude)


def _spelled(name: str, value: str, choices: Sequence[Choice]) -> str:
    """Return a value as the choices spell it; empty if it is none of them."""
    return next((other for facet, other in choices if facet == name and _alike(name, other) == _alike(name, value)), "")


def chips(state: State, like: str = "") -> Iterator[Chip]:
    """Iterate over the refinements in force; `like`: title of the summary that hits are similar to."""
    for facet, value in state.chosen:
        yield Chip(LABELS[facet], plain(value), excluded=False, removed=state.toggled(facet, value))
    for facet, value in state.excluded:
        yield Chip(LABELS[facet], plain(value), excluded=True, removed=state.without(facet, value))
    low, high = day_bounds(state)
    if low is not None:
        yield Chip("From", plain(state.since), excluded=False, removed=state.changed(since=""))
    if high is not None:
        yield Chip("To", plain(state.until), excluded=False, removed=state.changed(until=""))
    if state.inside:
        yield Chip("Only in", plain(readable(state.inside)), excluded=False, removed=state.changed(inside=""))
    if state.copies:
        yield Chip("Copies", "each a hit", excluded=False, removed=state.changed(copies=False))
    if state.like:
        yield Chip("Similar to", like or f"{state.like[:12]}…", excluded=False, removed=state.changed(like=""))


def view_tree(answer: Answer) -> tree.Shown:
    """Return the tree of the views that the hits are in."""
    return tree.shown(answer.state, answer.views)


def view(path: str) -> State:
    """Return the state of all that is in a view."""
    return State(text=view_term(path))


def saved(answer: Answer) -> tuple[str, str] | None:
    """Return a search as a view: the path of the view that it is below (may be empty), and its query. None: it cannot be one."""
    state, whole = answer.state, answer.asked
    if state.is_empty or state.like or whole.mistake or whole.left_out or whole.tree == Or(()):
        return None
    path, rest = tree.scope(state.text)
    found = asked(state.changed(text=rest)) if path else whole
    if found.mistake or found.left_out:
        path, found = "", whole  # names another view
    if found.tree == Every():
        return None
    with suppress(ValueError):
        query = unparse(found.tree)
        return (path, query) if len(query) <= MAX_SAVED else None
    return None


def orders(state: State) -> list[Choosable]:
    """Return the orders of hits."""
    return [Choosable(ORDERS[sort], state.changed(sort=sort), sort == state.sort) for sort in SORTS]


def sizes(state: State) -> list[Choosable]:
    """Return the numbers of hits on a page."""
    return [Choosable(str(size), state.changed(size=size), size == state.size) for size in SIZES]


def last_page(answer: Answer) -> int:
    """Return the number of the last page that is shown."""
    size = answer.state.size
    return max(1, -(-min(answer.total, MAX_HIT) // size))


def pages(answer: Answer) -> list[PageLink | None]:
    """Return links to the first page, those near the current one, and the last one; None where pages are left out."""
    state, last = answer.state, last_page(answer)
    near = {1, last, *range(max(1, state.page - NEAR), min(last, state.page + NEAR) + 1)}
    found: list[PageLink | None] = []
    for number in sorted(near):
        if found and (before := found[-1]) is not None and number > before.number + 1:
            found.append(None)
        found.append(PageLink(number, state.changed(page=number), number == state.page))
    return found if last > 1 else []


def is_useful(facet: FacetView, answer: Answer) -> bool:
    """Return whether a choice in a facet changes what is found: not if all hits have its only value."""
    first = facet.values[0]
    return len(facet.values) > 1 or first.chosen or first.excluded or first.total != answer.total


def folded(values: Sequence[ValueView]) -> tuple[Sequence[ValueView], Sequence[ValueView]]:
    """Return the values of a facet that are shown, chosen ones among them, and those that are folded; one alone is not folded."""
    if len(values) <= UNFOLDED + 1:
        return values, ()
    shown = [value for at, value in enumerate(values) if at < UNFOLDED or value.chosen or value.excluded]
    return shown, [value for at, value in enumerate(values) if not (at < UNFOLDED or value.chosen or value.excluded)]


def examples(answer: Answer) -> list[str]:
    """Return a few queries that find something."""
    found: list[str] = []
    for facet in EXAMPLES:
        # A value of an index is shown as it is, even where a query cannot name it.
        with suppress(ValueError):
            found += [unparse(choice(facet, each.value)) for each in answer.facets.get(facet, ())[:1]]
    return found[:MAX_EXAMPLES]


def similar(oid: str) -> State:
    """Return the state of what is similar to a summary, the most similar first."""
    return State(like=oid)


def tolerant(answer: Answer) -> str:
    """Return a query that finds nothing with one error allowed in each of its words that find nothing; empty if there are none."""
    missing = {part for part, found in answer.by_itself if not found} or {answer.state.text.strip()}
    words = answer.state.text.split()
    changed = [f"{word}~" if word in missing and len(word) > MIN_FUZZY and word.isalpha() else word for word in words]
    return " ".join(changed) if changed != words else ""


def only(text: str) -> State:
    """Return the state of a query alone."""
    return State(text=text)


def unrefined(state: State) -> State:
    """Return the state of the same query without its refinements."""
    return state.changed(chosen=(), excluded=(), since="", until="", inside="", like="")


def unordered(state: State) -> State:
    """Return a state with all that is searched, and the default for how it is shown."""
    return state.changed(sort=SORTS[0], size=SIZES[0])


def kept(state: State, *names: str) -> list[tuple[str, str]]:
    """Return the parameters of a state for the hidden fields of a form that sets some parameters, and begins on the first page."""
    return [each for each in state.changed().parameters() if each[0] not in names]


def exports(state: State) -> list[tuple[str, str]]:
    """Return the names of the formats of an export, and the query parts of their URLs."""
    query = unordered(state).query
    return [(name, f"{query}{'&' if query else '?'}format={form}") for name, form in FORMATS.items()]


def outline(query: Query, level: int = 0) -> str:
    """Return a query tree as an outline: a line for each node, indented by its depth."""
    parts = getattr(query, "parts", None) or [part for part in (getattr(query, "part", None),) if part is not None]
    values = [(name, getattr(query, name)) for name in query.__struct_fields__ if name not in ("part", "parts")]
    shown = [f"{name}={value!r}" for name, value in values if value not in ("", None)]
    line = "  " * level + " ".join([type(query).__name__, *shown])
    return "\n".join([line, *(outline(part, level + 1) for part in parts)])
