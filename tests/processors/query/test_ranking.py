from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query.ranking import DAY_S, MOST_LINKS, Candidate, Weights, reordered

NOW = 1_700_000_000
YEAR = 365
WEIGHTS = Weights(freshness=0.5, half_life=YEAR, links=0.25)

CANDIDATES = st.builds(
    Candidate,
    st.floats(0, 1e6),
    st.none() | st.integers(-62_135_596_800, 253_402_300_799),
    st.integers(0, 10**9),
)
ANY_WEIGHTS = st.builds(Weights, st.floats(0, 10), st.floats(0.01, 1e6), st.floats(0, 10))


def days_ago(days: float) -> int:
    """Return the date so many days before NOW."""
    return NOW - int(days * DAY_S)


@pytest.mark.parametrize(
    ("date", "added"),
    [
        (None, 0),
        (days_ago(0), 0.5),
        (days_ago(YEAR), 0.25),
        (days_ago(2 * YEAR), 0.125),
        (days_ago(-YEAR), 0.5),
        (-62_135_596_800, 0),
    ],
)
def test_freshness_halves_with_each_half_life(date: int | None, added: float) -> None:
    """What freshness adds is half as much after a half-life, all of it for the future, and nothing without a date."""
    (hit,) = reordered([Candidate(4, date)], WEIGHTS, NOW)
    assert hit.freshness == pytest.approx(4 * added)
    assert hit.score == pytest.approx(4 + 4 * added)


@pytest.mark.parametrize(("links", "added"), [(0, 0), (9, 0.25 / 3), (MOST_LINKS, 0.25), (10**6, 0.25)])
def test_links_add_their_logarithm(links: int, added: float) -> None:
    """What links add grows with their logarithm, up to MOST_LINKS."""
    (hit,) = reordered([Candidate(4, None, links)], WEIGHTS, NOW)
    assert hit.links == pytest.approx(4 * added, rel=1e-3)
    assert hit.score == 4 + hit.links


def test_fresh_and_linked_hits_move_up() -> None:
    """A better match keeps its place unless freshness or links make up for the difference."""
    hits = [Candidate(10), Candidate(9, days_ago(1)), Candidate(8.5, None, 900), Candidate(5, days_ago(0), 1_000)]
    assert [hit.place for hit in reordered(hits, WEIGHTS, NOW)] == [1, 2, 0, 3]


@given(st.lists(CANDIDATES, max_size=20), ANY_WEIGHTS, st.integers(0, 253_402_300_799))
def test_parts_add_up_and_order_is_stable(hits: list[Candidate], weights: Weights, now: int) -> None:
    """Scores are finite, descend, and are the sum of their parts; equal ones keep their order; nothing is lost or twice."""
    found = reordered(hits, weights, now)
    assert sorted(hit.place for hit in found) == list(range(len(hits)))
    assert [(-hit.score, hit.place) for hit in found] == sorted((-hit.score, hit.place) for hit in found)
    for hit in found:
        assert hit.score == hits[hit.place].score + hit.freshness + hit.links
        assert math.isfinite(hit.score)
        assert hit.freshness >= 0
        assert hit.links >= 0


@given(st.lists(CANDIDATES, max_size=20), st.integers(0, 10**12))
def test_weights_of_zero_change_nothing(hits: list[Candidate], now: int) -> None:
    """Without weights every hit keeps its score, and the order is that of the scores."""
    found = reordered(hits, Weights(0, YEAR, 0), now)
    assert [hit.score for hit in found] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score == hits[hit.place].score for hit in found)
