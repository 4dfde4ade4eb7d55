"""Routing: which Brokers a query is sent to, and the order of merged hits."""

from __future__ import annotations

import pytest

from processors.query import parse
from processors.query.forms import DEFAULT
from processors.query.routing.choice import Chosen, choose, query_words
from processors.query.routing.merging import Answered, merge
from processors.query.routing.statistics import Statistics, WordCounts
from schemas.ports import Hit
from tests.sinks.gateway.doubles import summary


def broker(**words: int) -> Statistics:
    """Return statistics of a Broker of 100 summaries, so many of which have each word."""
    counts = WordCounts(DEFAULT)
    for at in range(100):
        counts.add(summary(f"http://h/{at}", partial_text=" ".join(word for word, count in words.items() if at < count)))
    return counts.statistics()


BROKERS = {
    "sea": broker(whale=60, ship=40, water=50),
    "zoo": broker(whale=3, lion=50, water=10),
    "garden": broker(rose=70, water=80),
    "empty": Statistics(),
}


def hit(name: str, score: float) -> Hit:
    """Return a hit whose title is its name."""
    return Hit(name * 64, f"http://h/{name}", name, "HTML", score, "")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("whale", ["sea", "zoo"]),
        ("title:whales", ["sea", "zoo"]),
        ("rose", ["garden"]),
        ("whale lion", ["zoo"]),
        ("whale OR rose", ["garden", "sea", "zoo"]),
        ("whale NOT water", ["sea", "zoo"]),
    ],
)
def test_brokers_with_the_words_are_chosen_the_best_first(query: str, names: list[str]) -> None:
    """Brokers that may have matches are chosen, those with more of the words first."""
    assert [each.name for each in choose(parse(query), BROKERS, cut=0)] == names


def test_limits_of_the_choice() -> None:
    """At most `most` Brokers are chosen, those far below the best are left out, and there is at least one if there is any."""
    assert [each.name for each in choose(parse("whale"), BROKERS, 1)] == ["sea"]
    assert [each.name for each in choose(parse("whale"), BROKERS, cut=0.9)] == ["sea"]
    assert len(choose(parse("unheard"), BROKERS, 1)) == 1
    assert choose(parse("whale"), {}) == []


def test_choice_does_not_depend_on_the_order_of_the_brokers() -> None:
    """The same Brokers in another order give the same choice, also for a query without words."""
    for query in ("whale", "*", "type:HTML", "water"):
        assert choose(parse(query), BROKERS) == choose(parse(query), dict(reversed(BROKERS.items())))


def test_words_of_a_query() -> None:
    """Words of text count, wherever they are; those behind NOT, of whole values, of names and of patterns do not."""
    query = 'White title:whale "old man" OR (x NEAR y) -squid type:HTML owner:root wha* pages:1..2 C++'
    assert query_words(parse(query)) == ["white", "whale", "old", "man", "x", "y", "c++"]


def test_hits_of_the_better_broker_come_first_at_equal_scores() -> None:
    """A merged score is (D' + 0.4 D' C') / 1.4 with D' by the highest possible score of the Broker."""
    chosen = [Chosen("sea", 1.0, 10.0), Chosen("zoo", 0.0, 5.0)]
    answers = [Answered("zoo", [hit("a", 5.0), hit("b", 1.0)], 2), Answered("sea", [hit("c", 10.0), hit("d", 4.0)], 2)]
    found, least, most = merge(chosen, answers, 3)
    assert [(each.broker, each.hit.title, round(each.hit.score, 3)) for each in found] == [
        ("sea", "c", 1.0), ("zoo", "a", 0.714), ("sea", "d", 0.4),
    ]  # fmt: skip
    assert (least, most) == (4, 4)


def test_score_of_a_broker_that_exaggerates_is_at_most_the_best() -> None:
    """Scores beyond what is possible, and below 0, are brought into the range from 0 to 1."""
    found, *_ = merge([Chosen("liar", 1.0, 1.0)], [Answered("liar", [hit("a", 1e300), hit("b", -5.0)], 2)], 9)
    assert [each.hit.score for each in found] == [1.0, 0.0]


def test_equal_contents_are_shown_once_with_all_their_brokers() -> None:
    """Hits of one OID, of one URL or of one digest are one, in the better place, and are counted once."""
    chosen = [Chosen("a", 1.0, 1.0), Chosen("b", 0.5, 1.0)]
    other = hit("w", 0.9)._replace(url="http://h/x")
    answers = [
        Answered("a", [hit("x", 1.0), hit("y", 0.5)], 2, ["one", ""]),
        Answered("b", [hit("y", 1.0), other, hit("z", 0.3)], 3, ["", "", "one"]),
    ]
    found, least, most = merge(chosen, answers, 9)
    assert [(each.hit.title, each.broker, each.others) for each in found] == [("x", "a", ("b",)), ("y", "b", ("a",))]
    assert (least, most) == (2, 2)


@pytest.mark.parametrize(
    ("hits", "totals", "bounds"),
    [
        (["xy", "xy"], [100, 80], (100, 178)),  # all of the one may be in the other
        (["xy", "wz"], [3, 3], (4, 6)),
        (["xy", "yz"], [2, 2], (3, 3)),  # all is seen
        (["xx", "y"], [2, 1], (2, 2)),  # one that a Broker has twice
        (["", ""], [7, 5], (7, 12)),
        ([], [], (0, 0)),
    ],
)
def test_number_of_matches_has_true_bounds(hits: list[str], totals: list[int], bounds: tuple[int, int]) -> None:
    """At least what one Broker has, or what is seen; at most the sum, without what several are seen to have."""
    chosen = [Chosen(str(at), 1.0, 1.0) for at in range(len(hits))]
    answers = [Answered(str(at), [hit(name, 1.0) for name in names], totals[at]) for at, names in enumerate(hits)]
    assert merge(chosen, answers, 9)[1:] == bounds
