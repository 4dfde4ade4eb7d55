from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.query import parse, unparse
from processors.query.bounds import FIRST, LAST
from processors.query.terms import is_single
from processors.query.words import attribute as known
from processors.query.words import exact, words
from schemas.query import (
    DATES,
    WHOLE,
    And,
    Every,
    Exists,
    Fuzzy,
    Inside,
    MomentRange,
    Most,
    Near,
    Node,
    Not,
    NumberRange,
    Or,
    Phrase,
    Regex,
    Site,
    Verbatim,
    Whole,
    Wildcard,
    Word,
)

A, B, C = Word("a"), Word("b"), Word("c")

UNTYPED: list[tuple[Node, str]] = [
    (And(()), "*"),
    (Most(()), "*"),
    (Or(()), "NOT *"),
    (Most((A,)), "a"),
    (Most((A, B)), "a b"),
    (And((A, B, C)), "a AND b AND c"),
    (Most((A, B, Word("AND"))), "a b and"),
    (Most((A, B, Word("x y"))), "a b x-y"),
    (Most((A, B, C, And((A,)))), "a b c NOT NOT a"),
    (Most((A, B, Wildcard("whal?"))), "a b (whal?)"),
    (Most((A, B, C, Wildcard("whal?"))), "a b c (whal?)"),
    (Word("AND"), "and"),
    (Word("-x"), "x"),
    (Word("/a"), "/a //"),
    (Word("wh*", "title"), "title:wh"),
    (Word("a*", "title"), "title:a"),
    (Word("x", "site"), '"site":x'),
    (Word("b/", "/a"), '"/a":b/'),
    (Word("x", "=a"), '"=a":x'),
    (Regex("/a\\/b"), r"/\/a\/b/"),
    (Regex(" a"), "/[ ]a/"),
    (Verbatim("a*"), '="a*"'),
    (Site("h(x)"), 'site:"h(x)"'),
    (Near(("a", "b"), 2, "x y"), '"x y":"a b"~2'),
    (NumberRange("pages", 2, 1), "NOT *"),
    (NumberRange("pages", float("nan")), "NOT *"),
    (NumberRange("pages", float("inf")), "NOT *"),
    (NumberRange("pages", float("-inf"), 0.0), "pages:..0"),
    (NumberRange("pages"), "pages:-1.7976931348623157e+308.."),
    (MomentRange("date", 0, 86_399), "date:1970-01-01..1970-01-01"),
    (MomentRange("", 0, 86_399), "during:1970-01-01"),
    (MomentRange(""), "during:0001.."),
    (MomentRange("seen", 1, 0), "NOT *"),
    (MomentRange("seen"), "seen:0001-01.."),
]
"""Trees that no query parses to, and their texts."""

TEXTS = st.text(st.sampled_from("aB1-'é東 ßx*?~/\\\"=:.()\u0301\u200c"), min_size=1, max_size=8).filter(words)
NAMES = st.sampled_from(("", "", "title", "terms", "x y", "a:b", "/a", "=b", "-c", "Site", "before", "NEAR/5", "AND", "date"))
FOUND = NAMES | st.sampled_from(("url", "type", "url-references"))
SINGLE = st.text(st.sampled_from("aB1éß"), min_size=3, max_size=8).filter(is_single)
DAYS = st.dates().map(lambda day: (day.toordinal() - 719_163) * 86_400)
SECONDS = st.integers(FIRST, LAST) | st.sampled_from((FIRST, LAST)) | DAYS
"""Seconds since the epoch, many of them the beginnings of days."""


def ordered(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Return pairs of bounds of which at least one is given."""
    pairs = st.tuples(st.none() | values, st.none() | values).filter(lambda pair: pair != (None, None))
    return pairs.map(lambda pair: pair if None in pair else (min(pair), max(pair)))


TERMS: st.SearchStrategy[Node] = st.one_of(
    st.just(Every()),
    st.builds(Word, TEXTS, FOUND),
    st.builds(Word, SINGLE),
    st.builds(Phrase, TEXTS, FOUND),
    st.builds(Verbatim, TEXTS, NAMES),
    st.builds(Whole, TEXTS, NAMES.filter(bool)),
    st.builds(Wildcard, st.sampled_from(("wh*", "*hal*", "whal?", "w?a?", "é*ß")), NAMES),
    st.builds(lambda text, name: Fuzzy(text, (len(text) - 1) // 2 if len(text) < 7 else 3, name), SINGLE, NAMES),
    st.builds(Regex, st.sampled_from(("a", "wh[ai]le?s", "a/b", "a\\/b", "^a b$", "a\\\\", "(a|b)")), NAMES),
    st.builds(
        Near, st.lists(SINGLE.map(lambda text: words(text)[0]), min_size=2, max_size=3).map(tuple), st.integers(0, 1_000), NAMES
    ),
    st.builds(
        lambda bounds, name: NumberRange(name, *bounds), ordered(st.floats(allow_nan=False, allow_infinity=False)), st.just("pages")
    ),
    st.builds(lambda bounds, name: MomentRange(name, *bounds), ordered(SECONDS), st.sampled_from(("", "seen", "date", "x y"))),
    st.builds(Site, st.sampled_from(("example.org", "localhost:80", "h(x)"))),
    st.builds(Inside, st.sampled_from(("docs", "my docs", "file:///a/", "a*b", '"', "/a"))),
    st.builds(Exists, FOUND.filter(bool)),
)
GROUPS = (And, Or, Most)


def grouped(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Return inner nodes over some parts."""
    several = st.lists(parts, max_size=4).map(tuple)
    return st.one_of(*(st.builds(kind, several) for kind in GROUPS), st.builds(Not, parts))


TREES = st.recursive(TERMS, grouped, max_leaves=12)


def meaning(query: Node) -> Any:
    """Return the same value for trees that mean the same by the rules of the nodes."""
    match query:
        case And(parts) | Most(parts) if not parts:
            return meaning(Every())
        case Or(()):
            return meaning(Not(Every()))
        case And((part,)) | Most((part,)) | Or((part,)):
            return meaning(part)
        case Most(parts) if sum(map(bare, parts)) >= 3:
            return "Most", [(bare(part), meaning(part)) for part in parts]
        case And(parts) | Most(parts):
            return "And", [meaning(part) for part in parts]
        case Or(parts):
            return "Or", [meaning(part) for part in parts]
        case Not(part):
            inner = meaning(part)
            return inner[1] if isinstance(inner, tuple) and inner[0] == "Not" else ("Not", inner)
    return meaning_of_term(query)


def meaning_of_term(query: Node) -> Any:
    """Return the same value for terms that mean the same."""
    match query:
        case Word(text, name) | Phrase(text, name) if known(name) in WHOLE:
            return "whole", exact(text), name
        case Word(text, name) | Phrase(text, name):
            found = words(text)
            return "Word" if isinstance(query, Word) and len(found) == 1 else "Phrase", found, name
        case MomentRange("", int(low), int(high)):
            return meaning(And((MomentRange("", low), MomentRange("", None, high))))
        case Regex(text, name):
            return "Regex", text.replace("\\/", "/"), name
    return query


def bare(part: Node) -> bool:
    """Return whether a part of Most is one of the words of which enough must match."""
    return isinstance(part, Word) and not part.attribute


@pytest.mark.parametrize(("tree", "text"), UNTYPED)
def test_tree_that_nobody_typed_has_a_text_of_the_same_meaning(tree: Node, text: str) -> None:
    """Trees made by programs are unparsed to text that parses to the same meaning, and then no more changes."""
    assert unparse(tree) == text
    again = parse(text)
    assert parse(unparse(again)) == again


@settings(max_examples=500)
@given(TREES)
def test_text_of_any_tree_has_its_meaning(tree: Node) -> None:
    """The text of a random tree of all nodes parses to a tree of the same meaning, which round trips."""
    again = parse(unparse(tree))
    assert meaning(again) == meaning(tree)
    assert parse(unparse(again)) == again


@given(ordered(SECONDS), st.sampled_from(("", "seen", *DATES)))
def test_every_second_can_be_written(bounds: tuple[int | None, int | None], name: str) -> None:
    """Bounds of moments are written exactly, in whichever form is the shortest."""
    assert parse(unparse(MomentRange(name, *bounds))) == MomentRange(name, *bounds)


@given(ordered(st.floats(allow_nan=False, allow_infinity=False)))
def test_every_number_can_be_written(bounds: tuple[float | None, float | None]) -> None:
    """Bounds of numbers are written exactly."""
    assert parse(unparse(NumberRange("pages", *bounds))) == NumberRange("pages", *bounds)
