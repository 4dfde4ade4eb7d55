"""Partitions that a stage owns, and the handling of rebalances.

Strategy: Faust's rebalance revokes all partitions and assigns some again. Before they are revoked, the batch under way is
completed; once the tables are recovered, new partitions get their derived rows and a first tick.

Laws:
- No batch is under way while tables recover: its rows would be overwritten by older ones.
- A record that was read before a rebalance is not decided here, and not acknowledged, since Faust would commit it.
- A process that was asleep for so long that its session may have expired may own nothing any more: it sends nothing, and ends.
- Derived rows are rebuilt only when a partition is newly assigned: otherwise it had no other writer. A recovery that ended before
  the group was rejoined therefore takes no partition: its tables are not those of the new generation.
- Derived rows are rebuilt in a thread, however many there are: heartbeats go on meanwhile, and the watchdog excuses the process.
- A partition whose rows were not recovered is not processed. The member that assigns partitions leaves out topics that its client
  does not know yet, such as a new changelog. Nothing would be recovered, unnoticed; so such a process ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from faust.exceptions import ConsumerNotStarted
from faust.types import TP
from msgspec.structs import replace

from schemas.ports import Origin
from schemas.records import Tick
from streams.kafka.client.cursors import Cursors
from streams.kafka.decide.gap_detector import SkippedError
from streams.kafka.decide.rereading import read_again
from streams.kafka.decide.rows import RestoredRows, StoppedError, origin_bases

if TYPE_CHECKING:
    from faust.types import EventT

    from streams.kafka.decide.agents import Decider

NOBODY = -1
"""Placeholder for the generation, between two of them."""
BEAT = 0.5
"""Seconds between two updates of `beat`."""


class AsleepError(Exception):
    """The process was suspended for about as long as its session lasts: others may own its partitions by now."""


class UnrecoveredError(Exception):
    """Partitions were assigned without those of the changelog that holds their rows; a restart may repair it."""


class OwnedPartitions:
    """The partitions of one stage in this process."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._app: Any = decider.app
        self._mine: frozenset[int] = frozenset()
        self._cursors: dict[int, Cursors] = {}
        self._bases: dict[int, dict[str, int]] = {}
        self._generation = NOBODY
        self._joined: object | None = None
        """Token of the generation whose tables are being or have been recovered; None between two."""
        self._restoring: tuple[RestoredRows, asyncio.Future[None]] | None = None
        self._restored = 0
        """Rows scanned so far to rebuild derived rows."""
        self._read: dict[tuple[str, int], int | None] = {}
        """Offset due in each partition at the watchdog's last check."""
        self._beat = time.monotonic()
        conf = decider.app.conf
        # The group counts from the last heartbeat that it received, which may be older by one interval.
        self.session: float = conf.broker_session_timeout - conf.broker_heartbeat_interval
        """Seconds that the process may be suspended."""
        self._recovered = 0
        self._app.on_partitions_revoked.connect(self._on_revoked)
        self._app.on_partitions_assigned.connect(cast("Any", self._on_assigned))
        self._app.on_before_shutdown.connect(cast("Any", self._on_shutdown))
        self._app.task(self._beats)
        self._app.task(self._looks)
        decider.table.on_recover(self._on_recovered)

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that may be processed now."""
        return self._mine if self._generation != NOBODY else frozenset()

    @property
    def beat(self) -> float:
        """Time (monotonic) of the last loop iteration."""
        return self._beat

    def places(self) -> list[tuple[str, int]]:
        """Return the assigned partitions with their topics on the broker; may be called from another thread."""
        try:
            assigned = list(self._app.consumer.assignment())
        except ConsumerNotStarted:
            return []
        return [(tp.topic, tp.partition) for tp in assigned if tp.topic in self._decider.names]

    def excused(self) -> list[tuple[str, int]]:
        """Return partitions whose standstill is no fault of this process; may be called from another thread.

        All partitions while tables recover, as long as the row count has grown since the last check. Ticks that wait for inputs, if
        one of these inputs has advanced since the last check.
        """
        if self._generation == NOBODY:
            restoring = self._restoring
            rows = restoring[0].count if restoring is not None else 0
            # The offset is None while nothing is known of a changelog.
            offsets = list(self._app.tables.recovery.active_offsets.values())
            before, self._recovered = self._recovered, sum(offset or 0 for offset in offsets) + self._restored + rows
            return self.places() if self._recovered != before else []
        if self._decider.ticker is None:
            return []
        ticks, due = self._decider.ticker.topic, self._decider.following.next
        read = {(topic, partition): due.get(TP(topic, partition)) for topic, partition in self.places() if topic != ticks}
        moved = {partition for (topic, partition), offset in read.items() if self._read.get((topic, partition)) != offset}
        self._read = read
        return [(ticks, partition) for partition in sorted(moved)]

    def cursors(self, partition: int) -> Cursors:
        """Return the queue cursors of a partition."""
        return self._cursors.setdefault(partition, Cursors(self._decider.stage.derived))

    def origin(self, at: Origin) -> Origin:
        """Return the position of a record as rows have it: above all those of earlier topics of the name (`topic_reset.py`)."""
        base = self.base(at.topic, at.partition)
        return at._replace(offset=at.offset + base, committed=at.committed + base) if base else at

    def base(self, topic: str, partition: int) -> int:
        """Return what rows have above the offsets of a topic."""
        return self._bases.get(partition, {}).get(topic, 0)

    def tick(self, tick: Tick, partition: int) -> Tick:
        """Return a tick with its ends as rows have them."""
        if not self._bases.get(partition):
            return tick
        return replace(tick, ends={name: end + self.base(name, partition) for name, end in tick.ends.items()})

    def current(self, events: Sequence[EventT[Any]]) -> list[EventT[Any]]:
        """Return the events that were read in the present generation; the others are dropped."""
        found = []
        for event in events:
            if self._generation == NOBODY or event.message.generation_id != self._generation:
                # Marked so that nothing acknowledges it: it is delivered again.
                event.message.acked = True
            else:
                found.append(event)
        return found

    def awake(self) -> None:
        """Raise AsleepError if the session may have expired since the last beat."""
        asleep = time.monotonic() - self._beat
        if asleep > self.session:
            raise AsleepError(f"for {asleep:.0f} s")

    async def _beats(self) -> None:
        self._beat = time.monotonic()
        while True:
            await asyncio.sleep(BEAT)
            try:
                self.awake()
            except AsleepError as error:
                self._decider.end(error)
            self._beat = time.monotonic()

    async def _looks(self) -> None:
        # Separate from the beats: a slow broker must not look like a suspended process.
        while True:
            await asyncio.sleep(BEAT)
            if self._generation != NOBODY:
                tps = [TP(topic, partition) for topic, partition in self.places()]
                try:
                    with suppress(KafkaError):
                        await self._decider.following.look(tps, idle=self._decider.idle())
                except SkippedError as error:
                    self._decider.end(error)

    async def _on_revoked(self, *_: Any, **__: Any) -> None:
        self._generation, self._joined = NOBODY, None
        await self._end_restoring()
        if self._decider.going is not None:
            await asyncio.wait([self._decider.going])
        if self._decider.ticker is not None:
            self._decider.ticker.forget()

    async def _on_assigned(self, _: Any, *given: Any, **__: Any) -> None:
        assigned: Iterable[TP] = given[0]
        self._generation, self._joined = NOBODY, object()
        await self._end_restoring()
        # A partition that went to another worker was written by it, even if it returns before anything is recovered.
        self._mine &= {tp.partition for tp in assigned if tp.topic in self._decider.names}

    async def _on_shutdown(self, *_: Any, **__: Any) -> None:
        self._joined = None
        await self._end_restoring()

    async def _end_restoring(self) -> None:
        if self._restoring is not None:
            rows, running = self._restoring
            rows.stopped.set()
            await asyncio.wait([running])

    async def _on_recovered(self) -> None:
        """Take over the partitions, whose tables now match the changelog."""
        try:
            await self._take()
        except Exception as error:  # noqa: BLE001 - Faust would swallow it, and go on without the derived rows
            self._decider.end(error)

    async def _take(self) -> None:
        if (joined := self._joined) is None:
            return
        assigned = self._app.consumer.assignment()
        places = [tp for tp in assigned if tp.topic in self._decider.names]
        changelog = self._decider.table.changelog_topic.get_topic_name()
        lacking = {tp.partition for tp in places} - {tp.partition for tp in assigned if tp.topic == changelog}
        if lacking:
            told = ", ".join(map(str, sorted(lacking)))
            raise UnrecoveredError(f"{changelog}: partitions {told} are not assigned, but those of the inputs are")
        taken = sorted({tp.partition for tp in places} - self._mine)
        for partition in taken:
            self._cursors[partition] = Cursors(self._decider.stage.derived)
            self._bases[partition] = origin_bases(self._decider.table, partition, self._decider.names.values())
            await self._restore(partition)
            if self._joined is not joined or not await read_again(self._decider, partition, lambda: self._joined is joined):
                return
            self._mine |= {partition}
        if self._decider.ticker is not None:
            self._decider.ticker.begin(taken)
        self._decider.following.anew()
        self._decider.sender.begin()
        await self._decider.following.begin(places)
        if self._joined is joined:
            self._generation = self._app.consumer_generation_id

    async def _restore(self, partition: int) -> None:
        """Rebuild the derived rows of a partition, unless it is revoked meanwhile: then its next owner rebuilds them."""
        restore = self._decider.stage.restore
        if restore is None:
            return
        rows = RestoredRows(self._decider.table, partition, self._cursors[partition])
        running = asyncio.ensure_future(asyncio.to_thread(restore, rows))
        self._restoring = rows, running
        try:
            await asyncio.shield(running)
        except StoppedError:
            pass
        finally:
            self._restoring = None
            self._restored += rows.count
