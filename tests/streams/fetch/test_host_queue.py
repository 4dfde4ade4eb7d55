"""The queue of requests by host: the heap of next free times."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from streams.fetch.host_queue import Entry, HostQueue
from streams.fetch.pace import Pace


class Exchanges:
    """A simulated edge: each request takes `takes` seconds, inside the slots of the pace."""

    def __init__(self, pause: float, patience: float = 10.0, takes: float = 0.1) -> None:
        self.now = 100.0
        self.takes = takes
        self.pace = Pace(pause, lambda: self.now)
        self.queue: HostQueue[int] = HostQueue(self.pace, patience)
        self.begun: list[tuple[float, Entry[int]]] = []
        self.ends: list[tuple[float, Entry[int]]] = []
        self.late: list[tuple[int, float]] = []

    def add(self, number: int, host: str, address: str = "", pause: float = 0.0, *, resolve: bool = False) -> None:
        self.queue.add(Entry(number, host, address, pause, resolve))
        self.late += [(entry.item, wait) for entry, wait in self.queue.late()]

    def step(self) -> bool:
        """Begin what may begin now, then go on to the next end of an exchange or free host."""
        while (entry := self.queue.next()) is not None:
            self.begun.append((self.now, entry))
            self.ends.append((self.now + self.takes, entry))
        self.late += [(entry.item, wait) for entry, wait in self.queue.late()]
        times = [time for time, _ in self.ends] + ([self.queue.next_time() or 0.0] if self.queue.next_time() else [])
        if not times:
            return False
        self.now = max(self.now, min(times))
        for end in [end for end in self.ends if end[0] <= self.now]:
            self.ends.remove(end)
            self.end(end[1])
        return True

    def end(self, entry: Entry[int]) -> None:
        for key in (f"h {entry.host}", f"a {entry.address}" if entry.address else ""):
            if key:
                slot = self.pace._slots.get(key) or self.pace._new(key)
                slot.ended, slot.pause = self.now, max(entry.pause if key[0] == "h" else 0.0, self.pace.pause)
        self.queue.ended(entry)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until and self.step():
            pass


def test_all_hosts_are_at_work_at_once() -> None:
    """Of 500 hosts with a pause of five seconds and two requests each, all get one per pause, and none comes back."""
    edge = Exchanges(5.0)
    for n in range(1_000):
        edge.add(n, f"http://h{n % 500}", f"192.0.2.{n % 500}")
    edge.run(11)
    assert len({entry.host for time, entry in edge.begun if time < 105.1}) == 500
    assert (len(edge.begun), edge.late) == (1_000, [])


@pytest.mark.parametrize("seed", range(20))
def test_pauses_of_hosts_and_addresses_are_kept(seed: int) -> None:
    """Whatever comes when, one request of a host and of an address is under way, and pauses lie in between."""
    rng = random.Random(seed)
    edge, pauses = Exchanges(rng.choice([0.0, 1.0]), rng.choice([2.0, 50.0]), 0.3), {n: rng.choice([0.0, 2.5]) for n in range(12)}
    for n in range(200):
        host = rng.randrange(12)
        edge.add(n, f"http://h{host}", f"192.0.2.{host % 5}", pauses[host], resolve=not n % 9)
        edge.run(rng.choice([0.0, 0.0, 0.4]))
    edge.run(10_000)
    assert len(edge.begun) + len(edge.late) == 200
    assert len(edge.queue) == 0
    last: dict[str, float] = defaultdict(lambda: 100.0 - edge.takes)
    for time, entry in edge.begun:
        host_pause = max(edge.pace.pause, entry.pause)
        assert time >= last[entry.host] + edge.takes + host_pause - 1e-6
        assert time >= last[entry.address] + edge.takes + edge.pace.pause - 1e-6
        last[entry.host] = last[entry.address] = time


def test_request_beyond_patience_comes_back() -> None:
    """What would wait for longer than the patience is returned with its wait; a request to resolve is not."""
    edge = Exchanges(4.0)
    for n in range(3):
        edge.add(n, "http://a")
    edge.add(3, "http://a", resolve=True)
    assert edge.late == [(2, 12.0)]
    edge.run(100)
    assert [entry.item for _, entry in edge.begun] == [0, 1, 3]


def test_next_request_of_a_slow_host_is_kept() -> None:
    """A host whose pause exceeds the patience keeps its next request."""
    edge = Exchanges(1.0, patience=10.0)
    edge.add(0, "http://a", pause=20.0)
    edge.add(1, "http://a", pause=20.0)
    edge.run(5)
    edge.add(2, "http://b", pause=20.0)
    edge.run(50)
    assert [(time, entry.item) for time, entry in edge.begun] == [(120.0, 0), (120.0, 2)]
    assert edge.late == [(1, 40.0)]


def test_request_with_an_hour_to_wait_comes_back() -> None:
    """A request whose host was just requested with a pause of an hour is returned; after a start it waits for a minute."""
    edge = Exchanges(1.0)
    edge.add(0, "http://a", pause=3_600.0)
    edge.run(100)
    assert [(time, entry.item) for time, entry in edge.begun] == [(160.0, 0)]
    edge.add(1, "http://a", pause=3_600.0)
    assert [(item, round(wait)) for item, wait in edge.late] == [(1, 3_600)]
    edge.now += 3_595
    edge.add(2, "http://a", pause=3_600.0)
    edge.run(100)
    assert [entry.item for _, entry in edge.begun] == [0, 2]


def test_request_behind_a_longer_pause_is_kept() -> None:
    """The next request of a host whose last one had a longer pause, as after an overload, is not returned."""
    edge = Exchanges(1.0, patience=10.0)
    edge.add(0, "http://a", pause=40.0)
    edge.run(41)
    edge.add(1, "http://a", pause=20.0)
    edge.run(100)
    assert [(round(time, 1), entry.item) for time, entry in edge.begun] == [(140.0, 0), (180.1, 1)]
    assert edge.late == []


def test_held_host_returns_what_waits() -> None:
    """What waits for a host that asks for a long wait comes back at the end of the exchange; other hosts go on."""
    edge = Exchanges(1.0)
    for n in range(3):
        edge.add(n, "http://a")
    edge.add(3, "http://b")
    edge.now = 101.0
    assert (edge.queue.next() or edge.begun).item == 0  # type: ignore[union-attr]
    assert (edge.queue.next() or edge.begun).item == 3  # type: ignore[union-attr]
    edge.pace.hold("http://a", 100.0)
    edge.end(Entry(0, "http://a", "", 0.0))
    assert [(entry.item, round(wait)) for entry, wait in edge.queue.late()] == [(1, 100), (2, 100)]
    assert len(edge.queue) == 0


def test_host_without_requests_is_forgotten() -> None:
    """A host keeps no memory once its requests were answered, returned at once, or dropped."""
    edge = Exchanges(1.0)
    for n in range(3):
        edge.pace.hold(f"http://{n}", 100.0)
        edge.add(n, f"http://{n}")
    edge.add(3, "http://3")
    edge.run(10)
    assert (len(edge.late), len(edge.begun), dict(edge.queue._hosts)) == (3, 1, {})


def test_crowded_address_returns_hosts() -> None:
    """Of many hosts at one address, as many wait as the patience allows; each returns with a bounded wait."""
    edge = Exchanges(1.0)
    for n in range(500):
        edge.add(n, f"http://h{n}", "192.0.2.1")
    edge.run(60)
    assert len(edge.begun) == 11
    assert len(edge.late) == 489
    assert max(wait for _, wait in edge.late) <= 60


def test_dropped_requests_are_not_begun() -> None:
    """What was dropped is not begun, and frees its host and address for the rest."""
    edge = Exchanges(0.0)
    for n in range(40):
        edge.add(n, f"http://h{n % 20}", "192.0.2.1")
    edge.step()
    edge.queue.drop(lambda number: bool(number % 2))
    edge.run(100)
    assert sorted(entry.item for _, entry in edge.begun) == sorted({edge.begun[0][1].item, *range(1, 40, 2)})
