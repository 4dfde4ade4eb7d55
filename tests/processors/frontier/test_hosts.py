"""Rows and courtesy of hosts, and the index of the URLs of a root."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from processors.frontier import root_index
from processors.frontier.politeness import after_answer, credit_of, pause_of
from processors.frontier.rows import DERIVED, Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier, outstanding, restore
from processors.frontier.state import HostState
from processors.identity import frontier_key
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Record, Root, Tick
from streams.simulator import MemoryRows

HOST = "http://a.test"
ROBOTS = b"User-agent: *\nDisallow: /private\n"


class Partition:
    """A partition of the frontier, and the next offset of its input."""

    def __init__(self, **settings: Any) -> None:
        self.rows = MemoryRows()
        self.offset = 0
        self.settings = FrontierSettings(**settings)

    def give(self, kind: Any, host: str = HOST, time: int = 1, **more: Any) -> list[Record]:
        """The outputs of an event."""
        self.offset += 1
        event = CrawlEvent(kind=kind, host=host, time=time, **more)
        return list(frontier(self.rows, event, Origin("crawl", 0, self.offset, self.offset), self.settings))

    def seed(self, number: int, robots: bytes = b"", run: str = "1") -> list[FetchRequest]:
        """The requests for the first pages of a host whose root has so many, once it is resolved."""
        root = Root(url=f"{HOST}/", run=run, urls=0)
        self.give("seeded", url=root.url, root=root, links=(Link(url=root.url, kind="page"),))
        links = tuple(Link(url=f"{HOST}/{n}", kind="page") for n in range(number - 1))
        self.give("discovered", url=root.url, root=root, links=links)
        asking = Table(self.rows).host(HOST).asking
        made = self.give("resolved", version=asking, robots=robots, addresses=("192.0.2.1",))
        return [each for each in made if isinstance(each, FetchRequest)]


CREDITS = [
    ({}, b"", 8),
    ({"pause": 1_000}, b"", 8),
    ({"pause": 5_000}, b"", 2),
    ({"pause": 5_000, "credit": 1}, b"", 1),
    ({"pause": 10_000}, b"", 1),
    ({"pause": 5_000, "edge_patience": 40_000}, b"", 8),
    ({}, b"User-agent: *\nCrawl-delay: 3\n", 3),
    ({"pause": 4_000}, b"User-agent: *\nCrawl-delay: 3\n", 2),
]


@pytest.mark.parametrize(("settings", "robots", "number"), CREDITS)
def test_outstanding_requests_fit_into_patience(settings: dict[str, int], robots: bytes, number: int) -> None:
    """A host has as many outstanding requests as pauses fit into the patience of the edge, at least one."""
    assert len(Partition(**settings).seed(20, robots)) == number


def test_overload_lengthens_pause_and_lowers_credit() -> None:
    """The pause in force is the longest one."""
    assert pause_of(HostState(delay=-1), 1_000) == 1_000
    assert pause_of(HostState(delay=2_000, slowed=8_000), 1_000) == 8_000
    assert credit_of(8_000, 8, 10_000) == 1


def answered(site: HostState, kind: Any, pause: int = 1_000, **more: Any) -> HostState:
    """The row of a host after the answer, at time 0, to a request that was made after the last change of its pause."""
    event = CrawlEvent(kind=kind, host=HOST, time=0, version=site.slowed_at + 1, **more)
    return after_answer(site, event, pause, 0, site.slowed_at + 1)


def test_pause_doubles_with_overload_and_returns_by_halves() -> None:
    """Each 503 doubles the pause, up to a minute; each other answer halves it, down to that of the settings."""
    site, pauses = HostState(), []
    for kind in ["failed"] * 8 + ["fetched"] * 7:
        site = answered(site, kind, status=503 if kind == "failed" else 0, latency=5)
        pauses.append(pause_of(site, 1_000))
    assert pauses[:8] == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert pauses[8:] == [30_000, 15_000, 7_500, 3_750, 1_875, 1_000, 1_000]


def test_pause_doubles_once_for_requests_under_way() -> None:
    """Requests that were made before the pause doubled do not double it again when they fail too."""
    site = HostState()
    for version in range(1, 9):
        event = CrawlEvent(kind="failed", host=HOST, time=0, version=version, status=503)
        site = after_answer(site, event, 1_000, 0, 8)
    assert (site.slowed, site.next_allowed) == (2_000, 2_000)


def test_overload_holds_host() -> None:
    """429, 503 and Retry-After hold the host for the wait, at least for the doubled pause; other failures do not."""
    held = [
        answered(HostState(), "failed", **more).next_allowed
        for more in ({"status": 429}, {"status": 503, "wait": 9_000}, {"status": 500, "wait": 700}, {"status": 500}, {})
    ]
    assert held == [2_000, 9_000, 700, 0, 0]
    assert answered(HostState(), "failed", 0, status=429).slowed == 500
    assert answered(HostState(next_allowed=99_000), "failed", status=429).next_allowed == 99_000


def test_slow_answers_double_pause_until_usual() -> None:
    """Answers that take twice the usual time double the pause; short ones never do; a server that stays slow becomes usual."""
    site = HostState()
    for _ in range(20):
        site = answered(site, "fetched", latency=100)
    assert answered(site, "fetched", latency=400).slowed == 0
    pauses = []
    for _ in range(20):
        site = answered(site, "fetched", latency=1_000)
        pauses.append(pause_of(site, 1_000))
    assert (pauses[0], pauses[1], pauses[2], pauses[-1]) == (1_000, 2_000, 4_000, 1_000)
    assert answered(site, "deferred", wait=5).slowed == site.slowed
    assert answered(HostState(usual=100, slow=1), "fetched", 20_000, latency=2_000).slowed == 0
    assert answered(HostState(usual=100, slow=1), "fetched", 20_000, latency=3_000).slowed == 40_000


def test_single_slow_answer_changes_no_pause() -> None:
    """One slow answer between others may be a stall of this process: it neither doubles the pause nor halves it."""
    site = HostState(usual=100, slowed=8_000)
    slow = answered(site, "fetched", latency=3_000)
    assert pause_of(slow, 1_000) == 8_000
    assert pause_of(answered(slow, "fetched", latency=100), 1_000) == 4_000
    site = HostState(usual=100)
    for latency in (3_000, 100, 3_000, 100, 3_000):
        site = answered(site, "fetched", latency=latency)
        assert pause_of(site, 1_000) == 1_000


def test_host_is_held_through_restart_and_woken() -> None:
    """After a 429 no URL of the host is requested, whatever comes, until the wait is over; the queue is kept."""
    partition = Partition()
    first, second, *_ = partition.seed(20)
    assert not partition.give("failed", url=first.url, version=first.version, status=429, wait=30_000, retryable=True)
    assert not partition.give("fetched", url=second.url, version=second.version, time=100)
    root = Root(url=f"{HOST}/", run="1", urls=0)
    assert not partition.give("discovered", url=root.url, root=root, links=(Link(url=f"{HOST}/new", kind="page"),))
    restore(partition.rows)
    tick = list(frontier(partition.rows, Tick(time=30_001), Origin("crawl.ticks", 0, 1), partition.settings))
    assert len([each for each in tick if isinstance(each, FetchRequest)]) == 2


def test_long_hold_leaves_queue_for_later() -> None:
    """A host that asks for an hour keeps its queue: what the edge returns is queued again, and the run does not wait for it."""
    partition = Partition()
    first, second, *_ = partition.seed(3)
    partition.give("failed", url=first.url, version=first.version, status=503, wait=3_600_000, retryable=True)
    assert not partition.give("deferred", url=second.url, version=second.version, wait=3_600_000)
    known = {known.url: known.state for _, _, known in Table(partition.rows).all()}
    assert (known[first.url], known[second.url]) == ("failed", "queued")
    partition.give("fetched", url=f"{HOST}/1", version=_version(partition, f"{HOST}/1"))
    assert not outstanding(partition.rows, 60_000)
    assert outstanding(partition.rows, 3_600_001)


def _version(partition: Partition, url: str) -> int:
    return next(known.version for _, _, known in Table(partition.rows).all() if known.url == url)


def test_robots_row_is_not_rewritten_at_answers() -> None:
    """robots.txt has a row of its own, and the host's row stays small."""
    partition = Partition()
    partition.seed(3, ROBOTS * 1_000)
    partition.rows.journal.clear()
    partition.give("deferred", url=f"{HOST}/0", version=0)
    assert Table(partition.rows).robots(HOST, Table(partition.rows).host(HOST)) == ROBOTS * 1_000
    assert len(partition.rows.get(b"s|" + HOST.encode()) or b"") < 200
    assert not [key for key, _ in partition.rows.journal if key.startswith(b"h|")]


def test_robots_in_row_of_earlier_version_is_read_and_moved() -> None:
    """A host's row of an earlier version, with robots.txt in it, decodes; the next write moves robots.txt to its own row."""
    rows = MemoryRows()
    table = Table(rows)
    rows.put(b"s|" + HOST.encode(), msgspec.msgpack.encode([ROBOTS, 9, "192.0.2.1", -1, [b"1" * 16], 5]))
    site = table.host(HOST)
    assert (table.robots(HOST, site), site.next_allowed, site.slowed) == (ROBOTS, 5, 0)
    table.put_host(HOST, site)
    assert (table.host(HOST).robots, table.robots(HOST, table.host(HOST))) == (b"", ROBOTS)


def test_empty_robots_replaces_former_one() -> None:
    """A host that no longer has a robots.txt allows all again."""
    partition = Partition(robots_ttl=10)
    assert len(partition.seed(3, b"User-agent: *\nDisallow: /\n")) == 0
    root = Root(url=f"{HOST}/", run="2", urls=0)
    partition.give("seeded", time=100, url=root.url, root=root, links=(Link(url=root.url, kind="page"),))
    made = partition.give(
        "resolved", time=100, version=Table(partition.rows).host(HOST).asking, robots=b"", addresses=("192.0.2.1",)
    )
    assert [each.url for each in made if isinstance(each, FetchRequest)] == [f"{HOST}/{page}" for page in ("", "0", "1")]


def test_start_of_a_run_reads_only_rows_of_its_root() -> None:
    """The start of a run reads no URL of other roots."""
    partition = Partition()
    partition.seed(50)
    read: list[bytes] = []

    class Watched(MemoryRows):
        def get(self, key: bytes) -> bytes | None:
            read.append(key)
            return super().get(key)

        def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Any:
            read.extend(key for key, _ in super().scan(prefix, after, limit))
            return super().scan(prefix, after, limit)

    watched = Watched()
    watched.rows = partition.rows.rows
    partition.rows = watched
    other = Root(url="http://b.test/", run="1", urls=0)
    partition.give("seeded", "http://b.test", url=other.url, root=other, links=(Link(url=other.url, kind="page"),))
    assert not [key for key in read if HOST.encode() in key]


def test_index_of_earlier_version_is_built_at_first_use() -> None:
    """Without the mark of a complete index, it is built from the rows of URLs; with it, it equals a rebuilt one."""
    partition = Partition()
    partition.seed(5)
    table = Table(partition.rows)
    before = list(table.urls_of_root(f"{HOST}/"))
    assert len(before) == 5
    for key, _ in list(partition.rows.scan(root_index.PREFIX)):
        partition.rows.delete(key)
    assert list(table.urls_of_root(f"{HOST}/")) == before
    derived = {key for prefix in DERIVED for key, _ in partition.rows.scan(prefix)}
    restore(partition.rows)
    assert {key for prefix in DERIVED for key, _ in partition.rows.scan(prefix)} == derived


def test_run_of_a_large_root_begins_in_parts() -> None:
    """One event requests a part of a root's URLs; ticks request the rest, and until then the run is not finished."""
    partition = Partition(part=4)
    for each in partition.seed(8):
        partition.give("fetched", url=each.url, version=each.version)
    root = Root(url=f"{HOST}/", run="2", urls=0)
    partition.give("seeded", time=100, url=root.url, root=root, links=(Link(url=root.url, kind="page"),))
    table = Table(partition.rows)
    runs = [sum(known.run == "2" for _, _, known in table.all())]
    while table.next_due() is not None and (table.next_due() or 0) <= 100:
        assert outstanding(partition.rows, 100)
        tick = Origin("crawl.ticks", 0, len(runs))
        list(frontier(partition.rows, Tick(time=100), tick, partition.settings))
        runs.append(sum(known.run == "2" for _, _, known in table.all()))
    # The first part requests the root itself too, wherever it comes in the order.
    assert runs[0] in (4, 5)
    assert runs[-1] == 8
    assert len(runs) == 2 or runs[1] == 8


def test_root_whose_url_begins_another_has_own_urls() -> None:
    """Roots whose URLs have the same beginning do not share rows."""
    rows = MemoryRows()
    for root in ("http://a.test/", "http://a.test/b"):
        root_index.add(rows, root, frontier_key(root), root.encode()[-1:] * 16)
    assert [digest for _, digest in root_index.urls_of(rows, "http://a.test/")] == [b"/" * 16]


def test_run_does_not_wait_for_the_queue_of_an_ended_root() -> None:
    """What is left in the queue of a host whose URLs have ended keeps no run from its end."""
    partition = Partition()
    partition.seed(20)
    assert outstanding(partition.rows, 100)
    partition.give("unseeded", url=f"{HOST}/", root=Root(url=f"{HOST}/", run="2"))
    assert not outstanding(partition.rows, 100)
