"""Which partitions a stage owns, and what happens when they come and go.

Strategy: Faust's rebalance gives all partitions up and takes some again. Before they are given up the batch that is going on
ends; when the tables are recovered, what is new gets its derived rows, and its first tick.

Laws:
- No batch is going on while tables recover: rows that are on their way would be overwritten by older ones.
- A record that was read before a rebalance is decided by nobody here. Were it acknowledged, Faust would commit it.
- A process that was asleep for so long that its session may be over may own nothing any more, and sends nothing: it ends.
- Derived rows are made when a partition is taken, and at no other time: nobody else wrote to it since. So a recovery that was over
  before the group was joined anew takes nothing: its tables are not those of the new generation.
- Derived rows are made in a thread, however many there are: the process gives signs of life meanwhile, and is excused.
- Nobody decides in a partition whose rows were not recovered. The member that assigns leaves out what its client does not know yet:
  a changelog that has just been made, say. Nothing would be recovered, and nobody would notice; so that process ends.
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

from streams.kafka.client.cursors import Cursors
from streams.kafka.decide.gap_detector import SkippedError
from streams.kafka.decide.rows import RestoredRows, StoppedError

if TYPE_CHECKING:
    from faust.types import EventT

    from streams.kafka.decide.agents import Decider

NOBODY = -1
"""In place of a generation: between two of them."""
BEAT = 0.5
"""Seconds between two signs of life."""


class AsleepError(Exception):
    """The process did nothing for about as long as its session lasts: others may own its partitions by now."""


class UnrecoveredError(Exception):
    """Partitions came without those of the changelog that their rows are in: to begin again may mend it."""


class OwnedPartitions:
    """The partitions of one stage in this process."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._app: Any = decider.app
        self._mine: frozenset[int] = frozenset()
        self._cursors: dict[int, Cursors] = {}
        self._generation = NOBODY
        self._joined: object | None = None
        """Stands for the generation whose tables are, or will be, recovered; None between two."""
        self._restoring: tuple[RestoredRows, asyncio.Future[None]] | None = None
        self._restored = 0
        """Rows of partitions that were read to make derived rows of."""
        self._read: dict[tuple[str, int], int | None] = {}
        """What was due in each partition at the last look of the watchdog."""
        self._beat = time.monotonic()
        conf = decider.app.conf
        # The group counts from the last sign of life that it had: that may be older by a heartbeat.
        self.session: float = conf.broker_session_timeout - conf.broker_heartbeat_interval
        """Seconds that it may be asleep."""
        self._recovered = 0
        self._app.on_partitions_revoked.connect(self._on_revoked)
        self._app.on_partitions_assigned.connect(cast("Any", self._on_assigned))
        self._app.on_before_shutdown.connect(cast("Any", self._on_shutdown))
        self._app.task(self._beats)
        self._app.task(self._looks)
        decider.table.on_recover(self._on_recovered)

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that may be worked on now."""
        return self._mine if self._generation != NOBODY else frozenset()

    @property
    def beat(self) -> float:
        """When the loop went round last (monotonic)."""
        return self._beat

    def places(self) -> list[tuple[str, int]]:
        """The partitions that are assigned, by their topics on the broker; for another thread."""
        try:
            assigned = list(self._app.consumer.assignment())
        except ConsumerNotStarted:
            return []
        return [(tp.topic, tp.partition) for tp in assigned if tp.topic in self._decider.names]

    def excused(self) -> list[tuple[str, int]]:
        """Those that stand for no fault of this process; for another thread.

        All of them while tables recover, as long as there are more rows from look to look. Ticks that wait for their inputs, where
        one of these has moved since the last look.
        """
        if self._generation == NOBODY:
            restoring = self._restoring
            rows = restoring[0].count if restoring is not None else 0
            # Where nothing is known of a changelog yet, its offset is None.
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
        """Where the queues of a partition begin."""
        return self._cursors.setdefault(partition, Cursors(self._decider.stage.derived))

    def current(self, events: Sequence[EventT[Any]]) -> list[EventT[Any]]:
        """The events that were read since the partitions were taken; the others are let go."""
        found = []
        for event in events:
            if self._generation == NOBODY or event.message.generation_id != self._generation:
                # To be acknowledged by nobody: it comes again.
                event.message.acked = True
            else:
                found.append(event)
        return found

    def awake(self) -> None:
        """Raises AsleepError where the session may have ended since the last sign of life."""
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
        # Apart from the beats: a broker that is slow to answer is no sleep of ours.
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
        # What went to others, even if it comes back before anything is recovered, was written to by them.
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
        """The tables hold what the changelog does."""
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
            await self._restore(partition)
            if self._joined is not joined:
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
        """Make the derived rows of a partition, unless it is given up meanwhile: then they are made by who has it next."""
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
