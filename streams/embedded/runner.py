"""The embedded runner: one process moves bytes, sandboxed children parse, the log is SQLite.

Strategy: the runner works in turns (`turns.py`): a turn is one transaction, on a thread of its own. Meanwhile the event loop serves
the edges, which read the log through a connection of their own, so that no child and no server waits for the disk. Between turns
the edges get new work.

Laws:
- Exactly once for log, rows and offsets. Fetches in flight may repeat.
- The index is outside the transaction: it stores the offset that it has applied.
- Brokers expire what was not confirmed once everything else of a run is done, so that it can confirm what it visits.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from processors.essence.stage import EssenceSettings
from processors.frontier import stage
from processors.frontier.stage import outstanding
from schemas.codec import encode
from schemas.records import Record
from streams.clock import now_ms
from streams.edges.extensions import Extensions
from streams.edges.fetching import FetchEdge
from streams.edges.parsing import EssenceEdge
from streams.embedded.edge_cache import EdgeCache
from streams.embedded.feed_sink import FeedSink
from streams.embedded.sink import HEAP, IndexSink
from streams.embedded.sink_thread import SinkThread
from streams.embedded.turns import Inbox, Log, Turns
from streams.faults import fault
from streams.fetch import FetchSettings
from streams.sandbox.values import SandboxLimits
from streams.store import Offsets, Store, StoreError, open_bodies
from streams.store.murmur2 import partition as partition_of
from streams.store.object_storage import BlobSettings
from streams.topology.flow import FEED, FETCH, REJECTED, STREAM, Topology, TopologySettings, topology
from streams.topology.routing import Router

GATHER = 0.1
"""Maximum seconds between turns while every child has work: results that finish meanwhile share a transaction."""
LINGER, LOOK = 0.01, 0.002
"""Maximum seconds between turns while requests are in flight, and seconds between two checks whether any are: answers that arrive
meanwhile share a transaction. A turn has costs of its own, those of ten pages in the frontier.
"""
IDLE = 0.05
"""Maximum seconds of sleep when nothing moved: another process may have appended records."""
NEARLY = 1_000
"""If the index lacks this many records when the last object has been fetched, it starts a commit before everything else is done."""
SWITCH = 0.05
"""Seconds that a thread keeps the interpreter while others want it.

Turn, index, event loop and fetches all compute, and give up the interpreter at each read and write. With Python's default of 5 ms
they take it from each other so often that a gather of small files is slower.
"""
M_ARENA_MAX = -8
"""mallopt(3)."""
PATIENCE = 60.0
"""Seconds after which an object storage that does not answer ends the run, as a full disk does."""
SOON = 2_000
"""ms: an answer of dedup that is due within this time belongs to the run; what a Broker expires, if it was due as the run began."""
HOLD = 86_400_000
"""ms: a service that never comes to rest lets Brokers expire so long after its start."""
RETRY_HORIZON = 60_000
"""ms: a retry that is due within this time belongs to the run."""


class EmbeddedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an embedded runner."""

    partitions: int = 1
    children: int = 2
    blobs: BlobSettings = BlobSettings()
    fetch: FetchSettings = FetchSettings()
    essence: EssenceSettings = EssenceSettings(gatherer="localhost")
    own: Extensions = Extensions()
    """The operator's additions to essence."""
    flow: TopologySettings = TopologySettings()
    """The frontier, and the Brokers."""
    limits: SandboxLimits = SandboxLimits()


def one_heap() -> None:
    """Make all threads share one heap of the C library instead of one heap for each.

    Memory that one thread frees is then available to the others: the records of a large object pass through the loop, the turn and
    the index, and 5,000 records of 9 kB each take 120 MB less. Threads that share the interpreter hardly ever allocate at the same
    time.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


class Embedded:
    """A runner on one data folder, whose lock it holds. `log` receives the tracebacks of internal errors.

    Without `fetching` it applies appended records and requests nothing: URLs that are due, and requests that are already in the
    log, are left to the next runner.
    """

    def __init__(self, folder: Path, settings: EmbeddedSettings, log: Log, *, fetching: bool = True) -> None:
        self.settings = settings
        self._asks = fetching
        self.topology: Topology = topology(settings.flow)
        self.folder = folder
        self.store = Store(folder, {t.name: settings.partitions for t in self.topology.topics}, runner=True)
        self.partitions = self.store.topics()["crawl"]
        now_ms.not_before(self._last_time())
        self._began = now_ms()
        self.blobs = open_bodies(
            folder, settings.blobs, owner=True, clock=now_ms, patience=PATIENCE, max_body=settings.fetch.largest
        )
        still = () if fetching else ("frontier",)
        self.turns = Turns(self.topology, self.store, self.blobs, log, handing=("fetches", "objects"), still=still)
        self.turns.holding = True
        self.tally = self.turns.tally
        self._reading = Store(folder, readonly=True)
        self.handing = EdgeCache(self._reading)
        self.fetch = FetchEdge(self.handing, folder, self.blobs, settings.fetch, self.partitions, Router(FETCH, REJECTED))
        self.essence = EssenceEdge(
            self.handing,
            self.blobs,
            settings.essence,
            self.partitions,
            settings.children,
            settings.limits,
            log,
            own=settings.own,
            carry=True,
        )
        for edge in (self.fetch, self.essence) if fetching else (self.essence,):
            committed = self._reading.offsets(edge.name)
            for p in range(self.partitions):
                edge.open(p, committed.get((edge.topic, p), Offsets()))
        brokers = settings.flow.brokers
        self.sinks: dict[str, SinkThread] = {
            f"index.{one.name}": IndexSink(folder, one.name, HEAP // len(brokers), one.languages) for one in brokers
        }
        """The sinks by the names of their stages; those of the indexes share one heap."""
        if settings.flow.feed:
            self.sinks[FEED] = FeedSink(folder, settings.essence.gatherer)
        for one in brokers:
            if one.stream:
                self.sinks[STREAM + one.name] = FeedSink(folder, settings.essence.gatherer, one.name)
        self._thread = ThreadPoolExecutor(1, "turn")
        self.chores: Iterator[None] | None = None
        """Maintenance steps that run between turns, on the thread of the turns, since nothing else may use the store meanwhile."""
        self._wake = asyncio.Event()
        self._switch = sys.getswitchinterval()
        """The value before this runner; another runner may follow in this process."""
        self._fetching = False
        """Whether fetches were in flight at the last check."""
        self.took: Callable[[float], None] = lambda _: None
        """Called with the duration of each turn in seconds."""
        self.fetch.wake = self.essence.wake = self._wake.set

    def _last_time(self) -> int:
        """Return the time that the frontier has reached, in ms since the epoch; the last tick may have been rejected."""
        rows = (self.store.rows("frontier", p) for p in range(self.partitions))
        return max((stage.seen(found) for found in rows if found is not None), default=0)

    async def __aenter__(self) -> Self:
        self.essence.start()
        await asyncio.sleep(0)  # let the children start before the work below
        one_heap()
        # Objects that exist now stay: the garbage collector need not scan them again, nor run after every few hundred short-lived
        # records.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        sys.setswitchinterval(SWITCH)
        loop = asyncio.get_running_loop()
        for sink in self.sinks.values():
            sink.wake = lambda: loop.call_soon_threadsafe(self._wake.set)
            sink.start()
        try:
            if self._asks:
                await asyncio.to_thread(self.blobs.check, write=True)
            self.turns.begin()
        except BaseException:
            self.turns.failed = True
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fetch.close()
        await self.essence.close()
        await asyncio.to_thread(self._thread.shutdown)
        # Results that have finished are kept, so that the next run need not repeat them. Not after a failed turn: the edges count
        # the
        # results that the turn has lost as finished, and their offsets would be committed without them.
        try:
            if not self.turns.failed:
                with suppress(OSError, StoreError):
                    self.turns.take(Inbox.of(self.fetch, self.essence), decide=False)
        finally:
            sys.setswitchinterval(self._switch)
            await asyncio.gather(*(asyncio.to_thread(sink.close) for sink in self.sinks.values()))
            self.blobs.close()
            self._reading.close()
            self.store.close()

    # ---- running -------------------------------------------------------------------------------------------------

    async def run(
        self, *, stop: Callable[[], bool] = lambda: False, forever: bool = False, seen: Callable[[], None] = lambda: None
    ) -> None:
        """Run turns until everything is done (or forever), or until `stop` returns true. `seen` is called after every turn.

        Raises DiskFull, StoreError: then the turn is rolled back.
        """
        while not stop():
            self._wake.clear()
            moved = await self._turn()
            self.essence.launch()
            self.fetch.launch(self.essence.waiting())
            self._check_edges()
            self._hasten()
            seen()
            await self._chore()
            if moved:
                await self._gather()
            elif self._over(forever):
                return
            else:
                if not (self.fetch.busy() or self.essence.busy()):
                    self._nudge()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), IDLE)

    async def _turn(self) -> bool:
        """Run one turn if there is anything to do; return whether anything moved."""
        inbox = Inbox.of(self.fetch, self.essence)
        if not (inbox.finished or inbox.staging or self.turns.wanted()):
            return False
        # Until the turn is committed: if this task is cancelled before the turn begins, the content of the inbox is lost.
        self.turns.failed = True
        fault("turn.begin")
        begun = time.monotonic()
        moved = await asyncio.get_running_loop().run_in_executor(self._thread, self.turns.take, inbox)
        self.took(time.monotonic() - begun)
        self.handing.keep(self.turns.handed())
        self.fetch.confirm()
        self.essence.confirm()
        return moved

    async def _chore(self) -> None:
        """Run one maintenance step. Raises what the step raises."""
        if (chores := self.chores) is not None:
            over = await asyncio.get_running_loop().run_in_executor(self._thread, lambda: next(chores, True))
            self.chores = None if over else chores

    async def _gather(self) -> None:
        """Let the edges finish more results for the next turn, as long as every child has work without it, or fetches go on."""
        end = asyncio.get_running_loop().time() + GATHER
        await asyncio.sleep(0)
        for _ in range(round(LINGER / LOOK)):
            if self.essence.saturated() or not self.fetch.flying():
                break
            await asyncio.sleep(LOOK)
        while self.essence.saturated() and (rest := end - asyncio.get_running_loop().time()) > 0:
            self._wake.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), rest)

    def _hasten(self) -> None:
        """Let the indexes commit once the last object is fetched, so that the run does not have to wait for that at its end."""
        fetching, self._fetching = self._fetching, self.fetch.busy()
        if fetching and not self._fetching:
            for sink in self.sinks.values():
                if sum(end - sink.applied(p) for p, end in enumerate(self.store.ends(sink.topic))) >= NEARLY:
                    sink.nudge()

    def _nudge(self) -> None:
        """Make every sink apply the records that it has read."""
        for sink in self.sinks.values():
            sink.nudge()

    def _check_edges(self) -> None:
        """Raise the error that ended an edge or a sink, in its thread or task."""
        self.fetch.check()
        for sink in self.sinks.values():
            if sink.error is not None:
                raise sink.error
        self.essence.check()

    def _over(self, forever: bool) -> bool:
        """Return whether a run is over that moved nothing; what Brokers expire is its last work. A service is never over."""
        if forever and not self.turns.holding:
            return False
        late = forever and now_ms() >= self._began + HOLD
        # To a service every minute brings work: it confirms what was due at its start, and that is what a Broker waits for.
        if not (late or self.finished(self._began if forever else None)):
            return False
        held, self.turns.holding = self.turns.holding, False
        return not forever and (not held or self.finished())

    def finished(self, since: int | None = None) -> bool:
        """Return whether everything that a run waits for is done: nothing in flight, unread or due soon, all indexes complete.

        `since`: what becomes due later than RETRY_HORIZON after this time does not count; None: now.
        """
        if self.fetch.busy() or self.essence.busy():
            return False
        if not all(sink.caught_up(self.store.ends(sink.topic)) for sink in self.sinks.values()):
            return False
        now = now_ms()
        horizon, soon = (now if since is None else since) + RETRY_HORIZON, now + SOON
        with self.store.transaction() as tx:
            for task in self.turns.tasks:
                rows = tx.rows(task.stage.name, task.partition)
                if task.stage.name == "frontier" and self._asks and outstanding(rows, horizon):
                    return False
                due = self.turns.due(task, rows) if task.stage.name != "frontier" else None
                # Summaries expire as far apart as they were made: waiting for each next one would last as long as that run.
                if due is not None and due <= (self._began if task.expires else soon):
                    return False
        return True

    # ---- asking --------------------------------------------------------------------------------------------------

    def append(self, records: Mapping[str, list[tuple[int | None, Record]]]) -> None:
        """Append records from outside in one transaction, by topic, each to the given partition or to that of its key."""
        with self.store.transaction() as tx:
            for name, batch in records.items():
                key_of = self.topology.topic(name).key
                for partition, record in batch:
                    key = key_of(record).encode()
                    to = partition_of(key, self.partitions) if partition is None else partition
                    tx.append(name, to, key, encode(record), now_ms())

    def frontier_rows(self) -> Iterator[Any]:
        """Yield the frontier's rows of each partition, for reading."""
        for p in range(self.partitions):
            rows = self.store.rows("frontier", p)
            if rows is not None:
                yield rows
