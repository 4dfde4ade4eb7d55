"""Predicate on one summary, made from a query: for standing queries, views, filters and tests of the engines.

Laws:
- For every query and summary, an index that holds the summary answers as the predicate does (checked by a property test).
- A word or phrase matches within one value of an attribute, never across two.
- Annotations count as attributes. Names and text are compared as `processors.query.words` folds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from processors.query.words import attribute as known
from processors.query.words import exact, links, names, property_of, searchable_values, spaced, texts
from schemas.query import BY_NAME, EXACT_FIELDS, LINKS, SETS, And, Every, Exists, Not, Or, Phrase, Query, Word
from schemas.records import Summary


class _View:
    """Summary under test; its text is analysed at most once."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    @cached_property
    def values(self) -> list[tuple[str, str]]:
        """(name, words) of each value; the words have one space before, between and after them."""
        return [(name, f" {spaced(text)} ") for name, text in texts(self.summary)]

    @cached_property
    def links(self) -> set[tuple[str, str]]:
        return set(links(searchable_values(self.summary)))

    @cached_property
    def names(self) -> set[str]:
        return names(self.summary)


_Test = Callable[[_View], bool]


def predicate(query: Query) -> Callable[[Summary], bool]:
    """Return a function that tests whether a summary matches; the query is analysed once, here."""
    test = _test(query)
    return lambda summary: test(_View(summary))


def matches(query: Query, summary: Summary) -> bool:
    """Return whether a summary matches a query."""
    return predicate(query)(summary)


def _test(query: Query) -> _Test:
    match query:
        case And(parts):
            tests = [_test(part) for part in parts]
            return lambda view: all(test(view) for test in tests)
        case Or(parts):
            tests = [_test(part) for part in parts]
            return lambda view: any(test(view) for test in tests)
        case Not(part):
            test = _test(part)
            return lambda view: not test(view)
        case Exists(attribute):
            name = known(attribute)
            return lambda view: name in view.names
        case Word(text, attribute) | Phrase(text, attribute):
            return _text_test(text, known(attribute))
        case Every():
            return lambda _: True
    raise TypeError(f"no node of a query: {type(query).__name__}")


def _text_test(text: str, name: str) -> _Test:
    if name in EXACT_FIELDS:
        value = exact(text)
        return lambda view: bool(value) and property_of(view.summary, name) == value
    if name in LINKS:
        link = name, exact(text)
        return lambda view: link in view.links
    needle = f" {spaced(text)} "
    if not needle.strip():
        return lambda _: False
    passed = SETS if len(needle.split()) > 1 else frozenset[str]()
    if name:
        return lambda view: name not in passed and any(needle in spread for owner, spread in view.values if owner == name)
    passed |= BY_NAME
    return lambda view: any(needle in spread for owner, spread in view.values if owner not in passed)
