"""Several Brokers over one gathering, over each other and over a collected stream, from many seeds, with crashes."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from msgspec.structs import replace

from processors.broker import register
from processors.broker.definition import Broker
from schemas.ports import Origin
from schemas.records import Removed, Summary, Tick
from streams.simulator import MemoryRows
from tests.streams.topology.broker_worlds import FAR, Gathered, archive, check, published, rest, simulator, summary

WHALES = Broker("whales", query="whale")
BRIEF = Broker("brief", ttl=600)
BOTH = Broker("both", query="squid OR whale", sources=("broker:brief", "broker:whales", FAR))
BROKERS = (Broker(), WHALES, BRIEF, BOTH)
SEEDS = range(25)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_brokers_hold_what_their_sources_give(seed: int, partitions: int) -> None:
    """Each Broker holds in the end what its sources hold and its query accepts, whatever the order and the crashes."""
    rng = random.Random(seed)
    sim = simulator(BROKERS, seed, partitions)
    gathered = Gathered(sim, rng)
    for _ in range(6):
        gathered.change(6)
        sim.step(rng.randrange(40), crashes=sim.crashes + 4)
        sim.now += rng.choice((0, 0, 200_000, 700_000))
    rest(sim, crashes=8)
    check(sim, BROKERS, gathered.held)


@pytest.mark.parametrize("seed", SEEDS)
def test_publish_counters_rise(seed: int) -> None:
    """Without a crash, the counters of the records of an OID rise in every Broker's archive."""
    sim = simulator(BROKERS, seed, 4)
    gathered = Gathered(sim, random.Random(seed))
    for _ in range(5):
        gathered.change(8)
        sim.step(60)
        sim.now += 300_000
    rest(sim)
    for defined in BROKERS:
        counters: dict[str, list[int]] = {}
        for _, one in sim.records(f"broker.{defined.name}"):
            counters.setdefault(one.oid, []).append(one.published)  # type: ignore[attr-defined]
        assert all(a < b for told in counters.values() for a, b in pairwise(told)), defined.name


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_expires_that_was_confirmed_in_time(seed: int) -> None:
    """What is confirmed again before its time-to-live has passed is never removed, though ticks come late and in crashes."""
    rng = random.Random(seed)
    sim = simulator((BRIEF,), seed, 4)
    gathered = Gathered(sim, rng)
    gathered.change(30)
    rest(sim)
    for _ in range(5):
        sim.now += 400_000
        for oid, one in list(gathered.held.items()):
            gathered.held[oid] = replace(one, time=sim.now)
            sim.send("summaries", gathered.held[oid])
        rest(sim, crashes=4)
    assert not [one for _, one in sim.records("broker.brief") if isinstance(one, Removed) and one.reason == "expired"]
    sim.now += 601_000
    rest(sim)
    assert {one.reason for one in archive(sim, "brief").values()} <= {"expired", "gone"}  # type: ignore[union-attr]


def test_ticks_that_are_not_committed_yet_repeat_nothing_until_one_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tick publishes its own removals, however late offsets are committed; the first that comes again repeats all of them."""
    monkeypatch.setattr(register, "CHUNK", 2)
    rows, plan = MemoryRows(), register.Plan.of(BRIEF)

    def publish(record: Summary | Tick, topic: str, offset: int) -> list[str]:
        made = list(register.register(rows, record, Origin(topic, 0, offset, 0), plan))
        return sorted(one.oid for one in made if isinstance(one, Removed))

    for number in range(6):
        publish(summary(f"o{number}", f"{FAR}/{number}", 1, 1_000, f"w{number}"), "summaries", number)
    told = [publish(Tick(time=1_000_000), "register.brief.ticks", offset) for offset in range(3)]
    assert told == [["o0", "o1"], ["o2", "o3"], ["o4", "o5"]]
    again = [publish(Tick(time=1_000_000), "register.brief.ticks", offset) for offset in range(3)]
    assert again == [sorted(f"o{number}" for number in range(6)), [], []]


CHANGES = {
    "narrower": (Broker("main", "whale OR squid"), Broker("main", "squid")),
    "wider": (Broker("main", "squid"), Broker("main", "")),
    "removed source": (Broker(sources=("broker:whales", "summaries")), Broker(sources=("broker:whales",))),
    "added source": (Broker(sources=("broker:whales",)), Broker(sources=("broker:whales", FAR))),
    "url instead": (Broker(), Broker(sources=(FAR,))),
}


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(12))
def test_changed_broker_ends_as_one_that_was_always_so(seed: int, change: str, partitions: int) -> None:
    """A definition that changes in mid-stream, with crashes, ends as if it had always been so."""
    rng = random.Random(seed)
    before, after = ((WHALES, one) for one in CHANGES[change])
    sim = simulator(before, seed, partitions)
    gathered = Gathered(sim, rng)
    for brokers in (before, after, before, after):
        sim.redefine(simulator(brokers, seed, 1).topology)
        gathered.change(10)
        sim.step(rng.randrange(12), crashes=sim.crashes + 3)
    rest(sim, crashes=6)
    check(sim, after, gathered.held)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(12))
def test_changed_broker_publishes_only_what_changes(seed: int, change: str) -> None:
    """After a change, what comes, goes or gets another role is published again, and nothing else."""
    before, after = ((WHALES, one) for one in CHANGES[change])
    sim = simulator(before, seed, 4)
    gathered = Gathered(sim, random.Random(seed))
    gathered.change(40)
    rest(sim)
    old = archive(sim, "main")
    sim.redefine(simulator(after, seed, 1).topology)
    rest(sim)
    check(sim, after, gathered.held)
    new = archive(sim, "main")
    for oid, one in new.items():
        was = old.get(oid)
        if was is not None and replace(was, published=0) == replace(one, published=0):
            roles = {(r.copy_of, r.copies) for _, r in sim.records("broker.main") if isinstance(r, Summary) and r.oid == oid}
            assert one.published == was.published or len(roles) > 1, oid
    assert published(sim, "main") or change == "url instead"
