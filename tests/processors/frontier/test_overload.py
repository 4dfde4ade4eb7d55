"""An overloaded host in the frontier: how its pause grows, what holds it, and what its robots.txt does not change."""

from __future__ import annotations

from typing import Any

import pytest

from processors.frontier.politeness import pause_of
from processors.frontier.rows import Table
from processors.frontier.state import HostState
from processors.identity import frontier_key
from schemas.records import CrawlEvent, FetchRequest, Plan, Record
from tests.processors.frontier.conftest import SITE, Partition, requests

HOST = frontier_key(SITE)
LINKS = [f"{SITE}{number}" for number in range(40)]


def site_of(partition: Partition) -> HostState:
    """The row of the host."""
    return Table(partition.rows).host(HOST)


def begun(partition: Partition, plan: Plan | None = None) -> list[FetchRequest]:
    """The requests for the first pages of a site of forty pages."""
    (page,) = requests(partition.resolve(partition.seed(plan)))
    partition.answer(page)
    return requests(partition.link(page, *LINKS))


def wait_and_resolve(partition: Partition) -> list[FetchRequest]:
    """The requests for pages once the host is not held any more; robots.txt is answered if it is requested first."""
    made = list[Record]()
    while not [each for each in requests(made) if each.kind == "object"]:
        due = Table(partition.rows).next_due()
        assert due is not None
        made = partition.resolve(made) if requests(made) else partition.tick(max(due, partition.now))
    return requests(made)


def failed_resolve(partition: Partition, given: list[Record], **fields: Any) -> list[Record]:
    """Answer the only request, which asks for robots.txt, with a failure."""
    (request,) = requests(given)
    event = CrawlEvent(kind="resolved", host=HOST, time=partition.now, version=request.version, retryable=True, **fields)
    return partition.give(event)


def test_robots_does_not_count_as_recovery() -> None:
    """The pause of a host that answers each page with 503 grows to a minute, although its robots.txt is answered in between."""
    partition = Partition(pause=1_000, tries=1_000, patience=10**9)
    flying, pauses = begun(partition), list[int]()
    for _ in range(12):
        if not flying:
            flying = wait_and_resolve(partition)
        for request in flying:
            partition.answer(request, "failed", status=503, retryable=True)
        flying = []
        pauses.append(pause_of(site_of(partition), 1_000))
    assert pauses[:6] == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000]
    assert set(pauses[6:]) == {60_000}


def test_pause_of_plan_is_the_base_of_doubling() -> None:
    """A root that asks for a pause of 5 s has 10 s after a 503, and 5 s again after an answer."""
    partition = Partition(pause=1_000)
    first, second, *_ = begun(partition, Plan(pause=5_000))
    partition.answer(first, "failed", status=503, retryable=True)
    assert (site_of(partition).slowed, site_of(partition).next_allowed) == (10_000, partition.now + 10_000)
    partition.answer(second)
    assert site_of(partition).slowed == 0


def test_pause_of_plan_is_the_base_of_slowness() -> None:
    """An answer is slow only if it takes an eighth of the pause that its root asks for."""
    partition = Partition(pause=1_000)
    first, second, *_ = begun(partition, Plan(pause=5_000))
    partition.answer(first, latency=100)
    partition.answer(second, latency=600)
    assert site_of(partition).slowed == 0


@pytest.mark.parametrize(("status", "wait", "slowed", "hold"), [(503, 0, 2_000, 2_000), (429, 30_000, 2_000, 30_000)])
def test_overloaded_robots_holds_host(status: int, wait: int, slowed: int, hold: int) -> None:
    """429, 503 and Retry-After hold the host when they answer the request for robots.txt too."""
    partition = Partition(pause=1_000)
    failed_resolve(partition, partition.seed(), status=status, wait=wait)
    site = site_of(partition)
    assert (site.slowed, site.next_allowed) == (slowed, partition.now + hold)
    assert [each.kind for each in requests(partition.tick(partition.now + hold))] == ["resolve"]


def test_long_wait_for_robots_holds_later_links() -> None:
    """A host whose robots.txt is to be asked for in an hour is not asked before, whatever links are found meanwhile."""
    partition = Partition(pause=1_000)
    (request,) = requests(partition.seed())
    failed_resolve(partition, [request], status=503, wait=3_600_000)
    assert not partition.link(request, f"{SITE}x")
    assert not requests(partition.tick(partition.now + 3_599_000))
    assert [each.kind for each in requests(partition.tick(partition.now + 1_000))] == ["resolve"]
