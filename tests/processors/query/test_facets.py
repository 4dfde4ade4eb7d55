from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from processors.query import matches, parse, unparse
from processors.query.facets import COUNTED, FACETS, MAX_VALUES, choice, chosen, columns, counted, refined, tidied, wholes, without
from processors.query.words import MAX_EXACT, exact, searchable_values
from schemas.ports import FacetValue
from schemas.query import And, Every, MomentRange, Most, Node, Not, Or, Phrase, Query, Site, Whole, Word
from schemas.records import Summary
from tests.processors.query.test_unparse import TREES

HTML, PDF, ORG = Word("HTML", "type"), Word("PDF", "type"), Site("example.org")
A, B, C = Word("a"), Word("b"), Word("c")
YEAR_1995 = MomentRange("", 788918400, 820454399)

CHOICES: list[tuple[str, str, Query, str]] = [
    ("type", "HTML", HTML, "type:HTML"),
    ("type", "a b", Word("a b", "type"), 'type:"a b"'),
    ("gatherer", "Lab (2)", Word("Lab (2)", "gatherer"), 'gatherer:"Lab (2)"'),
    ("site", "example.org", ORG, "site:example.org"),
    ("language", "en", Whole("en", "language"), "language:==en"),
    ("author", "Herman  Melville ", Whole("Herman Melville", "author"), 'author:=="Herman Melville"'),
    ("year", "1995", YEAR_1995, "during:1995"),
    ("year", "0001", MomentRange("", -62135596800, -62104060801), "during:0001"),
]
"""Facet, value, its choice, the choice as text."""

REFINED: list[tuple[str, str, str, str]] = [
    ("*", "type", "HTML", "type:HTML"),
    ("a", "type", "HTML", "a type:HTML"),
    ("a b c", "type", "HTML", "a b c type:HTML"),
    ("a AND b AND c", "type", "HTML", "a AND b AND c AND type:HTML"),
    ("a OR b", "type", "HTML", "(a OR b) type:HTML"),
    ("NOT a", "type", "HTML", "NOT a type:HTML"),
    ("type:PDF", "type", "HTML", "type:HTML"),
    ("type:PDF a", "type", "HTML", "a type:HTML"),
    ("a (type:PDF OR type:RTF)", "type", "HTML", "a type:HTML"),
    ("a (type:PDF OR b)", "type", "HTML", "a (type:PDF OR b) type:HTML"),
    ("a NOT type:PDF", "type", "HTML", "a NOT type:PDF type:HTML"),
    ("a type:PDF", "site", "h.org", "a type:PDF site:h.org"),
    ("a b c during:1995", "year", "1996", "a b c during:1996"),
    ("a during:1995-01", "year", "1996", "a during:1995-01 during:1996"),
    ("a after:1995", "year", "1996", "a after:1995 during:1996"),
    ("a Author:==x", "author", "y", "a author:==y"),
    ("a author:x", "author", "y", "a author:x author:==y"),
]
"""Query, facet, value, query with the value chosen."""

TEXTS = st.text(st.sampled_from("aB1-'é東 ßx*?~/\\\"=:.()\n\u0301\u200c"), min_size=1, max_size=8)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "type": TEXTS.filter(lambda text: exact(text) != ""),
    "gatherer": TEXTS.filter(lambda text: exact(text) != ""),
    "site": st.sampled_from(("example.org", "www.example.org", "localhost", "[::1]", "127.0.0.1", "bücher.example")),
    "language": TEXTS.filter(str.strip),
    "author": TEXTS.filter(str.strip),
    "year": st.integers(1, 9999).map("{:04}".format),
}


def summary(**attributes: list[str]) -> Summary:
    """Return a summary of a page."""
    return Summary(
        oid="0" * 64,
        url="http://www.example.org/a.html",
        object_url="http://www.example.org/a.html",
        gatherer="Lab",
        version=1,
        time=1,
        type="HTML",
        md5="0" * 32,
        attributes={name.replace("_", "-"): tuple(values) for name, values in attributes.items()},
    )


@pytest.mark.parametrize(("facet", "value", "tree", "text"), CHOICES)
def test_choice_is_a_term_of_the_language(facet: str, value: str, tree: Query, text: str) -> None:
    """The choice of a value is one node, which can be typed."""
    assert choice(facet, value) == tree
    assert unparse(choice(facet, value)) == text


@pytest.mark.parametrize(("facet", "value"), [("year", "95"), ("year", "x"), ("size", "1"), ("", "")])
def test_value_that_cannot_be_chosen_is_refused(facet: str, value: str) -> None:
    """A year that is none and an unknown facet raise ValueError."""
    with pytest.raises(ValueError, match=f"^no value of {facet}"):
        choice(facet, value)


@pytest.mark.parametrize(("query", "facet", "value", "text"), REFINED)
def test_refined_query_has_the_value_in_place_of_others(query: str, facet: str, value: str, text: str) -> None:
    """A choice takes the place of other choices of its facet at the top level, and of nothing else."""
    assert unparse(refined(parse(query), facet, value)) == text


def test_choices_are_found_at_the_top_level_alone() -> None:
    """Chosen is what every match must have: a term of an OR with others, of a NOT or of another facet is no choice."""
    tree = parse("a (type:HTML OR type:PDF) type:RTF NOT type:X (type:Y OR b) site:h.org")
    assert chosen(tree, "type") == ("HTML", "PDF", "RTF")
    assert chosen(tree, "site") == ("h.org",)
    assert chosen(tree, "year") == chosen(tree, "author") == ()
    assert chosen(Or((HTML, PDF)), "type") == ("HTML", "PDF")
    assert chosen(Or(()), "type") == ()
    assert chosen(Phrase("a b", "Type"), "type") == ("a b",)
    assert chosen(parse("during:1995 during:1995-01"), "year") == ("1995",)


def test_query_without_choices_keeps_its_kind() -> None:
    """A query that loses its choices is what was typed beside them; one without a choice is the same."""
    assert without(HTML, "type") == Every()
    assert without(And((A, HTML)), "type") == A
    assert without(And((A, B, HTML)), "type") == And((A, B))
    assert without(Most((A, B, C, HTML)), "type") == Most((A, B, C))
    for tree in (A, Every(), Not(HTML), And((A, ORG)), Most((A, B, C)), Or((HTML, A))):
        assert without(tree, "type") is tree


@given(TREES, st.sampled_from(FACETS), st.data())
def test_refined_query_that_is_typed_has_the_value_chosen(tree: Node, facet: str, data: st.DataObject) -> None:
    """Whatever the query, the text of the refined one has the value chosen, and it alone."""
    value = data.draw(VALUES[facet])
    typed = parse(unparse(tree))
    assume(len(unparse(typed)) < 300)
    again = parse(unparse(refined(typed, facet, value)))
    taken = choice(facet, value)
    assert [choice(facet, each) for each in chosen(again, facet)] == [taken]
    assert chosen(without(again, facet), facet) == ()


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=2), st.integers(1, 9999))
def test_summary_is_found_by_the_choice_of_each_of_its_values(authors: list[str], languages: list[str], year: int) -> None:
    """A value that a summary is counted for finds it."""
    found = summary(author=authors, language=languages, date=[f"{year:04}-05-06"])
    made = columns(found, searchable_values(found))
    assert tuple(sorted(made)) == tuple(sorted(COUNTED))
    assert made["year"] == [f"{year:04}"]
    assert made["site"] == ["www.example.org", "example.org", "org"]
    assert (made["type"], made["gatherer"]) == (["HTML"], ["Lab"])
    for facet, values in made.items():
        for value in values:
            assert matches(choice(facet, value), found), (facet, value)


def test_values_are_counted_once_and_within_limits() -> None:
    """Equal values count once, empty and too long ones not at all, and there are at most 100."""
    assert wholes(["a  b", " a\nb ", "", " ", "x" * MAX_EXACT, "y" * (MAX_EXACT + 1)]) == ["a b", "x" * MAX_EXACT]
    assert wholes(list(map(str, range(200)))) == list(map(str, range(MAX_VALUES)))


@pytest.mark.parametrize(
    ("value", "shown"), [("org", False), ("example.org", True), ("localhost", True), ("[::1]", True), ("127.0.0.1", True)]
)
def test_hosts_without_a_dot_are_not_shown(value: str, shown: bool) -> None:
    """A name above all hosts of a country or a kind is no useful choice."""
    assert counted("site", value) is shown
    assert counted("author", value)


def test_tidied_values_are_the_most_frequent_without_redundant_hosts() -> None:
    """The most frequent come first, equal ones by value; a host above another one with as many summaries is left out."""
    found = [
        FacetValue("example.org", 5),
        FacetValue("b.net", 3),
        FacetValue("www.example.org", 5),
        FacetValue("a.net", 3),
        FacetValue("c.net", 4),
        FacetValue("x.c.net", 3),
    ]
    assert [each.value for each in tidied("site", found, 10)] == ["www.example.org", "c.net", "a.net", "b.net", "x.c.net"]
    assert tidied("site", found, 2) == (FacetValue("www.example.org", 5), FacetValue("c.net", 4))
    assert tidied("site", [], 3) == ()
    assert len(tidied("author", [FacetValue("J.Smith", 2), FacetValue("Smith", 2)], 9)) == 2
