"""Summaries that come, change, are confirmed and go at random, for several Brokers; and what each Broker must hold in the end."""

from __future__ import annotations

import random
from typing import cast

from msgspec.structs import replace

from processors.broker.definition import Broker
from processors.broker.sources import Sources
from schemas.records import Removed, Summary
from streams.simulator import Simulator
from streams.topology.flow import TopologySettings, topology

NEAR, FAR = "http://near.test/", "http://far.test/brokers/far/soif"
WORDS = ("whale", "squid", "whale squid", "kelp")
Held = dict[str, Summary]


def simulator(brokers: tuple[Broker, ...], seed: int, partitions: int) -> Simulator:
    """A simulator of the Brokers, without edges: `summaries` is written from outside."""
    rng = random.Random(seed)
    return Simulator(topology(TopologySettings(brokers=brokers)), partitions, rng.randrange, lambda _, __: [], lambda _: [])


class Gathered:
    """The Gatherer's database: writes changes at random to `summaries`, and knows what it holds."""

    def __init__(self, sim: Simulator, rng: random.Random, number: int = 12) -> None:
        self.sim = sim
        self.rng = rng
        self.number = number
        self.version = 0
        self.held: Held = {}

    def change(self, times: int = 1) -> None:
        """Add, change, confirm or remove a summary, some times."""
        for _ in range(times):
            place = self.rng.randrange(self.number)
            oid, url = f"o{place}", f"{FAR}/{place}" if place % 3 == 0 else f"{NEAR}{place}"
            self.version += 1
            known = self.held.get(oid)
            kind = self.rng.randrange(5)
            if known is not None and kind == 0:
                del self.held[oid]
                self.sim.send("summaries", removed(known, self.version, self.sim.now))
                continue
            if known is not None and kind == 1:
                self.held[oid] = replace(known, time=self.sim.now)
            else:
                self.held[oid] = summary(oid, url, self.version, self.sim.now, self.rng.choice(WORDS))
            self.sim.send("summaries", self.held[oid])


def summary(oid: str, url: str, version: int, time: int, word: str) -> Summary:
    """A summary of an object that has a word as its text; equal words are equal contents."""
    digest = word.encode().hex().ljust(64, "0")
    return Summary(
        oid=oid,
        url=url,
        object_url=url,
        gatherer="g",
        version=version,
        time=time,
        type="Text",
        size=len(word),
        md5=digest[:32],
        sha256=digest,
        attributes={"title": (word,)},
    )


def removed(known: Summary, version: int, time: int) -> Removed:
    """The removal of a summary."""
    return Removed(oid=known.oid, url=known.url, object_url=known.object_url, version=version, time=time, reason="gone")


def expected(brokers: tuple[Broker, ...], gathered: Held, now: int) -> dict[str, Held]:
    """What each Broker must hold, by OID, without roles and counters; a Broker comes behind those that it is made from."""
    found: dict[str, Held] = {}
    for defined in brokers:
        sources, accepts = Sources.of(defined), defined.filter()
        best: Held = {}
        for source in sources.names:
            for oid, one in (found[source] if source else gathered).items():
                if not sources.counts(source, one) or (defined.ttl is not None and one.time + defined.ttl * 1000 <= now):
                    continue
                if oid not in best or one.version > best[oid].version:
                    best[oid] = replace(one, ttl=min(one.ttl, defined.ttl or one.ttl))
        found[defined.name] = {oid: one for oid, one in best.items() if accepts is None or accepts(one)}
    return found


def archive(sim: Simulator, broker: str) -> dict[str, Summary | Removed]:
    """The last record of each OID in a Broker's archive, as an index takes it: that of the highest counter."""
    latest: dict[str, Summary | Removed] = {}
    for _, one in sim.records(f"broker.{broker}"):
        made = cast("Summary | Removed", one)
        if made.oid not in latest or made.published >= latest[made.oid].published:
            latest[made.oid] = made
    return latest


def published(sim: Simulator, broker: str) -> Held:
    """What a Broker holds by its archive, without roles and counters."""
    found = archive(sim, broker)
    plain = {"published": 0, "copy_of": "", "copies": (), "copies_count": 0}
    return {oid: replace(one, **plain) for oid, one in found.items() if isinstance(one, Summary)}


def check(sim: Simulator, brokers: tuple[Broker, ...], gathered: Held) -> None:
    """Check what every Broker holds, that its copies are those of its own summaries, and that no two records share a counter."""
    due = expected(brokers, gathered, sim.now)
    for defined in brokers:
        assert published(sim, defined.name) == due[defined.name], defined.name
        check_roles(sim, defined.name)


def check_roles(sim: Simulator, broker: str) -> None:
    """Check that of equal contents one is canonical and counts the others."""
    families: dict[str, list[Summary]] = {}
    for one in archive(sim, broker).values():
        if isinstance(one, Summary):
            families.setdefault(one.content, []).append(one)
    for family in families.values():
        first, *others = sorted(family, key=lambda one: (len(one.url), one.url))
        assert (first.copy_of, first.copies_count) == ("", len(others)), (broker, first.url)
        assert all(one.copy_of == first.oid for one in others), broker


def rest(sim: Simulator, crashes: int = 0) -> None:
    """Run until nothing is left to do, with a tick for every stage at the end, as time goes on."""
    sim.run(crashes=sim.crashes + crashes)
    for _ in range(4):
        for task in sim.tasks:
            if task.stage.name.startswith("register."):
                sim.tick(task)
        sim.run(crashes=sim.crashes + crashes // 4)
