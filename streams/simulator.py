"""The simulator: runs the topology from a seed, without a server, a thread or a clock.

It is the test driver, as TopologyTestDriver is for Kafka Streams, but it also simulates the faults of a cluster.

Strategy: everything that is random in production is drawn from `choose`: which stage and partition moves, how long its
batch is, where a crash falls in it, which requests are answered out of order or twice, when a tick comes, when time passes.
The same draws give the same run, so a failing seed is a bug report, and hypothesis can shrink it.

What a crash does (the weaker of the two runners' guarantees, at least once):
- a batch reads from committed offsets; its row writes become durable in order, then its outputs, then the offset;
- a crash keeps a prefix of the writes and, only if all of them, a prefix of the outputs of each topic partition; the batch
  is redelivered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from schemas.codec import decode, encode
from schemas.ports import Logged, Origin, Rows
from schemas.records import FetchedObject, FetchRequest, Record, Rejected, Tick
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import REJECTED, Edge, Stage, Topology
from streams.topology.routing import Routed, Router

Choose = Callable[[int], int]
"""Maps n to a number in [0, n)."""


class MemoryRows:
    """Rows in memory (law 5), with a journal of writes so that a crash can keep a prefix of them."""

    def __init__(self) -> None:
        self.rows: SortedDict = SortedDict()
        self.journal: list[tuple[bytes, bytes | None]] = []

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        value: bytes | None = self.rows.get(key)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row."""
        self.journal.append((key, self.rows.get(key)))
        self.rows[key] = value

    def delete(self, key: bytes) -> None:
        """Delete a row."""
        self.journal.append((key, self.rows.pop(key, None)))

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Yield rows by prefix, in order."""
        low = max(prefix, after)
        found: list[tuple[bytes, bytes]] = []
        for key in self.rows.irange(low, inclusive=(low != after or not after, True)):
            if not key.startswith(prefix) or len(found) == limit:
                break
            found.append((key, self.rows[key]))
        return iter(found)

    def keep(self, writes: int) -> None:
        """Undo all but the first `writes` of the journal, and start a new one."""
        for key, before in reversed(self.journal[writes:]):
            if before is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = before
        self.journal.clear()


@dataclass
class Task:
    """A stage in one partition: rows, committed offset by input topic, and for an edge the finished offsets above it."""

    stage: Stage[Any, Any] | Edge[Any, Any]
    partition: int
    router: Router
    rows: MemoryRows = field(default_factory=MemoryRows)
    offsets: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    done: set[int] = field(default_factory=set)


class Simulator:
    """One simulated run. `fetch` and `essence` replace the edges: pure functions from a record to the records that they write."""

    def __init__(
        self,
        topology: Topology,
        partitions: int,
        choose: Choose,
        fetch: Callable[[FetchRequest, int], Sequence[Record]],
        essence: Callable[[FetchedObject], Sequence[Record]],
    ) -> None:
        self.topology = topology
        self.partitions = partitions
        self.choose = choose
        self.fetch = fetch
        self.essence = essence
        self.now = 1_000_000
        self.log: dict[str, list[list[Logged]]] = {t.name: [[] for _ in range(partitions)] for t in topology.topics}
        self.tasks = [
            Task(s, p, Router(s, REJECTED)) for s in topology.stages for p in range(partitions) if getattr(s, "kind", "") != "sink"
        ]
        self.crashes = 0
        self._assign()

    # ---- driving -------------------------------------------------------------------------------------------------

    def send(self, topic: str, record: Record, partition: int | None = None) -> None:
        """Append a record from outside the topology."""
        self._append(Routed(topic, self.topology.topic(topic).key(record).encode(), record), partition)

    def broadcast(self, topic: str, records: Callable[[int], Record]) -> None:
        """Append one record to every partition of a topic."""
        for p in range(self.partitions):
            self.send(topic, records(p), p)

    def owner(self, topic: str, record: Record) -> int:
        """Return the partition of a record."""
        return partition_of(self.topology.topic(topic).key(record).encode(), self.partitions)

    def run(self, crashes: int = 0, steps: int = 100_000) -> None:
        """Run until no work is left, with at most `crashes` crashes. Raises AssertionError after `steps` steps."""
        if not self.step(steps, crashes):
            raise AssertionError("the topology does not come to rest")

    def step(self, steps: int, crashes: int = 0) -> bool:
        """Make at most `steps` moves; return whether no work is left."""
        for _ in range(steps):
            ready = [t for t in self.tasks if self._lag(t)]
            if not ready and not self._tick_all():
                return True
            if ready:
                task = ready[self.choose(len(ready))]
                crash = self.crashes < crashes and self.choose(6) == 0
                self._move(task, crash=crash)
            self.now += self.choose(200)
        return False

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """Return all records of a topic, partition by partition."""
        return [(r.key, decode(r.value)) for part in self.log[topic] for r in part if r.value is not None]

    def compacted(self, topic: str) -> dict[bytes, Record]:
        """Return the last record of each key."""
        return dict(self.records(topic))

    def rows(self, stage: str) -> list[MemoryRows]:
        """Return the rows of a stage, by partition."""
        return [t.rows for t in self.tasks if t.stage.name == stage]

    # ---- what moves ----------------------------------------------------------------------------------------------

    def _readable(self, task: Task) -> list[str]:
        """Return input topics with unread records; a tick only once the other inputs are read up to the ends that it names."""
        found = []
        for name in self._inputs[task.stage.name]:
            part = self.log[name][task.partition]
            offset = task.offsets[name]
            if offset >= len(part):
                continue
            if name.endswith(".ticks"):
                tick = cast("Tick", decode(part[offset].value or b""))
                # A tick of before a changed definition may name topics that the stage no longer reads.
                if any(task.offsets[t.name] < tick.ends.get(t.name, 0) for t in task.stage.inputs):
                    continue
            found.append(name)
        return found

    def _lag(self, task: Task) -> bool:
        return bool(self._readable(task))

    def _move(self, task: Task, *, crash: bool) -> None:
        readable = self._readable(task)
        topic = readable[self.choose(len(readable))]
        if isinstance(task.stage, Edge):
            self._do(task, topic, crash=crash)
        else:
            self._decide(task, topic, crash=crash)

    def _decide(self, task: Task, topic: str, *, crash: bool) -> None:
        """Process one batch of a deciding stage."""
        part = self.log[topic][task.partition]
        start = task.offsets[topic]
        count = 1 if topic.endswith(".ticks") else 1 + self.choose(min(8, len(part) - start))
        outputs: list[Routed] = []
        for logged in part[start : start + count]:
            origin = Origin(topic, task.partition, logged.offset, start)
            outputs += [task.router.route(r) for r in task.stage.process(task.rows, decode(logged.value or b""), origin)]  # type: ignore[union-attr]
        writes = len(task.rows.journal)
        if crash:
            self.crashes += 1
            kept = self.choose(writes + 1)
            task.rows.keep(kept)
            if kept == writes:
                self._send_some(outputs)
            self._take(task)
            return
        task.rows.keep(writes)
        for routed in outputs:
            self._append(routed)
        task.offsets[topic] = start + count

    def _take(self, task: Task) -> None:
        """Hand the partition to another worker: derived rows are rebuilt, since they are not in a changelog."""
        stage = cast("Stage[Any, Any]", task.stage)
        for prefix in stage.derived:
            for key, _ in task.rows.scan(prefix):
                task.rows.delete(key)
        if stage.restore:
            stage.restore(task.rows)
        self._restart(task)

    def _restart(self, task: Task) -> None:
        """Set the inputs that must be read from the beginning back to it, as a partition is taken."""
        stage = cast("Stage[Any, Any]", task.stage)
        for topic in stage.restart(task.rows, dict(task.offsets)) if stage.restart else ():
            task.offsets[topic] = 0
        task.rows.keep(len(task.rows.journal))

    def redefine(self, topology: Topology) -> None:
        """Go on with another topology: all partitions are taken anew, with the rows and offsets of the stages of before."""
        before = {(task.stage.name, task.partition): task for task in self.tasks}
        self.topology = topology
        for topic in topology.topics:
            self.log.setdefault(topic.name, [[] for _ in range(self.partitions)])
        self.tasks = []
        for stage in (s for s in topology.stages if getattr(s, "kind", "") != "sink"):
            for p in range(self.partitions):
                task = before.get((stage.name, p)) or Task(stage, p, Router(stage, REJECTED))
                task.stage, task.router = stage, Router(stage, REJECTED)
                self.tasks.append(task)
        self._assign()

    def _assign(self) -> None:
        self._inputs = {task.stage.name: _inputs(task.stage) for task in self.tasks}
        for task in self.tasks:
            if isinstance(task.stage, Stage):
                self._take(task)

    def _do(self, task: Task, topic: str, *, crash: bool) -> None:
        """Process one record of an edge, out of order within a window; records of one key stay in order."""
        part = self.log[topic][task.partition]
        start = task.offsets[topic]
        window = [r for r in part[start : start + 8] if r.offset not in task.done]
        first = {r.key: r for r in reversed(window)}
        logged = list(first.values())[self.choose(len(first))]
        record = decode(logged.value or b"")
        made = self.fetch(record, self.now) if isinstance(record, FetchRequest) else self.essence(record)  # type: ignore[arg-type]
        outputs = [task.router.route(r) for r in made]
        if crash:
            self.crashes += 1
            self._send_some(outputs)
            return
        for routed in outputs:
            self._append(routed)
        task.done.add(logged.offset)
        while task.offsets[topic] in task.done:
            task.done.remove(task.offsets[topic])
            task.offsets[topic] += 1

    def _send_some(self, outputs: list[Routed]) -> None:
        """Append the outputs that a crash keeps of a batch: a prefix for each topic partition."""
        by_partition: dict[tuple[str, int], list[Routed]] = defaultdict(list)
        for routed in outputs:
            by_partition[routed.topic, partition_of(routed.key, self.partitions)].append(routed)
        for batch in by_partition.values():
            for routed in batch[: self.choose(len(batch) + 1)]:
                self._append(routed)

    def _append(self, routed: Routed, partition: int | None = None) -> None:
        p = partition_of(routed.key, self.partitions) if partition is None else partition
        part = self.log[routed.topic][p]
        part.append(Logged(routed.topic, p, len(part), self.now, routed.key, encode(routed.record)))

    def _tick_all(self) -> bool:
        """Advance the time to the next deadline, when no work is left, and send ticks to the stages that wait for it."""
        waiting = [
            (due, task)
            for task in self.tasks
            if isinstance(task.stage, Stage) and task.stage.deadline and (due := task.stage.deadline(task.rows)) is not None
        ]
        waiting = [(due, task) for due, task in waiting if due <= self.now + 60_000]
        if not waiting:
            return False
        self.now = max(self.now, min(due for due, _ in waiting))
        for due, task in waiting:
            if due <= self.now:
                self.tick(task)
        return True

    def tick(self, task: Task, *, held: bool = False) -> None:
        """Append a tick for one stage and partition that names the ends of its inputs."""
        topic = cast("Stage[Any, Any]", task.stage).ticks
        if topic is None:
            raise ValueError(f"{task.stage.name} has no ticks")
        ends = {t.name: len(self.log[t.name][task.partition]) for t in task.stage.inputs}
        self._append(Routed(topic.name, b"", Tick(time=self.now, ends=ends, held=held)), task.partition)


def _inputs(stage: Stage[Any, Any] | Edge[Any, Any]) -> list[str]:
    """Return the names of the topics that a stage reads, its ticks last."""
    ticks = stage.ticks if isinstance(stage, Stage) else None
    return [topic.name for topic in (*stage.inputs, *((ticks,) if ticks else ()))]


def rejections(simulator: Simulator) -> list[Rejected]:
    """Return all dead letters."""
    return [r for _, r in simulator.records("rejected") if isinstance(r, Rejected)]


def as_rows(rows: MemoryRows) -> Rows:
    """Check by types that MemoryRows are Rows."""
    return rows
