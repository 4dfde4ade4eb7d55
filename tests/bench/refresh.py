"""Measures refreshing by change rate against a fixed interval, on the lifetimes of objects that the Harvest papers report.

Pages change as Poisson processes. Every page is visited at its first day, and from then on at the intervals that the frontier
computes from what the visits found; learning is part of the measurement. A visit finds a change by chance; the share of time for
which the copy is current until the next visit is its expectation, so that few pages give a steady figure.

Figures: requests, as a share of those of the fixed interval for all pages that keeps as many copies current; and current copies,
as a multiple of those of the fixed interval with as many requests.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist, fmean
from typing import NamedTuple

from processors.frontier.change_rate import change_rate, refresh_interval
from tests.bench.figures import Figure, Goal

DAY = 86_400
MEAN, UNDER_TEN, UNDER_ONE = 44, 0.28, 0.01
"""Mean lifetime in days, and the shares below 10 days and 1 day (the Harvest report, on incremental gathering)."""
SEED = 44
MOST_REQUESTS = 0.92
PRICES, YEARS = (1, 2, 4, 7), (2, 4)
"""Prices in days, the last one that of the frontier where none is stated; years from the first visit of all pages."""


class Policy(NamedTuple):
    """Settings of refreshing, in seconds."""

    price: float
    shortest: float = DAY // 4
    longest: float = 28 * DAY


class Kept(NamedTuple):
    """Requests a page and day, and the share of the copies that are current."""

    requests: float
    current: float


def lifetimes(count: int) -> list[float]:
    """Return lifetimes in days: log-normal with the two shares, its longest ones shortened so that the mean is right."""
    places = [NormalDist().inv_cdf((n + 0.5) / count) for n in range(count)]
    one, ten = (NormalDist().inv_cdf(share) for share in (UNDER_ONE, UNDER_TEN))
    scale = math.log(10) / (ten - one)
    found = [math.exp(scale * (place - one)) for place in places]
    most = _root(lambda cut: fmean(min(life, cut) for life in found) - MEAN, MEAN, max(found))
    return [min(life, most) for life in found]


def fixed(lives: Sequence[float], interval: float) -> Kept:
    """Return what one interval in days for all pages keeps current."""
    return Kept(1 / interval, fmean(life / interval * -math.expm1(-interval / life) for life in lives))


def adapted(lives: Sequence[float], policy: Policy, days: int, *, known: bool = False) -> Kept:
    """Return what intervals by change rate keep current over so many days, with rates estimated from visits, or known."""
    chance = random.Random(SEED)
    requests, current, horizon = 0, 0.0, days * DAY
    for life in lives:
        rate = 1 / (life * DAY)
        visits = changes = now = 0
        while now < horizon:
            estimate = rate if known else change_rate(visits, changes, 0, now)
            until = min(now + round(refresh_interval(estimate, *policy)), horizon)
            fresh = -math.expm1(-rate * (until - now))
            current += fresh / rate
            requests += until < horizon
            visits, changes, now = visits + 1, changes + (chance.random() < fresh), until
    return Kept(requests / days / len(lives), current / horizon / len(lives))


def at_equal_freshness(lives: Sequence[float], found: Kept) -> float:
    """Return the requests as a share of those of the fixed interval that keeps as many copies current."""
    interval = _root(lambda days: found.current - fixed(lives, days).current, 0.01, 10_000)
    return found.requests * interval


def at_equal_requests(lives: Sequence[float], found: Kept) -> float:
    """Return how many copies are current, as a multiple of those of the fixed interval with as many requests."""
    return found.current / fixed(lives, 1 / found.requests).current


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return high


def measured(pages: int) -> Iterator[Figure]:
    """Measure refreshing at several prices, with rates estimated from visits and with known ones."""
    lives = lifetimes(pages)
    for years in YEARS:
        for price in PRICES:
            for known in (False, True):
                found = adapted(lives, Policy(price * DAY), 365 * years, known=known)
                shown = f"a visit in {1 / found.requests:.1f} days, {found.current:.3f} current"
                goals = (Goal("<=", MOST_REQUESTS), Goal(">=", 1.0)) if (price, known) == (1, False) else (None, None)
                name = f"{years} years, {price} d{', known' if known else ''}"
                yield Figure("refresh, requests", name, at_equal_freshness(lives, found), "ratio", f"as current; {shown}", goals[0])
                yield Figure(
                    "refresh, current", name, at_equal_requests(lives, found), "ratio", f"as many requests; {shown}", goals[1]
                )
