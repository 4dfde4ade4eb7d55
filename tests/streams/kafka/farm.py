"""The whole topology on a real Kafka and a real OpenSearch, over a changing tree, under every kind of failure.

Workers are killed all the time. Once in a run, undecodable records are appended to each topic, the broker and the OpenSearch node
are restarted, and one more worker of each stage joins and leaves. At the end of each round, summaries, the Broker's archive, the
roles, the index and the rejections must equal the result of a plain walk of the tree; so must, at the very end, the compacted
topics and an index rebuilt from them.

`Plan` sets the size. Run as a program, it is the large one: python -m tests.streams.kafka.farm [name=value...], with the fields of
`Plan`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
from confluent_kafka import ConsumerGroupState, KafkaException
from typer.testing import CliRunner

from processors.identity import file_url
from schemas.records import Root
from sinks.index.opensearch.aliases import served_by
from sinks.index.opensearch.node import Node
from streams.cli.app import app
from streams.clock import now_ms
from streams.kafka.client.cluster import Cluster
from streams.operations.roots import seeded
from tests.faults.corpus import Corpus
from tests.faults.harness import GATHERER, MAX_FILE
from tests.faults.oracle import Oracle
from tests.servers.fixtures import Topics
from tests.streams.kafka import verdict
from tests.streams.kafka.compaction import compact
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import Flow
from tests.streams.kafka.own import Servers, servers
from tests.streams.kafka.repeats import Fault, Repeats, repeats
from tests.streams.kafka.secured import allow
from tests.streams.kafka.standing import TOPOLOGY, inputs
from tests.streams.kafka.station import Station

RUN = [stage.name for stage in TOPOLOGY.stages]
ARCHIVES = ("summaries", "broker.main")
IDLE = 5.0
"""Seconds after which the next fault is injected although nothing has moved since the last one."""
GRACE = 240.0
"""Seconds that a worker has to leave in order."""
LATE = 2.0
"""Seconds by which a broker may be late in ending a session."""


class Plan(msgspec.Struct, frozen=True):
    """Size, duration and faults of a run."""

    partitions: int = 12
    workers: int = 3
    """Workers of each stage."""
    objects: int = 20_000
    rounds: int = 3
    every: float = 3.0
    """Mean number of seconds between two faults."""
    kills: int = 100
    """Workers killed in each round."""
    seed: int = 1
    session: float = 6.0
    commit: float = 0.3
    operators: bool = False
    """Whether the cluster has TLS, logins and ACLs, bodies are in object storage, and each worker has a folder of its own."""


class Report(NamedTuple):
    """Faults, repeated records and duration of a run."""

    faults: Counter[str]
    """Injected faults, by kind."""
    killed: Counter[str]
    ended: Counter[str]
    """Workers that ended themselves, by stage."""
    repeats: Sequence[Repeats]
    compacted: dict[str, tuple[int, int]]
    """Number of records of each compacted topic, before and after."""
    seconds: float

    def __str__(self) -> str:
        lines = [f"faults   {dict(self.faults)}", f"killed   {dict(self.killed)}", f"ended    {dict(self.ended)}"]
        lines += [f"repeats  {r.name}: {r.repeated} of {r.records}, {r.faults} faults, at most {r.most}" for r in self.repeats]
        lines += [f"compact  {topic}: {before} -> {after}" for topic, (before, after) in self.compacted.items()]
        return "\n".join([*lines, f"seconds  {self.seconds:.0f}"])


class Farm(Flow):
    """Workers of all stages over a tree, on servers of their own."""

    def __init__(self, servers: Servers, root: Path, folder: Path, plan: Plan) -> None:
        kafka, search = servers.kafka, servers.search
        broker = Broker(kafka.address, Topics(kafka.address))
        compacted = {topic: {"cleanup.policy": "compact"} for topic in ARCHIVES}
        super().__init__(broker, root, folder, plan.partitions, {}, RUN, compacted)
        self.kafka, self.search, self.objects, self.plan = kafka, search, servers.objects, plan
        self.config, self.defended = "", servers.cluster
        if servers.cluster is not None:
            allow(kafka.address, self.prefix, TOPOLOGY)
            (folder / "harvest.toml").write_text(servers.cluster.toml(self.prefix, "harvest"), "utf-8")
            self.config = str(folder / "harvest.toml")
        self.cluster = Cluster(kafka.address, self.prefix, plan.partitions)
        self.rng = random.Random(plan.seed)
        self.todo: list[Callable[[], None]] = []
        """Faults yet to be injected in this round."""
        self.started = 0.0
        """Time of the last start of a worker or of the broker."""
        self.struck = self.next = 0.0
        """Time of the last fault, and the earliest time of the next one."""
        self.faults: Counter[str] = Counter()
        self.befell: list[Fault] = []
        """Faults by stage and time."""
        self.looked = now_ms()
        """Time at which all workers were last found running or were restarted (ms since the epoch)."""
        (folder / "tree").mkdir()
        self.corpus = Corpus(os.fsencode(folder / "tree"), plan.seed, plan.objects)
        self.corpus.build()
        self.oracle = Oracle(self.corpus.root, MAX_FILE)

    # ---- workers -------------------------------------------------------------------------------------------------

    def station(self, name: str) -> None:
        """Start a worker; `name` is STAGE/NUMBER."""
        plan, own = self.plan, name.replace("/", "-") if self.config else "data"
        told = Station(
            self.broker.address,
            self.prefix,
            str(self.folder / own),
            GATHERER,
            MAX_FILE,
            plan.session,
            plan.commit,
            index_url=self.search.address,
            config=self.config,
        )
        stage = stage_of(name)
        self.expect(name, TOPOLOGY.stage(stage))
        self.workers[name] = self.run("-m", "tests.streams.kafka.station", stage, msgspec.json.encode(told).decode())
        self.started = time.monotonic()

    def revive(self) -> None:
        """Restart the workers that ended themselves."""
        for name, process in list(self.workers.items()):
            code = process.poll()
            if code is not None:
                assert code == 1, (name, code)
                self.ended[stage_of(name)] += 1
                self.shaken([stage_of(name)], self.looked)
                self.station(name)
        self.looked = now_ms()

    def shaken(self, stages: Iterable[str], began: int) -> None:
        """Record a fault of these stages: within one session their groups have dropped killed members and are in order again."""
        over = now_ms() + int((self.plan.session + LATE) * 1_000)
        self.befell += [Fault(stage, began, over) for stage in stages]

    def watch(self) -> None:
        """Restart the workers that ended, and inject the next fault if it is due."""
        self.revive()
        now = time.monotonic()
        # A fault is to hit work in progress, unless everything waits because of the last fault.
        if self.todo and now >= self.next and (self.moved > self.struck or now - self.struck > IDLE):
            fault = self.todo.pop(0)
            fault()
            self.faults[fault.__name__] += 1
            # The fault may have taken a while in which nothing was read: the quiet period begins anew.
            self.moved = self.struck = time.monotonic()
            self.next = self.struck + self.rng.uniform(0.5, 1.5) * self.plan.every

    def end(self, names: Sequence[str]) -> None:
        """Make workers leave in order, once all groups are complete."""
        self.moved = self.said = time.monotonic()
        # Until its session is over, a killed worker still counts as a member of its group; its replacement may not have joined yet.
        while time.monotonic() - self.started <= self.plan.session + LATE or not all(self.gathered(stage) for stage in RUN):
            self.revive()
            self.read()
            self.tell()
        leaving = now_ms()
        for name in names:
            self.workers[name].send_signal(signal.SIGTERM)
        codes = {name: self.workers.pop(name).wait(GRACE) for name in names}
        for name in names:
            self.coming.pop(name, None)
        # A worker that slept longer than its session, on a busy machine, has ended itself before it could leave.
        assert set(codes.values()) <= {0, 1}, codes
        self.ended.update(stage_of(name) for name, code in codes.items() if code)
        self.shaken([stage_of(name) for name in names], leaving)

    def gathered(self, stage: str) -> bool:
        """Whether the group of a stage has all its workers as members, no others, and partitions for each."""
        try:
            state, shares = self.standing.shares(stage)
        except KafkaException:
            return False
        workers = sum(stage_of(name) == stage for name in self.workers)
        return state == ConsumerGroupState.STABLE and len(shares) == workers and all(shares)

    # ---- faults --------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill a worker and restart it."""
        name = self.rng.choice(sorted(self.workers))
        began = now_ms()
        self.workers[name].kill()
        self.workers[name].wait()
        self.killed[stage_of(name)] += 1
        self.shaken([stage_of(name)], began)
        self.station(name)

    def poison(self) -> None:
        """Append an undecodable record to each topic that a stage reads."""
        for name in {topic.name for stage in TOPOLOGY.stages for topic in inputs(stage)}:
            self.junk(name, self.rng.randrange(self.partitions))

    def restart_broker(self) -> None:
        """Restart the broker, while each worker has commits in flight."""
        began = now_ms()
        self.kafka.restart()
        # The broker starts the sessions of all members anew, those of killed members too.
        self.started = time.monotonic()
        self.shaken([stage_of(name) for name in self.workers], began)

    def restart_search(self) -> None:
        """Restart OpenSearch."""
        self.search.restart()

    def restart_objects(self) -> None:
        """Restart the object storage."""
        if self.objects is not None:
            self.objects.restart()

    def join(self) -> None:
        """Start one more worker of each stage."""
        began = now_ms()
        for stage in RUN:
            self.station(f"{stage}/{self.plan.workers}")
        self.shaken(RUN, began)

    def leave(self) -> None:
        """Stop the workers that `join` started."""
        self.end([f"{stage}/{self.plan.workers}" for stage in RUN])

    def planned(self, number: int) -> list[Callable[[], None]]:
        """The faults of a round, with kills at random places between the others."""
        others: list[Callable[[], None]] = [self.poison, self.restart_broker] if number == 0 else []
        others += [self.restart_objects] if self.objects is not None else []
        others += [self.restart_search, self.join, self.leave] if number == self.plan.rounds - 1 else []
        placed = [((at + 0.5) / len(others), other) for at, other in enumerate(others)]
        placed += [(self.rng.random(), self.kill) for _ in range(self.plan.kills)]
        return [fault for _, fault in sorted(placed, key=lambda pair: pair[0])]

    # ---- the play ------------------------------------------------------------------------------------------------

    def play(self) -> Report:
        """Run all rounds, then compaction and rebuild. Raises AssertionError if a round ends in a wrong state."""
        began = time.monotonic()
        for stage in self.stages:
            for number in range(self.plan.workers):
                self.station(f"{stage}/{number}")
        root = Root(url=file_url(self.corpus.root, folder=True), run="", depth=-1, urls=0)
        for number in range(self.plan.rounds):
            if number:
                self.corpus.disturb()
            self.oracle.look()
            named = msgspec.structs.replace(root, run=f"{number:013d}")
            for partition, event in seeded(named, self.partitions, now_ms()):
                self.send("crawl", event, partition)
            self.todo = self.planned(number)
            self.rest()
            self.check()
        found = list(repeats(self.records, self.times, self.befell, self.plan.commit))
        self.end(list(self.workers))
        compacted = {topic: compact(self.cluster, topic) for topic in ARCHIVES}
        self.rebuild()
        return Report(self.faults, self.killed, self.ended, found, compacted, time.monotonic() - began)

    def bodies(self) -> list[str]:
        """The objects in the storage of bodies, if there is one."""
        return self.defended.buckets.keys(self.defended.bucket) if self.defended is not None else []

    def leaks(self) -> list[str]:
        """What the workers have written with a secret in it."""
        texts = [(self.folder / name).read_text("utf-8", "replace") for name in ("workers.log", "workers.out")]
        return self.defended.leaked(texts) if self.defended is not None else []

    def rest(self) -> None:
        """Wait until nothing moves any more and all faults of the round were injected."""
        self.struck = time.monotonic()
        super().rest()
        while self.todo:
            super().rest()

    def check(self) -> None:
        """Check that archives, index and dead letters equal the content of the tree."""
        summaries, broker = (verdict.latest(record for _, record in self.records[topic]) for topic in ARCHIVES)
        verdict.archives(self.oracle, summaries, broker)
        verdict.indexed(self.search.address, "harvest-main", broker)
        verdict.rejections(self.cluster, self.oracle, summaries)
        told = [(record, headers) for (_, record), headers in zip(self.records["rejected"], self.headers["rejected"], strict=True)]
        verdict.letters(told, self.junked)

    def rebuild(self) -> None:
        """Check that the compacted archives, and an index rebuilt from them, equal the content of the tree."""
        summaries, broker = (verdict.latest(verdict.anew(self.cluster, topic)) for topic in ARCHIVES)
        verdict.archives(self.oracle, summaries, broker)
        with closing(Node(self.search.address)) as node:
            before = served_by(node, "harvest-main")
            told = {"KAFKA_BROKERS": self.cluster.brokers, "KAFKA_PREFIX": self.prefix, "INDEX_URL": self.search.address}
            environment: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HARVEST_")}
            environment |= {f"HARVEST_{name}": value for name, value in told.items()}
            result = CliRunner(env=environment).invoke(app, ["index", "rebuild"])
            assert result.exit_code == 0, (result.output, result.exception)
            assert served_by(node, "harvest-main") != before
        verdict.indexed(self.search.address, "harvest-main", broker)


def stage_of(name: str) -> str:
    """The stage of a worker named STAGE/NUMBER."""
    return name.partition("/")[0]


def main(*knobs: str) -> None:
    """Run the farm and print its report."""
    plan = msgspec.convert(dict(knob.split("=") for knob in knobs), Plan, strict=False)
    with TemporaryDirectory(prefix="harvest-farm-") as folder, servers(operators=plan.operators) as found:
        farm = Farm(found, Path(__file__).resolve().parents[3], Path(folder), plan)
        try:
            print(plan, farm.play(), sep="\n")
            print(f"bodies   {len(farm.bodies())}", f"leaks    {farm.leaks()}", sep="\n")
        finally:
            farm.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
