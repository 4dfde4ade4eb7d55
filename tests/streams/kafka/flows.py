"""The deciding stages on a real Kafka, one worker each, around a small world; the test itself answers for the edges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from schemas.codec import DecodeError, decode, encode
from schemas.records import FetchedObject, FetchRequest, Record, Rejected, Removed, Summary
from streams.clock import now_ms
from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.cluster import changelog_of
from streams.sandbox.seal import die_with
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import REJECTED, Edge, Stage, Topology
from streams.topology.routing import Router
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.standing import TOPOLOGY, Place, Standing, written

Answer = Callable[[Any], Sequence[Record]]
STAGES = tuple(stage.name for stage in TOPOLOGY.stages if isinstance(stage, Stage))
JUNK = b"\xff no record"
HEADERS: list[tuple[str, str | bytes | None]] = [("from", b"a stranger")]
QUIET = 2.0
"""Seconds without a new record after which the flow counts as quiet: longer than a stage waits to fill a batch."""
SAYS = 60.0
"""Seconds between two messages about what a test waits for."""
STUCK = 20.0
"""Seconds without a record after which a reader with lag is replaced by a new one."""
STANDS = 300.0
"""Seconds without a record after which the test fails: longer than a watchdog and the restart that follows it may take."""
TOLD = 8
"""Maximum number of missing things in one message."""
LOG = 20_000
"""Characters of the workers' log that a failure shows."""


def said(record: Record) -> Any:
    """A record without its versions, times and counters, for comparison."""
    if isinstance(record, Summary):
        return msgspec.structs.replace(record, version=0, time=0, published=0, attempt="")
    return type(record).__name__


def newest(records: Iterable[tuple[bytes, Record]]) -> dict[bytes, Record]:
    """The last record of each key; of a Broker's archive, the one with the highest publish counter."""
    last: dict[bytes, Record] = {}
    for key, record in records:
        before = last.get(key)
        if before is None or _published(record) >= _published(before):
            last[key] = record
    return last


def final(records: Sequence[tuple[bytes, Record]]) -> dict[bytes, Any]:
    """The newest records, without removals, in a form that can be compared."""
    return {key: said(record) for key, record in newest(records).items() if not isinstance(record, Removed)}


def _published(record: Record) -> int:
    return record.published if isinstance(record, Summary | Removed) else 0


class Flow:
    """Topics and workers of one test; `cuts` gives the place at which the worker of a stage is killed: (rows|outputs, batch)."""

    def __init__(
        self,
        broker: Broker,
        root: Path,
        folder: Path,
        partitions: int,
        edges: Mapping[str, Answer],
        stages: Sequence[str] = STAGES,
        settings: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        drawn: Topology = TOPOLOGY,
    ) -> None:
        """`settings` are topic settings, by topic name."""
        self.topology = drawn
        self.broker, self.root, self.folder, self.partitions = broker, root, folder, partitions
        self.prefix = f"{broker.topics.prefix}-"
        for topic in self.topology.topics:
            broker.topics.make(topic.name, partitions, settings.get(topic.name))
        for stage in self.topology.stages:
            if isinstance(stage, Stage):
                broker.topics.make(changelog_of(stage.name), partitions, {"cleanup.policy": "compact"})
        self.edges = edges
        self.stages = stages
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self.killed: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        """Workers that ended themselves."""
        self.cuts: dict[str, str] = {}
        self.coming: dict[str, tuple[str, int]] = {}
        """Started workers without a tick yet: the topic of the first tick, and the number of records in it at the start."""
        self.standing = Standing(broker, self.prefix, partitions, drawn)
        self.read_to: Counter[Place] = Counter()
        """The next offset to read, by place."""
        self.reader = self._reader()
        self.renewed = time.monotonic()
        self.records: dict[str, list[tuple[bytes, Record]]] = {topic.name: [] for topic in self.topology.topics}
        self.headers: dict[str, list[Any]] = {topic.name: [] for topic in self.topology.topics}
        self.times: dict[str, list[int]] = {topic.name: [] for topic in self.topology.topics}
        """Timestamps of `records` (ms)."""
        self.junked: set[tuple[str, int, int]] = set()
        """Places of undecodable records: topic, partition, offset."""
        self.moved = self.said = time.monotonic()
        """Time of the last record read, and of the last message about what is missing."""

    def _reader(self) -> Consumer:
        reader = self.broker.client(f"{self.prefix}reader")
        places = [(topic.name, partition) for topic in self.topology.topics for partition in range(self.partitions)]
        reader.assign([TopicPartition(self.prefix + place[0], place[1], self.read_to[place]) for place in places])
        return reader

    def renew(self) -> None:
        """Replace the reader by a new one at the same offsets, if it has stopped reading.

        A confluent-kafka 2.16 consumer that survived restarts of its broker may stop in all partitions for good, without an error.
        """
        ends = retry_coordinator(self.standing.ends)
        if behind := next(self.standing.unread(self.read_to, ends), None):
            print(f"{time.strftime('%H:%M:%S')}: the reader stopped, and gives way to a new one: {behind}", flush=True)
            self.reader.close()
            self.reader = self._reader()
        self.renewed = time.monotonic()

    def send(self, topic: str, record: Record, partition: int | None = None) -> None:
        """Append a record."""
        key = self.topology.topic(topic).key(record).encode()
        to = partition_of(key, self.partitions) if partition is None else partition
        self.broker.append(self.prefix + topic, [(key, encode(record))], to)

    def junk(self, topic: str, partition: int = 0) -> None:
        """Append an undecodable record, with a header."""
        self.broker.append(self.prefix + topic, [(b"key", JUNK)], partition, HEADERS)

    def letters(self) -> set[tuple[str, int, str, bytes | None, Any]]:
        """The dead letters of undecodable records: topic, partition, stage, bytes, headers."""
        records = [(r, h) for (_, r), h in zip(self.records["rejected"], self.headers["rejected"], strict=True)]
        found = [(r, tuple(h)) for r, h in records if isinstance(r, Rejected) and r.key == b"key"]
        assert all(r.offset >= 0 and r.reason.startswith("not a record") for r, _ in found)
        return {(r.topic, r.partition, r.stage, r.value, h) for r, h in found}

    def start(self, stage: str, cut: str = ":0") -> None:
        """Start the worker of a stage, to be killed at `cut` if one is given."""
        self.cuts[stage] = cut
        folder = str(self.folder / stage)
        words = [stage, self.broker.address, self.prefix, str(self.partitions), folder, cut]
        self.expect(stage, self.topology.stage(stage))
        self.workers[stage] = self.run("-m", "tests.streams.kafka.stage", *words)

    def run(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        """Start a Python program that ends with this process; its output goes to files."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_")}
        with (self.folder / "workers.log").open("ab") as log, (self.folder / "workers.out").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, *words],
                cwd=self.root,
                env={**plain, **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                text=True,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
            )

    def watch(self) -> None:
        """Restart workers that were killed or ended themselves, as an operator's supervisor would."""
        for stage, worker in list(self.workers.items()):
            code = worker.poll()
            if code is not None:
                assert code in (1, -signal.SIGKILL), code
                (self.ended if code == 1 else self.killed)[stage] += 1
                # A worker that ended itself, after a sleep perhaps, has not reached its cut: it is yet to be killed.
                self.start(stage, self.cuts[stage] if code == 1 else ":0")

    def rest(self) -> None:
        """Answer for the edges until nothing moves any more; prints from time to time what is missing.

        Raises AssertionError if nothing moves for long; the workers' log then has their stacks.
        """
        self.moved = self.said = time.monotonic()
        while time.monotonic() - self.moved < QUIET or not self.still():
            self.watch()
            self.read()
            self.tell()

    def tell(self) -> None:
        """Print what is missing, if it is time. Raises AssertionError if nothing has moved for `STANDS` seconds."""
        if time.monotonic() - self.said > SAYS:
            # The printed output of a test is part of its failure report, timeouts included.
            print(self.waits(), flush=True)
            self.said = time.monotonic()
            assert self.said - self.moved < STANDS, f"{self.waits()}\n{self.stacks()}"

    def still(self) -> bool:
        """Whether nothing is missing."""
        return next(self.missing(), None) is None

    def waits(self) -> str:
        """One line about everything that is missing."""
        missing = [*self.missing()]
        more = [f"and {len(missing) - TOLD} more"] if len(missing) > TOLD else []
        since = f"{time.strftime('%H:%M:%S')}: no record for {time.monotonic() - self.moved:.0f} s"
        groups = f"groups and partitions of their members: {', '.join(self.standing.groups(self.stages))}"
        return "; ".join([since, *(missing[:TOLD] or ["nothing is missing"]), *more, groups])

    def stacks(self) -> str:
        """Make the workers dump their stacks; returns the end of their log."""
        log = self.folder / "workers.log"
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.send_signal(signal.SIGUSR1)
        time.sleep(QUIET)
        return log.read_text("utf-8", "replace")[-LOG:] if log.exists() else ""

    def missing(self) -> Iterator[str]:
        """Reasons why the flow is not at rest: workers that have not begun, records not committed by their readers or not read.

        A stage commits its inputs after its outputs are written: if nothing was added during the checks, no work is in progress.
        """
        try:
            ends = self.standing.ends()
            yield from self.begun(ends)
            yield from self.standing.unread(self.read_to, ends)
            for name in self.stages:
                yield from self.standing.uncommitted(self.topology.stage(name), ends)
            after = self.standing.ends()
        except KafkaException as error:
            # The group has no coordinator yet.
            yield f"the broker says {error.args[0]}"
            return
        yield from (f"{written(place)} grew from {end} to {after[place]}" for place, end in ends.items() if after[place] != end)

    def begun(self, ends: Mapping[Place, int]) -> Iterator[str]:
        """Started workers that have not written a tick yet: a restarted worker may still write something."""
        self.coming = {
            name: (topic, before) for name, (topic, before) in self.coming.items() if self._written(topic, ends) <= before
        }
        for name, (topic, before) in self.coming.items():
            worker = self.workers.get(name)
            yield f"{name} (process {worker.pid if worker else 'unknown'}) wrote nothing behind {before} in {topic}"

    def expect(self, name: str, stage: Stage[Any, Any] | Edge[Any, Any]) -> None:
        """Note that a worker is about to be started."""
        if isinstance(stage, Stage) and stage.ticks is not None:
            self.coming[name] = stage.ticks.name, self._written(stage.ticks.name, retry_coordinator(self.standing.ends))

    def _written(self, topic: str, ends: Mapping[Place, int]) -> int:
        return sum(ends[topic, partition] for partition in range(self.partitions))

    def read(self) -> None:
        """Read new records, and answer them for the edges."""
        if time.monotonic() - max(self.moved, self.renewed) > STUCK:
            self.renew()
        for message in self.reader.consume(500, 0.2):
            name, partition = str(message.topic()).removeprefix(self.prefix), message.partition() or 0
            error, offset = message.error(), message.offset() or 0
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    self.read_to[name, partition] = offset
                continue
            self.moved = time.monotonic()
            self.read_to[name, partition] = offset + 1
            try:
                record = decode(message.value() or b"")
            except DecodeError:
                assert message.value() == JUNK
                self.junked.add((name, partition, offset))
                continue
            self.records[name].append((message.key() or b"", record))
            self.headers[name].append(message.headers() or [])
            self.times[name].append(message.timestamp()[1])
            if name in self.edges:
                self._answer(name, self.edges[name](record))

    def _answer(self, topic: str, records: Sequence[Record]) -> None:
        (edge,) = self.topology.readers(self.topology.topic(topic))
        router = Router(self.topology.stage(edge), REJECTED)
        for routed in map(router.route, records):
            self.broker.append(self.prefix + routed.topic, [(routed.key, encode(routed.record))])

    def close(self) -> None:
        """End all workers and clients."""
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self.reader.close()
        self.standing.close()


def edges(fetch: Callable[[FetchRequest, int], Sequence[Record]], essence: Callable[[FetchedObject], Sequence[Record]]) -> Any:
    """The edges of a simulator's world, in the form that `Flow` takes."""
    return {"fetches": lambda record: fetch(record, now_ms()), "objects": essence}


__all__ = ["QUIET", "STAGES", "TIMEOUT", "Flow", "edges", "final", "newest", "said"]
