"""Answers that come again, since the worker was killed between the rows and what it gave."""

from __future__ import annotations

from typing import Any

import pytest

from processors.frontier import FrontierSettings, frontier
from processors.frontier_asking import DAY
from processors.frontier_rows import Table
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, Record, Root, Span, Tick
from streams.simulator import MemoryRows

HOST = "http://example.org"
URL = f"{HOST}/"
DELIVERED = 100
"""An offset behind all before it."""


class Partition:
    """A partition of the frontier, which is told of a root that lives for a second."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.offset = 0

    def give(self, record: CrawlEvent, offset: int = 0, committed: int = 0) -> list[Record]:
        """What an event gives; without an offset, the next one's."""
        self.offset += 1
        return list(frontier(self.rows, record, Origin("crawl", 0, offset or self.offset, committed), FrontierSettings()))

    def seeded(self, run: str, time: int) -> FetchRequest:
        """The request of the root, or of the robots.txt before it."""
        return one(self.give(seed(run, time)))

    def resolved(self, to: FetchRequest, time: int) -> FetchRequest:
        """The request that waited for the host."""
        there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": b""}
        return one(self.give(CrawlEvent(kind="resolved", host=HOST, time=time, version=to.version, **there)))


def seed(run: str, time: int, url: str = URL) -> CrawlEvent:
    """A root that lives for a second is to be gathered."""
    root, links = Root(url=url, run=run, ttl=1), (Link(url=url, kind="page"),)
    return CrawlEvent(kind="seeded", host=HOST, time=time, url=url, root=root, links=links)


def one(given: list[Record]) -> FetchRequest:
    """The only record, a request."""
    (request,) = given
    assert isinstance(request, FetchRequest)
    return request


@pytest.mark.parametrize("kind", ["resolved", "failed", "refused", "deferred"])
def test_what_expires_is_told_again(kind: Any) -> None:
    """A URL that goes past its time-to-live, for whatever answer, goes again where that answer comes again: no removal is lost."""
    partition = Partition()
    request = partition.resolved(partition.seeded("1", 1), 2)
    partition.give(CrawlEvent(kind="fetched", host=HOST, time=3, url=URL, version=request.version, root=request.root))
    asked = partition.seeded("2", 2 * DAY)
    if kind != "resolved":
        asked = partition.resolved(asked, 2 * DAY + 1)
    url = "" if kind == "resolved" else URL
    answer = CrawlEvent(kind=kind, host=HOST, time=2 * DAY + 2, url=url, version=asked.version, reason="odd", wait=DAY)
    told = [removed(partition.give(answer, DELIVERED)) for _ in range(2)]
    assert [(gone.url, gone.outcome) for gone in told[0]] == [(URL, "expired")]
    assert told[0] == told[1]


FORBIDS = b"User-agent: *\nDisallow: /"


@pytest.mark.parametrize("later", [False, True])
def test_what_is_forbidden_is_told_again(later: bool) -> None:
    """A URL that goes since its host forbids it now goes again with the event that asked for it, also behind another such event."""
    partition = Partition()
    other = f"{HOST}/other"
    for of in (partition.resolved(partition.seeded("1", 1), 2), one(partition.give(seed("1", 3, other)))):
        partition.give(CrawlEvent(kind="fetched", host=HOST, time=4, url=of.url, version=of.version, root=of.root))
    asked = partition.seeded("2", 2 * DAY)
    answer = CrawlEvent(kind="resolved", host=HOST, time=2 * DAY, version=asked.version, robots=FORBIDS, addresses=("192.0.2.1",))
    events = [answer, seed("2", 2 * DAY + 1, other)][: 1 + later]
    told = [
        [
            [(gone.url, gone.outcome, gone.version) for gone in removed(partition.give(event, DELIVERED + place))]
            for place, event in enumerate(events)
        ]
        for _ in range(2)
    ]
    assert [[gone[:2] for gone in of] for of in told[0]] == [[(URL, "expired")], [(other, "expired")]][: 1 + later]
    assert told[0] == told[1]


def test_what_another_host_forbids_is_told_again() -> None:
    """So it is on a host that the root has moved to, of which its own event names no link."""
    partition = Partition()
    moved = "http://www.example.org"
    root = Root(url=URL, run="1", ttl=1)
    links = (Link(url=f"{moved}/", kind="page"),)
    found = one(partition.give(CrawlEvent(kind="discovered", host=moved, time=1, url=URL, root=root, depth=-1, links=links)))
    there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": b""}
    request = one(partition.give(CrawlEvent(kind="resolved", host=moved, time=2, version=found.version, **there)))
    partition.give(CrawlEvent(kind="fetched", host=moved, time=3, url=request.url, version=request.version, root=root))
    rows = Table(partition.rows)
    rows.put_host(moved, rows.host(moved).but(robots=FORBIDS, robots_until=99 * DAY))
    again = CrawlEvent(kind="seeded", host=HOST, time=2 * DAY, url=URL, root=Root(url=URL, run="2", ttl=1))
    told = [removed(partition.give(again, DELIVERED)) for _ in range(2)]
    assert [(gone.url, gone.outcome) for gone in told[0]] == [(f"{moved}/", "expired")]
    assert told[0] == told[1]


def test_what_a_tick_finds_forbidden_is_told_again() -> None:
    """So it is where a tick asked for it."""
    partition = Partition()
    request = partition.resolved(partition.seeded("1", 1), 2)
    partition.give(CrawlEvent(kind="fetched", host=HOST, time=3, url=URL, version=request.version, root=request.root))
    rows = Table(partition.rows)
    rows.put_host(HOST, rows.host(HOST).but(robots=FORBIDS, robots_until=99 * DAY))
    tick = Tick(time=90 * DAY)
    told = [removed(list(frontier(partition.rows, tick, Origin("crawl.ticks", 0, 7), FrontierSettings()))) for _ in range(2)]
    assert [(gone.url, gone.outcome) for gone in told[0]] == [(URL, "expired")]
    assert told[0] == told[1]


def test_what_is_listed_no_more_is_told_once() -> None:
    """A file that is in two listings no more goes with the first of them, and again only where that one comes again."""
    partition = Partition()
    folder, url = "file:///tree/", "file:///tree/a"
    root = Root(url=folder, run="1", ttl=1)

    def listed(offset: int, *links: Link, committed: int = 0) -> list[Record]:
        span = Span(low=b"", high=b"\xff" * 16)
        found = CrawlEvent(kind="discovered", host=folder, time=9, url=folder, version=1, root=root, links=links, span=span)
        return partition.give(found, offset, committed)

    asked = one(listed(10, Link(url=url, kind="file", size=1, mtime=1, inode=1)))
    partition.give(CrawlEvent(kind="fetched", host=folder, time=9, url=url, version=asked.version, root=root), 11)
    told = removed(listed(12))
    assert [(gone.url, gone.outcome) for gone in told] == [(url, "gone")]
    assert not listed(13)
    assert removed(listed(12)) == told
    assert not listed(14, committed=14)
    assert not listed(12)


@pytest.mark.parametrize("committed", [0, DELIVERED + 1])
def test_what_is_found_behind_its_removal_goes_once_more(committed: int) -> None:
    """A URL expires, and a page of the same batch leads to it: where the removal may be lost, it can be made again."""
    partition = Partition()
    request = partition.resolved(partition.seeded("1", 1), 2)
    partition.give(CrawlEvent(kind="fetched", host=HOST, time=3, url=URL, version=request.version, root=request.root))
    asked = partition.resolved(partition.seeded("2", 2 * DAY), 2 * DAY + 1)

    def fails(to: FetchRequest, offset: int) -> list[FetchedObject]:
        failed = CrawlEvent(kind="failed", host=HOST, time=2 * DAY + 2, url=URL, version=to.version, reason="odd")
        return removed(partition.give(failed, offset))

    (gone,) = fails(asked, DELIVERED)
    other = Root(url=f"{HOST}/other", run="2", ttl=1)
    links = (Link(url=URL, kind="page"),)
    found = CrawlEvent(kind="discovered", host=HOST, time=2 * DAY + 3, url=other.url, root=other, links=links)
    anew = one(partition.give(found, DELIVERED + 1, committed))
    told = fails(anew, DELIVERED + 2)
    assert [(of.url, of.outcome, of.version > gone.version) for of in told] == ([] if committed else [(URL, "expired", True)])


def removed(given: list[Record]) -> list[FetchedObject]:
    """The removals of what was given."""
    return [record for record in given if isinstance(record, FetchedObject)]
