"""Crawler traps: a URL that looks like one of endlessly many is refused only once its host has shown many of the same pattern."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from processors.frontier.rows import BUCKETS, Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier, restore
from processors.urls import MAX_SIMILAR
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Record, Root
from streams.simulator import MemoryRows

HOST = "http://a.example"
ROOT = Root(url=f"{HOST}/", run="1", urls=0, depth=-1)


class Partition:
    """A partition of the frontier; each event has the next offset."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.offset = 0

    def give(self, record: CrawlEvent) -> list[Record]:
        """Return the outputs of an event."""
        self.offset += 1
        return list(frontier(self.rows, record, Origin("crawl", 0, self.offset, 0), FrontierSettings(credit=100_000)))

    def resolve(self, host: str = HOST) -> None:
        """Store an empty robots.txt for a host."""
        table = Table(self.rows)
        table.put_host(host, table.host(host).but(address="192.0.2.1", robots_until=1 << 50))

    def find(self, urls: Sequence[str], host: str = HOST, root: Root = ROOT) -> tuple[list[FetchRequest], list[Link], list[str]]:
        """Return the requests, refused links and reasons for links found in one page."""
        links = tuple(Link(url=url, kind="page") for url in urls)
        given = self.give(CrawlEvent(kind="discovered", host=host, time=9, url=root.url, root=root, links=links))
        refused = [event for event in given if isinstance(event, CrawlEvent)]
        requests = [record for record in given if isinstance(record, FetchRequest)]
        return requests, [link for event in refused for link in event.links], [event.reason for event in refused]

    def answer(self, kind: str, request: FetchRequest) -> None:
        """Report the outcome of a request."""
        self.give(CrawlEvent(kind=kind, host=request.host, time=10, url=request.url, version=request.version, root=ROOT))  # type: ignore[arg-type]

    def counts(self) -> dict[bytes, bytes]:
        """Return the counts of suspicious URLs."""
        return dict(self.rows.scan(b"n|"))


@pytest.fixture
def partition() -> Partition:
    """A partition with a resolved host."""
    made = Partition()
    made.resolve()
    return made


def fields(number: int) -> str:
    """Return a query of twenty parameters."""
    return "&".join(f"field{n}={number}" for n in range(20))


FEW = [
    [f"{HOST}/tiles/0/0/0/0/{n}.html" for n in range(10)],
    [f"{HOST}/map/{n}/{n}/{n}.png" for n in range(100)],
    [f"{HOST}/form?{fields(n)}" for n in range(20)],
    [f"{HOST}/{'/'.join(f'level{n}' for n in range(25))}/index.html"],
    [f"{HOST}/login?from=/a?b&to=/c?d"],
    [f"{HOST}/q?{'x' * 600}"],
]


@pytest.mark.parametrize("urls", FEW)
def test_few_suspicious_urls_are_fetched(partition: Partition, urls: list[str]) -> None:
    """Repeated path segments and long queries alone are no trap: a site may have some such URLs."""
    requests, refused, _ = partition.find(urls)
    assert (sorted(request.url for request in requests), refused) == (sorted(urls), [])


ENDLESS = [
    [f"{HOST}/{'x/' * n}" for n in range(3, 20)] + [f"{HOST}/{n}/{'x/' * 5}" for n in range(100)],
    [f"{HOST}/{n}/calendar/next/calendar/next/calendar/next/" for n in range(200)],
    [f"{HOST}/shop?{fields(n)}" for n in range(200)],
    [f"{HOST}/{'/'.join(f'level{n}' for n in range(25))}/{number}" for number in range(200)],
    [f"{HOST}/go?to=/a?x={n}?y={n}" for n in range(200)],
]


@pytest.mark.parametrize("urls", ENDLESS)
def test_endless_pattern_is_refused(partition: Partition, urls: list[str]) -> None:
    """Once a host has shown many URLs of a pattern, further ones are refused, with the reason; others are fetched as before."""
    requests, refused, reasons = partition.find(urls)
    assert len(requests) == MAX_SIMILAR
    assert len(refused) == len(urls) - MAX_SIMILAR
    assert all(reason.startswith("trap: ") and str(MAX_SIMILAR) in reason for reason in reasons)
    assert len(partition.find([f"{HOST}/plain/{n}" for n in range(100)])[0]) == 100
    assert partition.find(urls)[1:][0] == refused


def test_other_host_has_counts_of_its_own(partition: Partition) -> None:
    """A pattern that is endless on one host is not refused on another one."""
    partition.find([f"{HOST}/{n}/x/x/x/" for n in range(200)])
    other = "http://b.example"
    partition.resolve(other)
    assert len(partition.find([f"{other}/x/x/x/"], other)[0]) == 1


def test_number_of_requests_does_not_depend_on_order(partition: Partition) -> None:
    """However links are ordered and divided between pages, and however often each is found, as many are fetched."""
    urls = [f"{HOST}/{n}/x/x/x/" for n in range(120)] * 2
    random.Random(7).shuffle(urls)
    found = [partition.find(urls[at : at + 7]) for at in range(0, len(urls), 7)]
    assert sum(len(requests) for requests, _, _ in found) == MAX_SIMILAR


def test_urls_that_are_gone_do_not_count(partition: Partition) -> None:
    """A URL that the server reports as missing leaves the count, so that later ones of the pattern are fetched."""
    requests, _, _ = partition.find([f"{HOST}/{n}/x/x/x/" for n in range(MAX_SIMILAR)])
    assert partition.find([f"{HOST}/new/x/x/x/"])[0] == []
    partition.answer("gone", requests[0])
    assert len(partition.find([f"{HOST}/new/x/x/x/"])[0]) == 1
    assert partition.find([f"{HOST}/newer/x/x/x/"])[0] == []


def test_counts_end_with_their_urls(partition: Partition) -> None:
    """No count remains once the root of the URLs has ended."""
    partition.find([f"{HOST}/{n}/x/x/x/" for n in range(9)] + [f"{HOST}/form?{fields(n)}" for n in range(9)])
    assert partition.counts()
    partition.give(CrawlEvent(kind="unseeded", host=HOST, time=11, url=ROOT.url, root=ROOT))
    assert not partition.counts()


def test_counts_are_rebuilt_from_urls(partition: Partition) -> None:
    """After a crash the counts are derived from the rows of the URLs, gone ones left out."""
    requests, _, _ = partition.find([f"{HOST}/{n}/x/x/x/" for n in range(9)] + [f"{HOST}/form?{fields(n)}" for n in range(9)])
    for request in requests[:3]:
        partition.answer("gone", request)
    before = partition.counts()
    for key in before:
        partition.rows.put(key, b"77")
    restore(partition.rows)
    assert partition.counts() == before


def test_counts_are_bounded_by_host(partition: Partition) -> None:
    """A server that has a new pattern for each URL gets few rows, and is refused in the end."""
    refused = []
    for start in range(0, 6_000, 500):
        refused += partition.find([f"{HOST}/{f'p{n}/' * 3}" for n in range(start, start + 500)])[1]
        assert len(refused) == 0 or start > 0
    assert len(partition.counts()) == BUCKETS
    assert len(refused) == 6_000 - BUCKETS * MAX_SIMILAR
