"""Events of the frontier delivered again, after a worker was killed between its rows and its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from processors.frontier.rows import Table
from processors.frontier.settings import DAY, FrontierSettings
from processors.frontier.stage import frontier
from processors.identity import url_digest
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, Record, Root, Span, Tick
from streams.simulator import MemoryRows

HOST = "http://example.org"
URL = f"{HOST}/"
DELIVERED = 100
"""An offset behind all earlier ones."""


class Partition:
    """A partition of the frontier, with a root whose time-to-live is one second."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.offset = 0

    def give(self, record: CrawlEvent, offset: int = 0, committed: int = 0) -> list[Record]:
        """The outputs of an event; without an offset, it gets the next one."""
        self.offset += 1
        return list(frontier(self.rows, record, Origin("crawl", 0, offset or self.offset, committed), FrontierSettings()))

    def seeded(self, run: str, time: int) -> FetchRequest:
        """The request for the root, or for the robots.txt before it."""
        return one(self.give(seed(run, time)))

    def resolved(self, to: FetchRequest, time: int) -> FetchRequest:
        """The request that waited for the host's resolution."""
        there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": b""}
        return one(self.give(CrawlEvent(kind="resolved", host=HOST, time=time, version=to.version, **there)))

    def fetched(self, of: FetchRequest, time: int) -> None:
        """Report that a request was fetched."""
        self.give(CrawlEvent(kind="fetched", host=of.host, time=time, url=of.url, version=of.version, root=of.root))

    def begins(self) -> None:
        """Gather and fetch the root, within three milliseconds."""
        self.fetched(self.resolved(self.seeded("1", 1), 2), 3)


def seed(run: str, time: int, url: str = URL) -> CrawlEvent:
    """The event that starts a root with a time-to-live of one second."""
    root, links = Root(url=url, run=run, urls=0, ttl=1), (Link(url=url, kind="page"),)
    return CrawlEvent(kind="seeded", host=HOST, time=time, url=url, root=root, links=links)


def one(given: list[Record]) -> FetchRequest:
    """The only output, which must be a request."""
    (request,) = given
    assert isinstance(request, FetchRequest)
    return request


@pytest.mark.parametrize("kind", ["resolved", "failed", "refused", "deferred"])
def test_expiry_is_repeated_with_its_answer(kind: Any) -> None:
    """The removal of a URL past its time-to-live, whatever answer caused it, is repeated when that answer comes again."""
    partition = Partition()
    partition.begins()
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
def test_removal_of_forbidden_url_is_repeated(later: bool) -> None:
    """The removal of a forbidden URL is repeated with the event that requested the URL, even behind another such event."""
    partition = Partition()
    other = f"{HOST}/other"
    for of in (partition.resolved(partition.seeded("1", 1), 2), one(partition.give(seed("1", 3, other)))):
        partition.fetched(of, 4)
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


def test_removal_on_other_host_is_repeated() -> None:
    """So is the removal on a host that the root has moved to, to which its own event has no link."""
    partition = Partition()
    moved = "http://www.example.org"
    root = Root(url=URL, run="1", urls=0, ttl=1)
    links = (Link(url=f"{moved}/", kind="page"),)
    found = one(partition.give(CrawlEvent(kind="discovered", host=moved, time=1, url=URL, root=root, depth=-1, links=links)))
    there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": b""}
    request = one(partition.give(CrawlEvent(kind="resolved", host=moved, time=2, version=found.version, **there)))
    partition.fetched(request, 3)
    rows = Table(partition.rows)
    rows.put_host(moved, rows.host(moved).but(robots=FORBIDS, robots_until=99 * DAY))
    again = CrawlEvent(kind="seeded", host=HOST, time=2 * DAY, url=URL, root=Root(url=URL, run="2", urls=0, ttl=1))
    told = [removed(partition.give(again, DELIVERED)) for _ in range(2)]
    assert [(gone.url, gone.outcome) for gone in told[0]] == [(f"{moved}/", "expired")]
    assert told[0] == told[1]


def test_removal_by_tick_is_repeated() -> None:
    """So is a removal that a tick caused."""
    partition = Partition()
    partition.begins()
    rows = Table(partition.rows)
    rows.put_host(HOST, rows.host(HOST).but(robots=FORBIDS, robots_until=99 * DAY))
    tick = Tick(time=90 * DAY)
    told = [removed(list(frontier(partition.rows, tick, Origin("crawl.ticks", 0, 7), FrontierSettings()))) for _ in range(2)]
    assert [(gone.url, gone.outcome) for gone in told[0]] == [(URL, "expired")]
    assert told[0] == told[1]


def test_unlisted_file_is_removed_by_first_listing_only() -> None:
    """A file missing in two listings is removed by the first, and removed again only when that listing comes again."""
    partition = Partition()
    folder, url = "file:///tree/", "file:///tree/a"
    root = Root(url=folder, run="1", urls=0, ttl=1, accept=10)

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
def test_url_found_after_expiry_survives_one_failure(committed: int) -> None:
    """After a URL expires, a later page links to it: the removal may still be repeated; one failure now does not remove it."""
    partition = Partition()
    partition.begins()
    asked = partition.resolved(partition.seeded("2", 2 * DAY), 2 * DAY + 1)

    def fails(to: FetchRequest, offset: int) -> list[FetchedObject]:
        failed = CrawlEvent(kind="failed", host=HOST, time=2 * DAY + 2, url=URL, version=to.version, reason="odd")
        return removed(partition.give(failed, offset))

    told = fails(asked, DELIVERED)
    assert [(of.url, of.outcome) for of in told] == [(URL, "expired")]
    other = Root(url=f"{HOST}/other", run="2", urls=0, ttl=1)
    links = (Link(url=URL, kind="page"),)
    found = CrawlEvent(kind="discovered", host=HOST, time=2 * DAY + 3, url=other.url, root=other, links=links)
    anew = one(partition.give(found, DELIVERED + 1, committed))
    assert anew.version > told[0].version
    assert fails(asked, DELIVERED) == ([] if committed else told)
    assert not fails(anew, DELIVERED + 2)


def test_gone_root_is_not_asked_again() -> None:
    """A root whose source reported it gone has ended: the source is not asked again."""
    partition = Partition()
    asked = partition.resolved(partition.seeded("1", 1), 2)
    partition.give(CrawlEvent(kind="gone", host=HOST, time=3, url=URL, version=asked.version, root=asked.root))
    partition.give(CrawlEvent(kind="unseeded", host=HOST, time=4, url=URL, root=Root(url=URL, run="2", urls=0)))
    assert not list(frontier(partition.rows, Tick(time=90 * DAY), Origin("crawl.ticks", 0, 7), FrontierSettings()))
    assert not list(partition.rows.scan(b"u|"))


def test_url_found_long_after_removal_survives_one_failure() -> None:
    """A URL that a tick removed and a page links to later is not removed for one failure: the next run tries it again."""
    partition = Partition()
    partition.begins()
    rows = Table(partition.rows)
    rows.put_host(HOST, rows.host(HOST).but(robots=FORBIDS, robots_until=99 * DAY))
    tick = list(frontier(partition.rows, Tick(time=90 * DAY), Origin("crawl.ticks", 0, 7), FrontierSettings()))
    assert [gone.url for gone in removed(tick)] == [URL]
    rows.put_robots(HOST, b"")
    rows.put_host(HOST, rows.host(HOST).but(robots_until=300 * DAY))
    other = Root(url=f"{HOST}/other", run="2", urls=0)
    links = (Link(url=URL, kind="page"),)
    found = CrawlEvent(kind="discovered", host=HOST, time=200 * DAY, url=other.url, root=other, links=links)
    asked = one(partition.give(found, 5_000, 5_000))
    assert not removed(
        partition.give(CrawlEvent(kind="failed", host=HOST, time=200 * DAY, url=URL, version=asked.version, reason="odd"))
    )
    again = CrawlEvent(kind="seeded", host=HOST, time=230 * DAY, url=other.url, root=Root(url=other.url, run="3", urls=0))
    assert one(partition.give(again)).url == URL


class Two(Partition):
    """Two roots with a page each on one host; the second has a time-to-live of one second."""

    first, second = Root(url=URL, run="1", urls=0), Root(url=f"{HOST}/b", run="1", urls=0, ttl=1)

    def finds(self, root: Root, url: str, time: int) -> None:
        """Discover a page of a root, or the root itself, and fetch it."""
        links = (Link(url=url, kind="page"),)
        kind: Any = "seeded" if url == root.url else "discovered"
        host = url[: url.index("/", len("http://"))]
        found = CrawlEvent(kind=kind, host=host, time=time, url=root.url, root=root, links=links)
        request = one(self.give(found))
        if request.kind == "resolve":
            there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": b""}
            request = one(self.give(CrawlEvent(kind="resolved", host=host, time=time, version=request.version, **there)))
        self.fetched(request, time)

    def says(self, host: str, body: bytes, wait: int = 0) -> None:
        """Change the robots.txt of a host; `wait`: the time before which no request goes to it (ms)."""
        rows = Table(self.rows)
        rows.put_robots(host, body)
        rows.put_host(host, rows.host(host).but(robots_until=99 * DAY, next_allowed=wait))


def test_removals_by_end_of_root_are_repeated() -> None:
    """A root's end removes its URLs, and another root's expired, forbidden page; both are repeated when the event comes again."""
    partition = Two()
    shared = f"{HOST}/shared"
    partition.finds(partition.first, URL, 1)
    partition.finds(partition.first, shared, 2)
    partition.finds(partition.second, partition.second.url, 3)
    links = (Link(url=shared, kind="page"),)
    by_both = CrawlEvent(kind="discovered", host=HOST, time=4, url=URL, root=partition.second, depth=0, links=links)
    request = one(partition.give(by_both))
    partition.fetched(request, 4)
    partition.says(HOST, FORBIDS)
    ends = CrawlEvent(kind="unseeded", host=HOST, time=2 * DAY, url=URL, root=Root(url=URL, run="2", urls=0))
    told = [[(gone.url, gone.reason, gone.version) for gone in removed(partition.give(ends, DELIVERED))] for _ in range(2)]
    assert sorted(gone[:2] for gone in told[0]) == [(URL, "no root asks for it any more"), (shared, "past its time-to-live")]
    assert sorted(told[0]) == sorted(told[1])


@pytest.mark.parametrize("forbidden", [FORBIDS, b"User-agent: *\nDisallow: /x"])
def test_outputs_for_queue_of_other_root_are_repeated(forbidden: bytes) -> None:
    """A repeated run repeats its outputs for another host: a request for, or the removal of, a page of another root there."""
    partition = Two()
    elsewhere = "http://elsewhere.example.org"
    partition.finds(partition.first, f"{elsewhere}/x", 1)
    partition.finds(partition.second, f"{elsewhere}/y", 2)
    partition.says(elsewhere, b"", 2 * DAY + 5)
    late = msgspec.structs.replace(partition.second, run="2")
    partition.give(CrawlEvent(kind="seeded", host=HOST, time=2 * DAY, url=late.url, root=late))
    partition.says(elsewhere, forbidden, 2 * DAY + 5)
    run = CrawlEvent(kind="seeded", host=HOST, time=2 * DAY + 9, url=URL, root=Root(url=URL, run="2", urls=0))
    told = [[one for one in partition.give(run, DELIVERED) if not isinstance(one, CrawlEvent)] for _ in range(2)]
    assert [(type(one), one.url) for one in told[0] if isinstance(one, (FetchedObject, FetchRequest))] == [
        (FetchedObject if forbidden is FORBIDS else FetchRequest, f"{elsewhere}/y")
    ]
    assert told[0] == told[1]


def test_removal_cut_between_two_rows_is_completed() -> None:
    """If a worker dies between the two rows of a removal, the repeated event removes the URL, once."""
    partition = Partition()
    partition.begins()
    before = {key: value for prefix in (b"u|", b"g|", b"c|", b"a|") for key, value in partition.rows.scan(prefix)}
    ends = CrawlEvent(kind="unseeded", host=HOST, time=9, url=URL, root=Root(url=URL, run="2", urls=0))
    assert len(removed(partition.give(ends, DELIVERED))) == 1
    for key, value in before.items():
        partition.rows.put(key, value)
    assert [gone.url for gone in removed(partition.give(ends, DELIVERED))] == [URL]
    assert Table(partition.rows).get(HOST, url_digest(URL)) is None


def test_delivered_removals_are_forgotten() -> None:
    """Removals are noted only as long as they may have to be repeated."""
    partition = Partition()
    partition.begins()
    ends = CrawlEvent(kind="unseeded", host=HOST, time=9, url=URL, root=Root(url=URL, run="2", urls=0))
    partition.give(ends, DELIVERED)
    other = seed("1", 10, f"{HOST}/other")
    for committed, noted in ((DELIVERED, 1), (DELIVERED + 1, 0)):
        partition.give(other, DELIVERED + 1, committed)
        assert len(list(partition.rows.scan(b"e|"))) == noted


def removed(given: Sequence[Record]) -> list[FetchedObject]:
    """The removals in some outputs."""
    return [record for record in given if isinstance(record, FetchedObject)]
