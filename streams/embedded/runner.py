"""The embedded runner: one process moves bytes, parsing happens in sandboxed children, the log is SQLite.

Strategy: the runner turns. A turn is one transaction: it takes in what the edges finished, lets every deciding stage read a
batch from each of its inputs, and writes rows, offsets and outputs together. Between turns the edges get new work. What a
stage writes is kept in memory until it is read, so that most hops neither read nor decode it again.

Laws:
- Exactly once for log, rows and offsets: they are one transaction. Fetches in flight may repeat.
- A body in the blob store is durable before the record that names it.
- A record that a stage cannot process is undone, and becomes a rejected record with its bytes; the partition goes on.
- The index is outside the transaction: it remembers the offset that it has applied.
- Ticks are records: appended when a stage's rows say that something is due, applied once its inputs are read up to the ends named.
"""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from processors import catalog
from processors.essence import EssenceSettings
from processors.frontier import FrontierSettings, outstanding
from schemas.codec import DecodeError, decode, encode
from schemas.ports import Origin
from schemas.records import Record, Summary, Tick
from streams.embedded.clock import now_ms
from streams.embedded.edges import Finished
from streams.embedded.fetching import FetchEdge
from streams.embedded.parsing import EssenceEdge
from streams.embedded.sink import IndexSink
from streams.embedded.tail import Tail
from streams.embedded.tally import Tally
from streams.faults import fault
from streams.fetch import FetchSettings
from streams.routing import Router, poisoned
from streams.sandbox.values import Limits
from streams.store import FolderBlobs, Offsets, Store, Transaction
from streams.store.murmur2 import partition as partition_of
from streams.topology import REJECTED, Edge, Stage, Topology, TopologySettings, topology

BATCH = 256
"""Records that a stage reads of one input partition in one turn."""
HOPS = 8
"""Rounds of all stages in one turn: from made to the Broker and back from dedup are three."""
GATHER = 0.05
"""Seconds between turns at the most while every child has work: what is finished meanwhile shares a transaction."""
DECODED = ("crawl", "rejected")
"""Topics whose records are looked at when an edge writes them; the others are decoded by who reads them."""
IDLE = 0.05
"""Seconds that the runner sleeps at most when nothing moved: a second process may have appended."""
RETRY_HORIZON = 60_000
"""ms: what waits for a retry no longer than this belongs to the run."""


class EmbeddedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedded runner may be told."""

    partitions: int = 1
    children: int = 2
    fetch: FetchSettings = FetchSettings()
    essence: EssenceSettings = EssenceSettings(gatherer="localhost")
    frontier: FrontierSettings = FrontierSettings()
    limits: Limits = Limits()


Log = Callable[[str], None]


class Task:
    """A deciding stage in one partition."""

    def __init__(self, stage: Stage[Any, Any], partition: int, router: Router) -> None:
        self.stage = stage
        self.partition = partition
        self.router = router
        self.inputs = [t.name for t in stage.inputs]
        self.ticks = stage.ticks.name if stage.ticks else ""
        self.ticked = 0
        """ms since the epoch of the last tick written."""


class Embedded:
    """A runner on one data folder, which it holds the lock of. `log` gets the tracebacks of our own bugs."""

    def __init__(self, folder: Path, settings: EmbeddedSettings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.tally = Tally()
        self.topology: Topology = topology(TopologySettings(frontier=settings.frontier))
        self.folder = folder
        self.store = Store(folder, {t.name: settings.partitions for t in self.topology.topics}, runner=True)
        self.partitions = self.store.topics()["crawl"]
        now_ms.not_before(self._last_tick())
        self.blobs = FolderBlobs(folder / "blobs", owner=True)
        self.tail = Tail()
        self._kept = {t.name for s in self.topology.stages if isinstance(s, Stage) for t in s.inputs}
        self.tasks = [
            Task(s, p, Router(s, REJECTED)) for s in self.topology.stages if isinstance(s, Stage) for p in range(self.partitions)
        ]
        edges = {s.name: s for s in self.topology.stages if isinstance(s, Edge)}
        self.fetch = FetchEdge(self.store, self.blobs, settings.fetch, self.partitions, Router(edges["fetch"], REJECTED))
        self.essence = EssenceEdge(
            self.store, self.blobs, settings.essence, self.partitions, settings.children, settings.limits, log
        )
        self.sink = IndexSink(folder, "main")
        self._failed = False
        """A turn was undone: nothing more can be taken in."""
        self._wake = asyncio.Event()
        self.fetch.wake = self.essence.wake = self.sink.wake = self._wake.set

    def _last_tick(self) -> int:
        """When the last tick was written, ms since the epoch; 0 if none was."""
        last = 0
        for p, end in enumerate(self.store.ends("frontier.ticks")):
            last = max([last, *(r.time for r in self.store.read("frontier.ticks", p, max(0, end - 1), 1))])
        return last

    async def __aenter__(self) -> Self:
        # What is loaded by now stays: the collector need not look at it again, nor at every few hundred short-lived records.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        await self.essence.start()
        self.sink.start()
        with self.store.transaction() as tx:
            self._tick_all(tx)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fetch.close()
        await self.essence.close()
        # What was finished meanwhile is kept, so that the next run need not repeat it. After a turn that failed it is not: the
        # edges hold what that turn has lost for finished, and their offsets would be committed without it.
        if not self._failed:
            with suppress(OSError):
                self._take_in()
        self.sink.close()
        self.store.close()

    # ---- running -------------------------------------------------------------------------------------------------

    async def run(
        self, *, stop: Callable[[], bool] = lambda: False, forever: bool = False, seen: Callable[[], None] = lambda: None
    ) -> None:
        """Turn until all is done (or for ever), or until `stop` says so. `seen` is called after every turn.

        Raises DiskFull, StoreError: then nothing of the turn stands.
        """
        while not stop():
            self._wake.clear()
            moved = self._turn()
            self.essence.launch()
            self.fetch.launch(self.essence.waiting())
            self._check_stores()
            seen()
            if moved:
                await self._gather()
            elif not forever and self._finished():
                return
            else:
                self.sink.nudge()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), IDLE)

    async def _gather(self) -> None:
        """Let the edges finish more for the next turn, for as long as every child has work without it."""
        end = asyncio.get_running_loop().time() + GATHER
        await asyncio.sleep(0)
        while self.essence.saturated() and (rest := end - asyncio.get_running_loop().time()) > 0:
            self._wake.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), rest)

    def _check_stores(self) -> None:
        """Raises what ended an edge or a sink, in its thread or task."""
        for error in (self.fetch.store_error, self.fetch.error, self.sink.error, self.essence.error):
            if error is not None:
                raise error

    def finished(self) -> bool:
        """Whether all is done that a run would wait for."""
        return self._finished()

    def _finished(self) -> bool:
        """Nothing in flight, nothing unread, nothing due soon, and the index at the end of its topic."""
        if self.fetch.busy() or self.essence.busy() or not self.sink.caught_up(self.store.ends("broker.main")):
            return False
        horizon = now_ms() + RETRY_HORIZON
        with self.store.transaction() as tx:
            for task in self.tasks:
                rows = tx.rows(task.stage.name, task.partition)
                if task.stage.name == "frontier" and outstanding(rows, horizon):
                    return False
                if task.stage.name != "frontier" and task.stage.deadline and task.stage.deadline(rows) is not None:
                    return False
        return True

    # ---- one turn ------------------------------------------------------------------------------------------------

    def _turn(self) -> bool:
        """One transaction; says whether anything moved. Skips the transaction where there is nothing to do."""
        if not (self.fetch.finished or self.essence.finished or self.essence.staging or self._work()):
            return False
        fault("turn.begin")
        return self._take_in(decide=True)

    def _work(self) -> bool:
        """Whether a deciding stage has something to read, or a tick to get."""
        now = now_ms()
        for task in self.tasks:
            for topic in (*task.inputs, *((task.ticks,) if task.ticks else ())):
                if self.store.ends(topic)[task.partition] > self._committed(task.stage.name, topic, task.partition):
                    return True
            if task.stage.deadline and task.ticked < now:
                due = self._due(task)
                if due is not None and due <= now:
                    return True
        return False

    def _committed(self, group: str, topic: str, partition: int) -> int:
        return self.tail.committed.get((group, topic, partition)) or self._load_committed(group, topic, partition)

    def _load_committed(self, group: str, topic: str, partition: int) -> int:
        offset = self.store.offsets(group).get((topic, partition), Offsets()).next
        self.tail.committed[group, topic, partition] = offset
        return offset

    def _due(self, task: Task) -> int | None:
        rows = self.store.rows(task.stage.name, task.partition)
        return task.stage.deadline(rows) if rows is not None and task.stage.deadline else None

    def _take_in(self, *, decide: bool = False) -> bool:
        """What the edges finished goes into the log; then the deciding stages have their turn, in flow order."""
        finished = [*self.fetch.drain(), *self.essence.drain()]
        before = self.tail.mark()
        try:
            self.blobs.sync()
            with self.store.transaction() as tx:
                moved = self._settle(tx, finished)
                if decide:
                    moved |= self._decide_all(tx)
                    self._ticks_due(tx)
        except BaseException:
            self.tail.rollback(before)
            self._failed = True
            raise
        self.tail.commit()
        self.fetch.confirm()
        self.essence.confirm()
        fault("turn.end")
        return moved

    def _settle(self, tx: Transaction, finished: list[Finished]) -> bool:
        for staging in self.essence.drain_staging():
            if not staging.frames:
                tx.unstage(staging.owner)
            for frame in staging.frames:
                tx.stage(staging.owner, frame.topic, frame.partition, frame.key, frame.value, now_ms())
        for done in finished:
            for frame in done.frames:
                self._append_raw(tx, done.stage, frame.topic, frame.partition, frame.key, frame.value)
            if done.staged:
                tx.publish(done.staged)
        for stage, topic, partition, offsets in (*self.fetch.offsets(), *self.essence.offsets()):
            tx.commit_offset(stage, topic, partition, offsets)
        return bool(finished)

    def _decide_all(self, tx: Transaction) -> bool:
        """Every stage reads, and reads what the others wrote in this very turn: a record passes them all in one transaction."""
        moved = False
        for _ in range(HOPS):
            again = False
            for task in self.tasks:
                again |= self._decide(tx, task)
                fault(f"turn.{task.stage.name}")
            if not again:
                break
            moved = True
        return moved

    def _decide(self, tx: Transaction, task: Task) -> bool:
        moved = False
        rows = tx.rows(task.stage.name, task.partition)
        for topic in task.inputs:
            start = self._committed(task.stage.name, topic, task.partition)
            batch = self.tail.read(tx, self.store, topic, task.partition, start, BATCH)
            if not batch:
                continue
            for offset, key, value, record in batch:
                origin = Origin(topic, task.partition, offset, start)
                self._process(tx, task, rows, origin, key, value, record)
            self._commit(tx, task, topic, batch[-1][0] + 1)
            moved = True
        return self._apply_ticks(tx, task) or moved

    def _too_early(self, task: Task, record: Record | None, value: bytes | None) -> bool:
        """Whether a tick has to wait for the ends that it names; what is no tick waits for nothing, and is rejected."""
        try:
            tick = record or decode(value or b"")
        except DecodeError:
            return False
        ends = tick.ends if isinstance(tick, Tick) else {}
        return any(self._committed(task.stage.name, t, task.partition) < end for t, end in ends.items())

    def _commit(self, tx: Transaction, task: Task, topic: str, offset: int) -> None:
        tx.commit_offset(task.stage.name, topic, task.partition, Offsets(offset))
        self.tail.advance(task.stage.name, topic, task.partition, offset)

    def _apply_ticks(self, tx: Transaction, task: Task) -> bool:
        if not task.ticks:
            return False
        start = self._committed(task.stage.name, task.ticks, task.partition)
        batch = self.tail.read(tx, self.store, task.ticks, task.partition, start, 1)
        if not batch:
            return False
        offset, key, value, record = batch[0]
        if self._too_early(task, record, value):
            return False
        rows = tx.rows(task.stage.name, task.partition)
        self._process(tx, task, rows, Origin(task.ticks, task.partition, offset, start), key, value, record)
        self._commit(tx, task, task.ticks, offset + 1)
        return True

    def _process(
        self, tx: Transaction, task: Task, rows: Any, origin: Origin, key: bytes, value: bytes | None, record: Record | None
    ) -> None:
        """One record through one stage; whatever it raises becomes a dead letter, and its writes are undone."""
        mark, tailed = tx.mark(), self.tail.mark()
        try:
            if record is None:
                if value is None:
                    return
                record = decode(value)
            known = self._before(task, rows, record)
            for made in task.stage.process(rows, record, origin):
                self._append(tx, task, made)
            if known is not None:
                self.tally.met(known=known)
        except (OSError, MemoryError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - a poisonous record must not stop the partition; it is recorded in full
            tx.rollback_to(mark)
            self.tail.rollback(tailed)
            self.log(traceback.format_exc())
            self._append(tx, task, poisoned(task.stage.name, error, origin, key, value, now_ms()))

    def _before(self, task: Task, rows: Any, record: Record) -> bool | None:
        """For the tally: whether the catalogue holds the object that this summary is of; None where that is not asked."""
        if task.stage.name != "catalog" or not isinstance(record, Summary) or record.path:
            return None
        held = catalog.held(rows, record.object_url, "")
        return None if held == record.version else held > 0

    # ---- writing -------------------------------------------------------------------------------------------------

    def _append(self, tx: Transaction, task: Task, record: Record) -> None:
        topic, key, _ = task.router.route(record)
        value = encode(record)
        partition = partition_of(key, self.partitions)
        offset = tx.append(topic, partition, key, value, now_ms())
        if topic in self._kept:
            self.tail.add(topic, partition, offset, key, value, record)
        self.tally.saw(task.stage.name, record, len(value))

    def _append_raw(self, tx: Transaction, stage: str, topic: str, partition: int, key: bytes, value: bytes) -> None:
        offset = tx.append(topic, partition, key, value, now_ms())
        record = decode(value) if topic in DECODED else None
        if record is not None:
            self.tally.saw(stage, record, len(value))
        if topic in self._kept:
            self.tail.add(topic, partition, offset, key, value, record)

    # ---- time ----------------------------------------------------------------------------------------------------

    def _tick_all(self, tx: Transaction) -> None:
        """Every run begins with a tick."""
        for task in self.tasks:
            if task.ticks:
                self._tick(tx, task)

    def _ticks_due(self, tx: Transaction) -> None:
        now = now_ms()
        for task in self.tasks:
            if not task.stage.deadline or task.ticked >= now:
                continue
            due = task.stage.deadline(tx.rows(task.stage.name, task.partition))
            written = tx.ends(task.ticks)[task.partition]
            if due is not None and due <= now and written == self._committed(task.stage.name, task.ticks, task.partition):
                self._tick(tx, task)

    def _tick(self, tx: Transaction, task: Task) -> None:
        now = now_ms()
        ends = {t: tx.ends(t)[task.partition] for t in task.inputs}
        tick = Tick(time=now, ends=ends)
        value = encode(tick)
        offset = tx.append(task.ticks, task.partition, b"", value, now)
        self.tail.add(task.ticks, task.partition, offset, b"", value, tick)
        task.ticked = now

    # ---- asking --------------------------------------------------------------------------------------------------

    def append(self, records: Mapping[str, list[tuple[int | None, Record]]]) -> None:
        """Append records from outside, by topic, each to the partition given or to that of its key, in one transaction."""
        with self.store.transaction() as tx:
            for name, batch in records.items():
                key_of = self.topology.topic(name).key
                for partition, record in batch:
                    key = key_of(record).encode()
                    to = partition_of(key, self.partitions) if partition is None else partition
                    tx.append(name, to, key, encode(record), now_ms())

    def frontier_rows(self) -> Iterator[Any]:
        """The frontier's rows by partition, to read."""
        for p in range(self.partitions):
            rows = self.store.rows("frontier", p)
            if rows is not None:
                yield rows
