"""The whole topology on a real Kafka, over a tree that changes, while one of its workers is killed every few seconds.

The size is a knob: `Plan`. After each round summaries, the Broker's archive and the roles are what a plain walk of the tree says.
As a program it is the large one: python -m tests.distributed.farm FOLDER BROKER [name=value...], the fields of `Plan`.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from processors.identity import file_url
from schemas.records import FetchedObject, FetchRequest, Removed, Root, Summary
from streams.clock import now_ms
from streams.embedded.seeding import seeded
from streams.kafka import worker
from tests.distributed.conftest import Broker
from tests.distributed.flows import TOPOLOGY, Flow
from tests.distributed.station import Station
from tests.faults.check import ALONE, same
from tests.faults.corpus import Corpus
from tests.faults.harness import GATHERER, MAX_FILE
from tests.faults.oracle import Oracle
from tests.servers.fixtures import Topics

RUN = [stage.name for stage in TOPOLOGY.stages if worker.kind(stage) != "sink"]


class Plan(msgspec.Struct, frozen=True):
    """How large, how long, how rough."""

    partitions: int = 12
    workers: int = 3
    """Of each stage."""
    objects: int = 20_000
    rounds: int = 3
    every: float = 3.0
    """Seconds between two kills, about; 0: none."""
    kills: int = 100
    """In each round, at the most."""
    seed: int = 1
    session: float = 6.0


class Report(NamedTuple):
    """What it cost."""

    killed: Counter[str]
    ended: Counter[str]
    """Workers that ended themselves."""
    repeated: Counter[str]
    """Records that say again what one before them said, by topic."""
    seconds: float


class Farm(Flow):
    """Workers of all stages over a tree."""

    def __init__(self, broker: Broker, root: Path, folder: Path, plan: Plan) -> None:
        super().__init__(broker, root, folder, plan.partitions, {}, RUN)
        self.plan = plan
        self.rng = random.Random(plan.seed)
        self.fatal = 0
        """Kills left in this round."""
        self.next = 0.0
        (folder / "tree").mkdir()
        self.corpus = Corpus(os.fsencode(folder / "tree"), plan.seed, plan.objects)
        self.corpus.build()
        self.oracle = Oracle(self.corpus.root, MAX_FILE)

    def station(self, name: str) -> None:
        """Start a worker: STAGE or STAGE/NUMBER."""
        stage, _, _ = name.partition("/")
        told = Station(self.broker.address, self.prefix, str(self.folder / "data"), GATHERER, MAX_FILE, self.plan.session)
        self.workers[name] = self.run("-m", "tests.distributed.station", stage, msgspec.json.encode(told).decode())

    def watch(self) -> None:
        """Kill one now and then, and start again what has ended."""
        if self.fatal and self.plan.every and time.monotonic() >= self.next:
            self.next = time.monotonic() + self.rng.uniform(0.5, 1.5) * self.plan.every
            self.fatal -= 1
            name = self.rng.choice(sorted(self.workers))
            self.workers[name].kill()
            self.workers[name].wait()
            self.killed[name.partition("/")[0]] += 1
            self.station(name)
        for name, process in list(self.workers.items()):
            code = process.poll()
            if code is not None:
                assert code == 1, (name, code)
                self.ended[name.partition("/")[0]] += 1
                self.station(name)

    def play(self) -> Report:
        """All rounds. Raises AssertionError where one does not end as it must."""
        began = time.monotonic()
        for stage in self.stages:
            for number in range(self.plan.workers):
                self.station(f"{stage}/{number}")
        root = Root(url=file_url(self.corpus.root, folder=True), run="", depth=-1, urls=0)
        for number in range(self.plan.rounds):
            self.oracle.look()
            named = msgspec.structs.replace(root, run=f"{number:013d}")
            for partition, event in seeded(named, self.partitions, now_ms()):
                self.send("crawl", event, partition)
            self.fatal, self.next = self.plan.kills, time.monotonic() + 2 * self.plan.every
            self.rest()
            self.check()
            self.corpus.disturb()
        return Report(self.killed, self.ended, Counter(dict(self._repeated())), time.monotonic() - began)

    def check(self) -> None:
        """Summaries, archive and roles are what the tree holds."""
        things, roles = self.oracle.things(), self.oracle.roles(GATHERER)
        bytes_of = {url: ("", -1) if t.md5 == "" else (t.md5, t.size) for url, t in things.items()}
        for topic in ("summaries", "broker.main"):
            held = self.held(topic)
            told = {url: ("", -1) if bytes_of.get(url) == ("", -1) else (s.md5, s.size) for url, s in held.items()}
            same(topic, told, bytes_of)
        told_roles = {url: (s.copy_of, s.copies, s.copies_count) for url, s in self.held("broker.main").items()}
        same("roles", told_roles, {url: roles.get(url, ALONE) for url in things})

    def held(self, topic: str) -> dict[str, Summary]:
        """What a compacted topic comes to, by URL, for who heeds counters."""
        latest: dict[str, Summary | Removed] = {}
        for _, record in self.records[topic]:
            one = cast("Summary | Removed", record)
            if one.oid not in latest or (one.version, one.published) >= (latest[one.oid].version, latest[one.oid].published):
                latest[one.oid] = one
        return {one.url: one for one in latest.values() if isinstance(one, Summary)}

    def _repeated(self) -> Iterator[tuple[str, int]]:
        kinds: dict[str, Any] = {"fetches": FetchRequest, "objects": FetchedObject, "summaries": Summary, "broker.main": Summary}
        for topic, kind in kinds.items():
            seen: Counter[Any] = Counter()
            for _, record in self.records[topic]:
                if isinstance(record, kind):
                    seen[record.url, record.version, getattr(record, "published", 0)] += 1
            yield topic, sum(seen.values()) - len(seen)


def main(folder: str, address: str, *knobs: str) -> None:
    """Play, and say what it cost."""
    plan = msgspec.convert(dict(knob.split("=") for knob in knobs), Plan, strict=False)
    topics = Topics(address)
    farm = Farm(Broker(address, topics), Path(__file__).resolve().parents[2], Path(folder), plan)
    try:
        print(plan, farm.play(), sep="\n")
    finally:
        farm.close()
        topics.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
