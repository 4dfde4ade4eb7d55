from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.query import QueryError, parse, unparse
from processors.query.predicate import predicate
from processors.query.spelling import LISTED, MAX_WORDS, NEIGHBOURS, RARER, REVERSED, corrected
from processors.query.words import words
from schemas.query import Query, Word
from schemas.records import Summary


class Words:
    """Dictionary of some titles, each of which is in so many summaries."""

    def __init__(self, titles: Iterable[tuple[str, int]]) -> None:
        self.summaries = [(_titled(title), count) for title, count in titles]
        self.listed: dict[str, int] = {}
        self.completions: list[tuple[str, int]] = []
        self.asked: list[int] = []
        for title, count in titles:
            for word in set(words(title)):
                self.listed[word] = self.listed.get(word, 0) + count

    def complete(self, beginning: str, limit: int = 10) -> Sequence[tuple[str, int]]:
        self.completions.append((beginning, limit))
        found = [(word, count) for word, count in self.listed.items() if word.startswith(beginning)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        self.asked.append(len(words))
        return [self.count(Word(word)) for word in words]

    def count(self, query: Query) -> int:
        test = predicate(query)
        return sum(count for summary, count in self.summaries if test(summary))


def _titled(title: str) -> Summary:
    url = "http://h/"
    return Summary(oid="0", url=url, object_url=url, gatherer="g", version=1, time=1, type="HTML", attributes={"title": (title,)})


TITLES = Words([
    ("The white whale", 300), ("while they sail", 40), ("Herman Melville", 20), ("harpoons and a leviathan", 5), ("the squid", 9),
    ("wale", 2), ("theatre", 3), ("Résumé of the cruise", 4), ("information", 6), ("informatik", 5), ("caf", 1), ("Café", 3),
    ("une étude", 2),
])  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("whlae", "whale"),
        ("hwale", "whale"),
        ("whal", "whale"),
        ("whhale", "whale"),
        ("Whakes", "whale"),
        ("Melvlile", "melville"),
        ("leviatann", "leviathan"),
        ("resune", "résumé"),
        ("étdue", "étude"),
        ("informatin", "information"),
        ("wale", "whale"),
        ("title:whlae", "title:whale"),
        ("Title:whlae", "Title:whale"),
        ("whlae squdi", None),
        ("white whlae", "white whale"),
        ("whlae OR squdi", "whale OR squid"),
        ("big white whlae -squid", "big white whale NOT squid"),
        ("(title:whlae OR author:x) type:HTML", "(title:whale OR author:x) type:HTML"),
        ("squid OR (whlae NOT melvile)", "squid OR (whale NOT melvile)"),
        ("whitewhale", "white whale"),
        ("title:whitewhale", "title:white title:whale"),
        ("the whitewhale", "the AND white AND whale"),
        ("the white whlae", "the white whale"),
        ("the big whitewhale", "the big white whale"),
        ("squid OR whitewhale", "squid OR (white whale)"),
    ],
)
def test_misspelled_words_are_replaced(typed: str, shown: str | None) -> None:
    """Misspelled words are replaced by those of the index, if more is found; attributes and all other parts are kept."""
    found = corrected(parse(typed), TITLES)
    assert (found and unparse(found)) == shown
    assert found is None or parse(unparse(found)) == found


@pytest.mark.parametrize(
    "query",
    [
        "whale",
        "whales",
        "squid",
        "while",
        "theater1",
        "sq",
        "ofa",
        "wnaie",
        "blarge",
        "xhale",
        "whlae.",
        "C++",
        '"whlae"',
        "=whlae",
        "whla*",
        "whlae~",
        "NOT whlae",
        "type:whlae",
        "owner:whlae",
        "file-name:whlae",
        "鯨",
        "*",
    ],
)
def test_other_words_are_kept(query: str) -> None:
    """Kept are words that are found, words without a neighbour, those that are too short, patterns, and denied terms."""
    assert corrected(parse(query), TITLES) is None


def test_existing_word_is_kept_unless_neighbour_is_much_more_frequent() -> None:
    """A word that exists is replaced by one that is RARER times as frequent and has one error, not by a less frequent one."""
    for count, shown in ((RARER - 1, None), (RARER, Word("whale"))):
        assert corrected(Word("wale"), Words([("wale", 1), ("whale", count)])) == shown
    assert corrected(Word("melvile"), Words([("melvile", 1), ("merville", 500)])) is None


def test_fewer_errors_and_then_higher_frequency_are_better() -> None:
    """The neighbour with the fewest errors is taken; of several the most frequent, then the first in order of letters."""
    assert corrected(Word("planer"), Words([("plane", 1), ("planet", 2), ("planner", 2), ("platter", 9)])) == Word("planet")
    assert corrected(Word("planer"), Words([("planner", 3), ("planet", 2)])) == Word("planner")


def test_frequency_counts_all_forms() -> None:
    """Neighbours are compared by how many summaries have them in any form."""
    assert corrected(Word("whalr"), Words([("whale", 1), ("whales", 8), ("whalt", 5)])) == Word("whale")


def test_neighbour_is_better_than_split() -> None:
    """A word is split unless it has a neighbour with one error; the place is that of the most frequent words."""
    titles = [("whitewhalo", 1), ("white", 2), ("whale", 2), ("whitew", 1), ("hale", 9)]
    assert corrected(Word("whitewhale"), Words([*titles, ("white whale", 2)])) == Word("whitewhalo")
    assert corrected(Word("whitewhale"), Words([*titles[1:], ("white whale", 2)])) == parse("white whale")


def test_work_is_bounded() -> None:
    """The rarest MAX_WORDS words of a query are compared, in their order, each with two bounded lists of words."""
    index = Words([("whale", 500), ("wale", 1), ("squid", 9)])
    found = corrected(parse("wale OR aaax OR aaax OR baax OR caax OR daax OR squdi"), index)
    assert found == parse("wale OR aaax OR aaax OR baax OR caax OR daax OR squid")
    assert index.completions == [
        pair for word in ("aaax", "baax", "caax", "daax", "squdi") for pair in ((word[0], LISTED), (word[1] + word[0], REVERSED))
    ]
    assert len(index.completions) == 2 * MAX_WORDS
    assert corrected(parse("aaax OR baax OR caax OR daax OR eaax OR squdi"), index) is None


def test_existing_word_is_not_split() -> None:
    """A word that exists is not split, however frequent its parts are."""
    assert corrected(Word("whitewhale"), Words([("whitewhale", 1), ("white whale", 300)])) is None


def test_listed_word_that_no_summary_has_is_no_neighbour() -> None:
    """A listed word that is in no summary any more is not taken, so that one with more errors is found."""
    index = Words([("planning", 2)])
    index.listed["plannig"] = 3
    assert corrected(Word("plannih"), index) == Word("planning")


def test_query_without_words_asks_nothing() -> None:
    """The index is not asked about a query that has no word that may be misspelled."""
    index = Words([("whale", 1)])
    assert corrected(parse("wh* -squid type:HTML"), index) is None
    assert index.asked == []


def test_few_words_are_compared() -> None:
    """Words too frequent to have a much more frequent neighbour are not compared; frequencies of the best neighbours are asked."""
    index = Words([("whale", 500), *((f"squid{letter}", 1) for letter in "abcdefghijklmnopqrtuvwxyz"), ("squids", 1)])
    assert corrected(parse("squidd whale"), index) is None
    assert corrected(parse("squidy"), index) is None
    assert {beginning for beginning, _ in index.completions} == {"s", "qs"}
    assert max(index.asked) == NEIGHBOURS


VOCABULARY = (
    "whale",
    "while",
    "white",
    "whitewhale",
    "hwale",
    "squid",
    "été",
    "ete",
    "東京",
    "ßeta",
    "sseta",
    "melville",
    "mel",
    "ville",
)
TITLED = st.lists(st.tuples(st.lists(st.sampled_from(VOCABULARY), max_size=3).map(" ".join), st.integers(1, 300)), max_size=6)
PIECES = st.sampled_from((*VOCABULARY, "title:", " ", "OR", "NOT ", "(", ")", '"', "~", "*", "mleville", "whale squid ")) | st.text(
    max_size=3
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=8).map("".join), TITLED)
def test_correction_finds_more(text: str, titles: list[tuple[str, int]]) -> None:
    """Whatever is typed, a corrected query finds more, can be written, and is the same each time."""
    try:
        query = parse(text)
    except QueryError:
        return
    index = Words(titles)
    found = corrected(query, index)
    assert found == corrected(query, index)
    if found is not None:
        assert index.count(found) > index.count(query)
        assert parse(unparse(found)) == found
