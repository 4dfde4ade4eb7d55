"""Predicate on one summary, made from a query: the language itself, which engines must agree with.

Laws:
- For every query and summary, an index that holds the summary answers as the predicate does (checked by a property test).
- A term matches within one value of an attribute, never across two.
- Annotations count as attributes. Names and text are compared as `processors.query.words` folds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from processors.query import facets, patterns, places, regex, values
from processors.query.forms import DEFAULT, Analyzer, language_code, signed_name, signed_names
from processors.query.words import Recent, exact, links, names, property_of, spaced, words
from processors.query.words import attribute as known
from schemas.query import (
    BY_NAME,
    EXACT_FIELDS,
    LINKS,
    SETS,
    WHOLE,
    And,
    Every,
    Exists,
    Fuzzy,
    Inside,
    MomentRange,
    Most,
    Near,
    Not,
    NumberRange,
    Or,
    Phrase,
    Query,
    Regex,
    Site,
    Verbatim,
    Whole,
    Wildcard,
    Word,
)
from schemas.records import Summary


def enough(count: int) -> int:
    """Return how many of the bare words of a Most must be in a summary: all of two, and a lesser part the more there are.

    On test collections the root costs less than a half per cent of the average precision that one word as the minimum has, and
    leaves out half of the summaries; a third of the words costs three per cent (`make bench ARGS=ranking`).
    """
    return count if count < 3 else max(2, math.isqrt(count))


def bare(query: Query) -> bool:
    """Return whether a part of a Most is a bare word."""
    return isinstance(query, Word) and not query.attribute


def tiers(query: Query) -> tuple[Query, ...]:
    """Return queries whose matches follow each other, best first, and are disjoint: what has all words of a Most, then the rest."""
    if isinstance(query, Most) and sum(map(bare, query.parts)) > enough(sum(map(bare, query.parts))):
        whole = And(query.parts)
        return whole, And((query, Not(And(tuple(filter(bare, query.parts))))))
    return (query,)


class _Text:
    """Values of a summary (of `searchable_values`); each is analyzed at most once."""

    def __init__(self, by_name: Mapping[str, Sequence[str]], analyzer: Analyzer) -> None:
        self.by_name = by_name
        self._analyzer = analyzer

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """(name, text) of each value."""
        return [(name, text) for name, texts in self.by_name.items() for text in texts]

    @cached_property
    def values(self) -> list[tuple[str, str]]:
        """(name, words) of each value; the words have one space before, between and after them."""
        return [(name, f" {spaced(text)} ") for name, text in self.texts]

    @cached_property
    def forms(self) -> dict[str, set[str]]:
        """Forms of the words of each attribute's values, by name; under "" those that a word without an attribute is found by."""
        language = language_code(self.by_name)
        found: dict[str, set[str]] = {"": set()}
        for (name, text), (_, spread) in zip(self.texts, self.values, strict=True):
            forms = {*self._analyzer.forms(spread.split(), language), *signed_names(text)}
            found.setdefault(name, set()).update(forms)
            if name not in BY_NAME:
                found[""] |= forms
        return found

    def wholes(self, name: str) -> list[str]:
        """Return the values of an attribute as they are compared as wholes."""
        return facets.wholes(self.by_name.get(name, ()))

    @cached_property
    def links(self) -> set[tuple[str, str]]:
        return set(links(self.by_name))

    @cached_property
    def cells(self) -> set[int]:
        return values.cells(self.by_name)


class _View:
    """Summary under test, with its text."""

    def __init__(self, summary: Summary, analyzer: Analyzer, text: _Text) -> None:
        self.summary = summary
        self.analyzer = analyzer
        self.text = text

    @cached_property
    def names(self) -> set[str]:
        return names(self.summary)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return places.hosts(self.summary.shown_url)

    @cached_property
    def segments(self) -> tuple[str, ...]:
        return places.segments(self.summary.shown_url)


class _Views:
    """The summary under test that was the last one: the views of a Broker test it after each other."""

    def __init__(self) -> None:
        self._texts = Recent[_Text]()
        self._last: _View | None = None

    def of(self, summary: Summary, analyzer: Analyzer) -> _View:
        """Return a summary as it is tested."""
        last = self._last
        if last is None or last.summary is not summary or last.analyzer is not analyzer:
            text = self._texts.of(summary, analyzer.languages, lambda values: _Text(values, analyzer))
            last = self._last = _View(summary, analyzer, text)
        return last


_views = _Views()
_Test = Callable[[_View], bool]


def predicate(query: Query, analyzer: Analyzer = DEFAULT) -> Callable[[Summary], bool]:
    """Return a function that tests whether a summary matches; the query is analyzed once, here.

    Raises QueryError if a pattern of the query cannot be compiled (`parse` has no such patterns).
    """
    test = _Compiler(analyzer).test(query)
    return lambda summary: test(_views.of(summary, analyzer))


def matches(query: Query, summary: Summary, analyzer: Analyzer = DEFAULT) -> bool:
    """Return whether a summary matches a query."""
    return predicate(query, analyzer)(summary)


class _Compiler:
    """Compiler from nodes to tests."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def test(self, query: Query) -> _Test:
        match query:
            case And(parts):
                return _all(list(map(self.test, parts)))
            case Most(parts):
                return self._most(parts)
            case Or(parts):
                tests = list(map(self.test, parts))
                return lambda view: any(test(view) for test in tests)
            case Not(part):
                denied = self.test(part)
                return lambda view: not denied(view)
            case Exists(attribute):
                asked = known(attribute)
                return lambda view: asked in view.names
            case Every():
                return lambda _: True
        return self._term(query)

    def _most(self, parts: Sequence[Query]) -> _Test:
        required = _all([self.test(part) for part in parts if not bare(part)])
        wanted = [self.test(part) for part in parts if bare(part)]
        least = enough(len(wanted))
        return lambda view: required(view) and _at_least(least, (test(view) for test in wanted))

    def _term(self, query: Query) -> _Test:
        match query:
            case Word(text, attribute):
                return self._word(text, known(attribute))
            case Phrase(text, attribute):
                return self._word(text, known(attribute)) if signed_name(text) else _phrase(text, known(attribute))
            case Verbatim(text, attribute):
                return _verbatim(text, known(attribute))
            case Whole(text, attribute):
                return _value(text, known(attribute))
            case Wildcard(text, attribute):
                return _spaced_test(patterns.wildcard_expression(text), known(attribute))
            case Fuzzy(text, errors, attribute):
                return _word_test(patterns.fuzzy(text, errors), known(attribute))
            case Regex(text, attribute):
                return _regex(text, known(attribute))
            case Near(asked, distance, attribute):
                return _near(asked, distance, known(attribute))
        return _condition(query)

    def _word(self, text: str, name: str) -> _Test:
        if name in EXACT_FIELDS or name in LINKS:
            return _whole(text, name)
        found = words(text)
        signed = signed_name(text)
        if len(found) > 1 or not (found or signed):
            return _phrase(text, name)
        wanted = frozenset([signed] if signed else self._analyzer.query_forms(found[0]))
        return lambda view: not wanted.isdisjoint(view.text.forms.get(name, ()))


def _all(tests: Sequence[_Test]) -> _Test:
    return lambda view: all(test(view) for test in tests)


def _at_least(least: int, answers: Iterable[bool]) -> bool:
    for answer in answers:
        if least <= 0:
            return True
        least -= answer
    return least <= 0


def _whole(text: str, name: str) -> _Test:
    value = exact(text)
    if name in EXACT_FIELDS:
        return lambda view: bool(value) and property_of(view.summary, name) == value
    return lambda view: (name, value) in view.text.links


def _verbatim(text: str, name: str) -> _Test:
    if name in WHOLE:
        return _whole(text, name)
    return _text_test(patterns.verbatim(text), name, several=len(words(text)) > 1)


def _value(text: str, name: str) -> _Test:
    """Return a test of the values of an attribute as wholes."""
    if name in WHOLE:
        return _whole(text, name)
    value = facets.plain(text)
    return lambda view: value in view.text.wholes(name)


def _phrase(text: str, name: str) -> _Test:
    if name in EXACT_FIELDS or name in LINKS:
        return _whole(text, name)
    needle = f" {spaced(text)} "
    if not needle.strip():
        return lambda _: False
    return _values_test(lambda spread: needle in spread, name, several=len(needle.split()) > 1)


def _owners(name: str, passed: frozenset[str]) -> Callable[[str], bool]:
    """Return whether a term is looked for in the values of an attribute: `name`'s alone, or all but those BY_NAME and `passed`.

    Names of WHOLE are compared whole, and have no words.
    """
    if name:
        looked_in = name not in passed and name not in WHOLE
        return lambda owner: looked_in and owner == name
    left_out = passed | BY_NAME
    return lambda owner: owner not in left_out


def _values_test(test: Callable[[str], bool], name: str, *, several: bool) -> _Test:
    """Return a test of the words of a value between spaces; `several` words never match in one of SETS."""
    looked_in = _owners(name, SETS if several else frozenset())
    return lambda view: any(test(spread) for owner, spread in view.text.values if looked_in(owner))


def _word_test(test: Callable[[str], bool], name: str) -> _Test:
    """Return a test of single words."""
    return _values_test(lambda spread: any(map(test, spread.split())), name, several=False)


def _spaced_test(expression: regex.Expression, name: str) -> _Test:
    """Return a test of the words of a value all at once."""
    return _values_test(expression.test_spaced(), name, several=False)


def _text_test(test: Callable[[str], bool], name: str, *, several: bool) -> _Test:
    """Return a test of the text of a value as it is written."""
    looked_in = _owners(name, SETS if several else frozenset())
    return lambda view: any(test(text) for owner, text in view.text.texts if looked_in(owner))


def _regex(text: str, name: str) -> _Test:
    expression = regex.parse(text)
    if expression.of_words:
        return _spaced_test(expression, name)
    return _text_test(expression.test(), name, several=True)


def _near(asked: Sequence[str], distance: int, name: str) -> _Test:
    found = [word for text in asked for word in words(text)]
    near = patterns.near(found, distance)
    return _values_test(lambda spread: near(spread.split()), name, several=len(found) > 1)


def _condition(query: Query) -> _Test:
    match query:
        case NumberRange() | MomentRange():
            low, high = values.bounds(query)
            return lambda view: any(low <= cell <= high for cell in view.text.cells)
        case Site(asked):
            host = places.host(f"http://{asked}")
            return lambda view: host in view.hosts
        case Inside(place):
            wanted = places.wanted(place)
            return lambda view: places.is_inside(view.segments, wanted)
    raise TypeError(f"no node of a query: {type(query).__name__}")
