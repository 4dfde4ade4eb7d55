"""A turn of the embedded runner: one transaction in which all deciding stages read, and write rows, offsets and outputs.

Strategy: the turn takes the finished results of the edges, then lets every stage read a batch of each of its inputs, in flow order
and in several rounds, so that a record passes all stages in one transaction. Outputs stay in memory until they are read. A long
turn, as for a folder with thousands of children, stops, and the next one continues.

Laws:
- Exactly once for log, rows and offsets: they are one transaction.
- A body in the blob store is durable before the record that names it.
- A record that a stage cannot process is rolled back and becomes a rejected record with its bytes; the partition continues.
- Ticks are records: appended when the rows of a stage say that something is due, applied once its inputs are read up to the ends
  that the tick names.
- While `holding`, no Broker expires anything: the run has not visited yet what it may confirm.
"""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import apsw

from processors.broker import dedup
from processors.gatherer import catalog
from schemas.codec import DecodeError, decode, encode
from schemas.ports import Logged, Origin, Rows
from schemas.records import Confirmed, Holder, Record, Summary, Tick
from streams.clock import now_ms
from streams.edges.base import DECODED, EdgeBase, Finished, Staging
from streams.edges.parse_job import Frame
from streams.embedded.run_stats import Met, RunStats
from streams.embedded.tasks import AFTER_FAILURE, Task
from streams.embedded.turn_cache import TurnCache
from streams.faults import fault
from streams.store import BodyStore, Offsets, Store, StoreError, Transaction
from streams.store.murmur2 import partition as partition_of
from streams.telemetry.logs import Written
from streams.topology.flow import REJECTED, Stage, Topology, TopologySettings, gatherer
from streams.topology.routing import Router, poisoned_letter

BATCH = 256
"""Records that a stage reads from one input partition in one turn."""
HOPS = 8
"""Rounds of all stages in one turn: three are needed from `made` to the Broker and back from dedup."""
SPELL = 0.1
"""Seconds of deciding after which a turn stops: its outputs are work that the edges may be waiting for."""
Log = Callable[[str], None]


class Inbox(NamedTuple):
    """Input of a turn from the edges: finished results, records to stage, and the offsets to commit with them."""

    finished: list[Finished]
    staging: list[Staging]
    offsets: list[tuple[str, str, int, Offsets]]

    @classmethod
    def of(cls, *edges: EdgeBase) -> Inbox:
        """Take everything that the edges have finished; they no longer have it."""
        finished = [one for edge in edges for one in edge.drain()]
        staging = [one for edge in edges for one in edge.drain_staging()]
        return cls(finished, staging, [one for edge in edges for one in edge.offsets()])


class Turns:
    """The deciding stages of a topology over one store. One turn at a time, in any thread; `log` receives tracebacks.

    `handing`: topics whose records are kept for `handed`. `still`: stages that get no ticks, so that nothing of theirs becomes due.
    """

    def __init__(
        self,
        topology: Topology,
        store: Store,
        blobs: BodyStore,
        log: Log,
        handing: Collection[str] = (),
        still: Collection[str] = (),
    ) -> None:
        self.store = store
        self.blobs = blobs
        self.log = log
        self.tally = RunStats()
        self._counted: dict[str, RunStats] = {}
        """Statistics of staged records by owner: they count when the records are published."""
        self.tail = TurnCache()
        self.partitions = store.topics()["crawl"]
        stages = [s for s in topology.stages if isinstance(s, Stage)]
        places = [(s, p) for s in stages for p in range(self.partitions)]
        self.tasks = [Task(s, p, Router(s, REJECTED), timed=s.name not in still) for s, p in places]
        self.holding = False
        """Whether nothing expires yet in a Broker."""
        gathering = {stage.name for stage in gatherer(TopologySettings())}
        self._gathering = [task for task in self.tasks if task.stage.name in gathering]
        self._serving = deque(task for task in self.tasks if task.stage.name not in gathering)
        """Tasks of the Brokers, in the order in which they decide. The one for which a turn had no time left is the first of the

        next turn: so several Brokers keep in step, and what is decoded and analysed for one is still in memory for the others.
        """
        self.failed = False
        """Set after a failed turn: results of the edges may be lost, so none are accepted, lest their offsets be committed."""
        self.wrote: Callable[[Written], None] | None = None
        """Called with the records of a turn after its commit."""
        self._written: list[Written] = []
        self._kept = {t.name for s in stages for t in s.inputs}
        self._handing = frozenset(handing)
        self._handed: list[Logged] = []

    def begin(self) -> None:
        """Set back what must be read from the beginning, and let every stage get a tick: every run begins with one."""
        with self.store.transaction() as tx:
            for task in self.tasks:
                self._restart(tx, task)
                if task.ticks:
                    self._tick(tx, task)

    def _restart(self, tx: Transaction, task: Task) -> None:
        if task.stage.restart is None:
            return
        offsets = self.store.offsets(task.stage.name)
        committed = {topic: one.next for (topic, partition), one in offsets.items() if partition == task.partition}
        for topic in task.stage.restart(tx.rows(task.stage.name, task.partition), committed):
            tx.commit_offset(task.stage.name, topic, task.partition, Offsets())
            self.tail.committed[task.stage.name, topic, task.partition] = 0

    def wanted(self) -> bool:
        """Return whether a stage has records to read or a tick to get."""
        now = now_ms()
        for task in self.tasks:
            for topic in (*task.inputs, *((task.ticks,) if task.ticks else ())):
                if self.store.ends(topic)[task.partition] > self._committed(task.stage.name, topic, task.partition):
                    return True
            if task.deadline and task.ticked < now:
                rows = self.store.rows(task.stage.name, task.partition)
                due = self.due(task, rows) if rows is not None else None
                if due is not None and due <= now:
                    return True
        return False

    def due(self, task: Task, rows: Rows) -> int | None:
        """Return when a stage needs its next tick, by its rows; None: none as things are."""
        due = task.deadline(rows) if task.deadline else None
        if due is None or (due and task.expires and self.holding):
            return None
        # A failed tick has changed no row: the next one would be due at once, and a run would not end.
        return max(due, task.failed + AFTER_FAILURE) if task.failed else due

    def take(self, inbox: Inbox, *, decide: bool = True) -> bool:
        """Run one turn; return whether anything moved. Raises DiskFull, StoreError: then it is rolled back, and `failed` is set."""
        self.failed = True
        before = self.tail.mark()
        try:
            self.blobs.sync()
            with self.store.transaction() as tx:
                self._settle(tx, inbox)
                moved = bool(inbox.finished)
                if decide:
                    moved |= self._decide_all(tx)
                    self._ticks_due(tx)
        except BaseException:
            self.tail.rollback(before)
            self._handed.clear()
            raise
        self.failed = False
        self.tail.commit()
        self._tell()
        fault("turn.end")
        return moved

    def handed(self) -> list[Logged]:
        """Return the records appended to the topics of `handing` since the last call."""
        handed, self._handed = self._handed, []
        return handed

    def _tell(self) -> None:
        written, self._written = self._written, []
        if self.wrote is not None:
            for one in written:
                self.wrote(one)

    # ---- results of the edges ------------------------------------------------------------------------------------

    def _settle(self, tx: Transaction, inbox: Inbox) -> None:
        for staging in inbox.staging:
            if not staging.frames:
                tx.unstage(staging.owner)
                self._counted.pop(staging.owner, None)
            for frame in staging.frames:
                if frame.topic in DECODED:
                    counted = self._counted.setdefault(staging.owner, RunStats())
                    counted.saw("", frame.record or decode(frame.value), len(frame.value))
                tx.stage(staging.owner, frame.topic, frame.partition, frame.key, frame.value, now_ms())
        for done in inbox.finished:
            for frame in done.frames:
                self._append_frame(tx, done.stage, frame)
        # After all others: published records are not in the cache, and can be read only after the commit.
        for done in inbox.finished:
            if done.staged:
                tx.publish(done.staged)
                self.tally.add(self._counted.pop(done.staged, RunStats()))
        for stage, topic, partition, offsets in inbox.offsets:
            tx.commit_offset(stage, topic, partition, offsets)

    # ---- deciding ------------------------------------------------------------------------------------------------

    def _decide_all(self, tx: Transaction) -> bool:
        """Let every stage read, also what other stages wrote in this turn: a record passes all of them in one transaction."""
        moved = False
        until = time.monotonic() + SPELL
        for _ in range(HOPS):
            again = self._round(tx, until)
            moved |= again
            if not again or time.monotonic() >= until:
                break
        return moved

    def _round(self, tx: Transaction, until: float) -> bool:
        """Let every stage decide once; return whether anything moved."""
        moved, served = False, 0
        for number, task in enumerate((*self._gathering, *self._serving)):
            if time.monotonic() < until:
                served = number + 1 - len(self._gathering)
            moved |= self._decide(tx, task, until)
            fault(f"turn.{task.stage.name}")
        self._serving.rotate(-max(served, 0))
        return moved

    def _decide(self, tx: Transaction, task: Task, until: float) -> bool:
        """Let a stage read a batch of each of its inputs; after `until`, one record of the first that has any.

        Views are the first input of register: they are complete before a summary is tagged, which spares a sweep.
        """
        moved = False
        rows = tx.rows(task.stage.name, task.partition)
        for topic in task.inputs:
            start = self._committed(task.stage.name, topic, task.partition)
            late = time.monotonic() >= until
            batch = self.tail.read(tx, self.store, topic, task.partition, start, 1 if late else BATCH)
            if not batch:
                continue
            for offset, key, value, record in batch:
                origin = Origin(topic, task.partition, offset, start)
                self._process(tx, task, rows, origin, key, value, record)
                if time.monotonic() >= until:
                    break
            self._commit(tx, task, topic, offset + 1)
            moved = True
            if late:
                break
        return self._apply_ticks(tx, task) or moved

    def _process(
        self, tx: Transaction, task: Task, rows: Any, origin: Origin, key: bytes, value: bytes | None, record: Record | None
    ) -> None:
        """Pass one record through one stage; an exception makes it a dead letter, and its writes are rolled back."""
        mark, tailed, told, handed = tx.mark(), self.tail.mark(), len(self._written), len(self._handed)
        try:
            if record is None:
                if value is None:
                    return
                record = decode(value)
            task.router.admit(origin.topic, record, now_ms())
            known, taken = _before(task, rows, record), _is_taken(task, rows, record)
            counted = [self._append(tx, task, made) for made in task.stage.process(rows, record, origin)]
        except (OSError, MemoryError, StoreError, apsw.Error):
            raise  # the record is not at fault
        except Exception as error:  # noqa: BLE001 - a poisonous record must not stop the partition; it is recorded in full
            tx.rollback_to(mark)
            self.tail.rollback(tailed)
            del self._written[told:]
            del self._handed[handed:]
            where = f"{origin.topic}, partition {origin.partition}, offset {origin.offset}"
            # A malformed record of another writer is not an internal error.
            self.log(f"harvest: {where}: not a record: {error}" if isinstance(error, DecodeError) else traceback.format_exc())
            known, taken = None, False
            if origin.topic == task.ticks:
                task.failed = now_ms()
            counted = [self._append(tx, task, poisoned_letter(task.stage.name, error, origin, key, value, now_ms()))]
        for made, size in () if isinstance(record, Confirmed) else counted:  # confirmed: not made anew
            self.tally.saw(task.stage.name, made, size)
        if known is not None:
            self.tally.met(known)
        if taken:
            self.tally.taken(task.stage.name)

    def _append(self, tx: Transaction, task: Task, record: Record) -> tuple[Record, int]:
        """Append an output of a stage; return it with its size in bytes."""
        topic, key, _ = task.router.route(record)
        value = encode(record)
        self._put(tx, task.stage.name, Frame(topic, partition_of(key, self.partitions), key, value, record))
        return record, len(value)

    def _append_frame(self, tx: Transaction, stage: str, frame: Frame) -> None:
        if frame.topic in DECODED:
            record = frame.record or decode(frame.value)
            self.tally.saw(stage, record, len(frame.value))
            frame = frame._replace(record=record)
        self._put(tx, stage, frame)

    def _put(self, tx: Transaction, stage: str, frame: Frame) -> None:
        """Append a record, also to the cache of this process."""
        topic, partition, key, value, record = frame
        now = now_ms()
        offset = tx.append(topic, partition, key, value, now)
        if topic in self._kept:
            self.tail.add(topic, partition, offset, key, value, record)
        if topic in self._handing:
            self._handed.append(Logged(topic, partition, offset, now, key, value, record))
        if self.wrote is not None:
            self._written.append(Written(stage, topic, partition, offset, value, record))

    # ---- offsets -------------------------------------------------------------------------------------------------

    def _committed(self, group: str, topic: str, partition: int) -> int:
        known = self.tail.committed.get((group, topic, partition))
        return self._load_committed(group, topic, partition) if known is None else known

    def _load_committed(self, group: str, topic: str, partition: int) -> int:
        offset = self.store.offsets(group).get((topic, partition), Offsets()).next
        self.tail.committed[group, topic, partition] = offset
        return offset

    def _commit(self, tx: Transaction, task: Task, topic: str, offset: int) -> None:
        tx.commit_offset(task.stage.name, topic, task.partition, Offsets(offset))
        self.tail.advance(task.stage.name, topic, task.partition, offset)

    # ---- time ----------------------------------------------------------------------------------------------------

    def _ticks_due(self, tx: Transaction) -> None:
        now = now_ms()
        for task in self.tasks:
            if not task.deadline or task.ticked >= now:
                continue
            due = self.due(task, tx.rows(task.stage.name, task.partition))
            written = tx.ends(task.ticks)[task.partition]
            if due is not None and due <= now and written == self._committed(task.stage.name, task.ticks, task.partition):
                self._tick(tx, task)

    def _tick(self, tx: Transaction, task: Task) -> None:
        now = now_ms()
        ends = {t: tx.ends(t)[task.partition] for t in task.inputs}
        tick = Tick(time=now, ends=ends, held=self.holding and task.expires)
        value = encode(tick)
        offset = tx.append(task.ticks, task.partition, b"", value, now)
        self.tail.add(task.ticks, task.partition, offset, b"", value, tick)
        task.ticked = now

    def _apply_ticks(self, tx: Transaction, task: Task) -> bool:
        if not task.ticks:
            return False
        start = self._committed(task.stage.name, task.ticks, task.partition)
        batch = self.tail.read(tx, self.store, task.ticks, task.partition, start, 1)
        if not batch:
            return False
        offset, key, value, record = batch[0]
        if self._too_early(tx, task, record, value):
            return False
        rows = tx.rows(task.stage.name, task.partition)
        self._process(tx, task, rows, Origin(task.ticks, task.partition, offset, start), key, value, record)
        self._commit(tx, task, task.ticks, offset + 1)
        return True

    def _too_early(self, tx: Transaction, task: Task, record: Record | None, value: bytes | None) -> bool:
        """Return whether a tick must wait for the ends that it names; a record that is not a tick does not wait, and is rejected.

        A tick that names ends beyond the topic, imported from another log, does not wait either.
        """
        try:
            tick = record or decode(value or b"")
        except DecodeError:
            return False
        ends = tick.ends if isinstance(tick, Tick) else {}
        return any(
            self._committed(task.stage.name, topic, task.partition) < min(ends.get(topic, 0), tx.ends(topic)[task.partition])
            for topic in task.inputs
        )


def _before(task: Task, rows: Any, record: Record) -> Met | None:
    """Return what the catalog has of the object of this summary, for the statistics; None if that does not matter."""
    if task.stage.name != "catalog" or not isinstance(record, Summary) or record.path:
        return None
    held = catalog.member_version(rows, record.object_url, "")
    if held == record.version:
        return None
    if not held:
        return "added"
    return "unchanged" if catalog.has_same(rows, record) else "changed"


def _is_taken(task: Task, rows: Any, record: Record) -> bool:
    """Return whether dedup hears of a summary, or of a version of it, for the first time: a confirmation is no change."""
    return isinstance(record, Holder) and record.joined and dedup.is_new(rows, record)
