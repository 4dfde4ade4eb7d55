"""Refreshing by change rate: the estimate, the interval, and what the frontier counts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.change_rate import change_rate, refresh_interval
from processors.frontier.rows import Table
from processors.frontier.settings import DAY, FrontierSettings
from processors.frontier.stage import frontier
from processors.frontier.state import UrlState
from processors.frontier.visits import usual_price
from processors.identity import url_digest
from schemas.ports import Origin
from schemas.records import CrawlEvent, CrawlKind, FetchRequest, Link, Root, Tick, Validators
from streams.simulator import MemoryRows
from tests.bench.refresh import DAY as SECONDS
from tests.bench.refresh import (
    MOST_REQUESTS,
    Policy,
    adapted,
    at_equal_freshness,
    at_equal_requests,
    fixed,
    lifetimes,
)

HOST = "http://example.org"
URL = f"{HOST}/"
MONTH = 28 * DAY
PRICE = 86_400_000
SETTINGS = FrontierSettings(robots_ttl=1 << 45, price=PRICE)


# ---- the estimate and the interval ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("visits", "changes", "last", "rate"),
    [
        (10, 5, 100, -math.log(5.5 / 10.5) / 10),
        (1, 1, 7, math.log(3) / 7),
        (20, 1, 40, -math.log(19.5 / 20.5) / 2),
        (10, 0, 100, 0.0),
        (0, 0, 0, 0.0),
        (3, 3, 0, 0.0),
    ],
)
def test_change_rate_is_the_estimate_of_cho_and_garcia_molina(visits: int, changes: int, last: int, rate: float) -> None:
    """The rate follows the formula; it is 0 without a change, without a visit, and without time between visits."""
    assert change_rate(visits, changes, 1_000, 1_000 + last) == pytest.approx(rate)


@given(st.floats(1e-14, 1e-4), st.floats(1, 1e12))
def test_interval_solves_the_equation_of_optimal_freshness(rate: float, price: float) -> None:
    """Between its bounds, the interval I solves 1 - e^-x (1 + x) = price * rate, x = rate * I; no request worth it: the longest."""
    shortest, longest = 1, 1e14
    interval = refresh_interval(rate, price, shortest, longest)
    if rate * price >= 1:
        assert interval == longest
    elif shortest < interval < longest:
        x = rate * interval
        gain = 1 - math.exp(-x) * (1 + x) if x > 1e-3 else x * x / 2 - x**3 / 3
        assert gain == pytest.approx(rate * price, rel=1e-5)
        assert interval > 3.35 * price


@given(
    st.floats(0, 1e300, allow_nan=False),
    st.floats(0, 1e300, allow_nan=False),
    st.integers(1, 10**13),
    st.integers(1, 10**13),
)
def test_interval_is_always_between_its_bounds(rate: float, price: float, shortest: int, longest: int) -> None:
    """Whatever rate and price are, the interval is between the shortest and the longest, and the longest without a change."""
    interval = refresh_interval(rate, price, min(shortest, longest), longest)
    assert min(shortest, longest) <= interval <= longest
    assert refresh_interval(0, price, shortest, longest) == longest


def test_pages_that_change_too_fast_or_never_have_the_longest_interval() -> None:
    """Only pages with rates in between are requested sooner than at the longest interval; a price of 0 requests them most often."""
    days = {life: refresh_interval(1 / life, 2, 0.25, 28) for life in (0.1, 1.9, 3, 10, 44, 1_000)}
    assert (days[0.1], days[1.9], days[1_000]) == (28, 28, 28)
    assert 6.7 < days[10] < days[44] < 28
    assert 6.7 < days[3] < 28
    assert refresh_interval(1 / 44, 0, 0.25, 28) == 0.25


# ---- the simulation ------------------------------------------------------------------------------------------------


def test_change_rates_save_requests_on_the_lifetimes_of_the_papers() -> None:
    """With rates from visits, as many copies are current at 0.92 of the requests at most, and as many requests keep no fewer."""
    lives = lifetimes(300)
    assert sum(lives) / len(lives) == pytest.approx(44)
    assert fixed(lives, 28).current == pytest.approx(0.535, abs=0.01)
    policy = Policy(SECONDS, FrontierSettings().refresh_min / 1_000)
    found = adapted(lives, policy, 3 * 365)
    assert at_equal_freshness(lives, found) <= MOST_REQUESTS
    assert at_equal_requests(lives, found) > 1
    for price in (2, 4, 6):
        assert at_equal_requests(lives, adapted(lives, policy._replace(price=price * SECONDS), 3 * 365)) > 1


@pytest.mark.parametrize("refresh", [7, 28, 84])
def test_usual_price_takes_as_many_requests_as_the_fixed_interval(refresh: int) -> None:
    """Where no price is stated, there are about as many requests as at the fixed interval, of which more keep a page current."""
    lives, longest = lifetimes(300), refresh * SECONDS
    policy = Policy(usual_price(longest), FrontierSettings().refresh_min / 1_000, longest)
    found = adapted(lives, policy, 3 * 365)
    assert 0.95 <= found.requests * refresh <= 1.1
    assert found.current > fixed(lives, refresh).current
    assert at_equal_requests(lives, found) > 1
    assert at_equal_freshness(lives, found) < 1


# ---- what the frontier counts --------------------------------------------------------------------------------------


class Page:
    """A partition of the frontier with one page, the root, which is fetched for the first time at 1 ms."""

    def __init__(self, settings: FrontierSettings = SETTINGS) -> None:
        self.rows, self.offset, self.time, self.settings = MemoryRows(), 0, 1, settings
        host = Table(self.rows).host(HOST)
        Table(self.rows).put_host(HOST, host.but(address="192.0.2.1", robots_until=1 << 50))
        (self.request,) = self._requests(seeded("1"))

    def _requests(self, record: CrawlEvent | Tick, offset: int = 0) -> list[FetchRequest]:
        self.offset += 1
        topic = "crawl" if isinstance(record, CrawlEvent) else "crawl.ticks"
        found = frontier(self.rows, record, Origin(topic, 0, offset or self.offset, 0), self.settings)
        return [one for one in found if isinstance(one, FetchRequest)]

    @property
    def row(self) -> UrlState:
        """The row of the page."""
        found = Table(self.rows).get(HOST, url_digest(URL))
        assert found is not None
        return found

    @property
    def counted(self) -> tuple[int, int]:
        """Visits and changes."""
        return self.row.visits, self.row.changes

    def answer(self, kind: CrawlKind, md5: str = "", offset: int = 0, **fields: Any) -> int:
        """Answer the request of the page; return the offset of the answer."""
        validators = Validators(md5=md5, size=1) if md5 else None
        request: dict[str, Any] = {"host": HOST, "url": URL, "version": self.request.version, "root": self.request.root}
        event = CrawlEvent(kind=kind, time=self.time, validators=validators, **request, **fields)
        again = self._requests(event, offset)
        if again:
            (self.request,) = again
        return offset or self.offset

    def wait(self, time: int) -> FetchRequest:
        """Let time pass, in ms; return the request that is due then."""
        self.time += time
        (self.request,) = self._requests(Tick(time=self.time))
        return self.request

    def run(self, name: str) -> None:
        """Start a run, and keep its request."""
        (self.request,) = self._requests(seeded(name, self.time))


def seeded(run: str, time: int = 1) -> CrawlEvent:
    """The event that starts a run of the root."""
    root = Root(url=URL, run=run, urls=0, host=HOST)
    return CrawlEvent(kind="seeded", host=HOST, time=time, url=URL, root=root, links=(Link(url=URL, kind="page"),))


def test_visits_and_changes_are_counted() -> None:
    """The first answer begins the count; then each counts as a visit, and as a change if its body is another one."""
    page = Page()
    page.answer("fetched", "a")
    assert (*page.counted, page.row.first, page.row.due) == (0, 0, 1, 1 + MONTH)
    page.wait(MONTH)
    page.answer("unchanged", "a")
    assert page.counted == (1, 0)
    assert page.row.due == page.time + MONTH
    page.wait(MONTH)
    page.answer("fetched", "b")
    assert (*page.counted, page.row.first) == (2, 1, 1)


def test_changing_page_is_requested_sooner_and_a_stable_one_is_not() -> None:
    """The due time follows the change rate, between the shortest and the longest interval."""
    page = Page()
    page.answer("fetched", "a")
    page.wait(MONTH)
    page.answer("fetched", "b")
    interval = refresh_interval(math.log(3) / MONTH, PRICE, SETTINGS.refresh_min, MONTH)
    assert interval < MONTH / 2
    assert page.row.due - page.time == round(interval)
    assert page.wait(round(interval)).validators == Validators(md5="b", size=1)
    always = Page(FrontierSettings(robots_ttl=1 << 45, refresh_min=2 * MONTH))
    always.answer("fetched", "a")
    always.wait(MONTH)
    always.answer("fetched", "b")
    assert always.row.due - always.time == MONTH


def test_price_of_a_request_is_a_quarter_of_the_refresh_where_none_is_stated() -> None:
    """Without a setting, the price follows the refresh of the root."""
    page = Page(FrontierSettings(robots_ttl=1 << 45))
    page.answer("fetched", "a")
    page.wait(MONTH)
    page.answer("fetched", "b")
    assert page.row.due - page.time == round(refresh_interval(math.log(3) / MONTH, MONTH // 4, 6 * 3_600_000, MONTH)) < MONTH


def test_failure_leaves_a_page_its_interval() -> None:
    """A page that failed is requested again after the interval of its change rate, as after a success."""
    page = Page()
    page.answer("fetched", "a")
    page.wait(MONTH)
    page.answer("fetched", "b")
    interval = page.row.due - page.time
    assert interval < MONTH / 2
    page.wait(interval)
    page.answer("failed", reason="status 403")
    rate = change_rate(1, 1, page.row.first, page.row.confirmed)
    assert page.row.due - page.time == round(refresh_interval(rate, PRICE, SETTINGS.refresh_min, MONTH)) == interval


def test_redelivered_answer_counts_nothing() -> None:
    """An answer that is delivered again changes neither counts nor due time."""
    page = Page()
    page.answer("fetched", "a")
    page.wait(MONTH)
    offset = page.answer("fetched", "b")
    before = page.row
    page.answer("fetched", "b", offset)
    page.answer("fetched", "b")
    assert page.row == before


def test_same_body_after_an_unconditional_request_is_no_change() -> None:
    """Where other rules of summarizing make a request unconditional, the digest tells whether the body has changed."""
    page = Page()
    page.answer("fetched", "a")
    for rules, body, counted in (("2", "a", (1, 0)), ("3", "b", (2, 1)), ("4", "b", (3, 1))):
        page.settings = FrontierSettings(robots_ttl=1 << 45, rules=rules)
        page.run(rules)
        assert page.request.validators is None
        page.answer("failed", retryable=True)
        page.wait(2_000)
        page.answer("fetched", body, rules=rules)
        assert page.counted == counted
    assert page.row.digest == ""


def test_failures_count_nothing_and_a_page_that_was_gone_begins_anew() -> None:
    """Only answers with a body or `unchanged` are visits; what comes back after it was gone has no history."""
    page = Page()
    page.answer("fetched", "a")
    page.wait(MONTH)
    page.answer("fetched", "b")
    page.wait(page.row.due - page.time)
    page.answer("failed", reason="status 403")
    assert page.counted == (1, 1)
    page.wait(page.row.due - page.time)
    page.answer("gone", reason="status 404")
    page.settings = FrontierSettings(robots_ttl=1 << 45, doubt=False)
    page.run("2")
    page.answer("gone", reason="status 404")
    page.run("3")
    page.answer("fetched", "b")
    assert (*page.counted, page.row.first) == (0, 0, page.time)


def test_rows_of_an_earlier_version_begin_to_count_at_their_next_answer() -> None:
    """A row written before visits were counted is decoded, and its next answer is the first."""
    page = Page()
    page.answer("fetched", "a")
    page.wait(MONTH)
    table = Table(page.rows)
    table.put(HOST, url_digest(URL), page.row.but(visits=0, changes=0, first=0))
    page.answer("fetched", "b")
    assert (*page.counted, page.row.first) == (0, 0, page.time)


def test_file_has_no_visits_of_its_own() -> None:
    """Rows of files count nothing: the listing of their folder tells whether they changed."""
    rows, url = MemoryRows(), "file:///srv/a.txt"
    root = Root(url=url, run="1", urls=0)
    event = CrawlEvent(kind="seeded", host="file:///srv/", time=1, url=url, root=root, links=(Link(url=url, kind="file"),))
    for offset, (time, md5) in enumerate(((1, "a"), (2, "b"))):
        seed = CrawlEvent(
            kind="seeded", host=event.host, time=time, url=url, root=Root(url=url, run=md5, urls=0), links=event.links
        )
        (request,) = frontier(rows, seed, Origin("crawl", 0, 2 * offset), SETTINGS)
        assert isinstance(request, FetchRequest)
        there: dict[str, Any] = {"validators": Validators(md5=md5, size=1), "version": request.version, "root": request.root}
        answer = CrawlEvent(kind="fetched", host=event.host, time=time, url=url, **there)
        assert not list(frontier(rows, answer, Origin("crawl", 0, 2 * offset + 1), SETTINGS))
    found = Table(rows).get(event.host, url_digest(url))
    assert found is not None
    assert (found.state, found.visits, found.changes, found.first) == ("ok", 0, 0, 0)
