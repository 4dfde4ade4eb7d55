"""Ticks of a stage on Kafka, written by the owner of each partition, applied once the inputs are read up to their ends (law 4).

Strategy: a task checks the next deadline in the rows of each partition, and writes a tick when it is due, and one when the
partition is assigned. A tick that is read too early is kept, unacknowledged, and applied in a later batch.

Laws:
- At most one tick of this process is in flight in a partition.
- A tick names the ends that its inputs had on the broker when it was written.
- A tick waits only for records that exist: if an input is read to its end, and that is below the end which the tick names, the
  topic was recreated, or the tick is not from this stage; it waits no longer. (An end that a broker reports never decreases,
  KIP-207.)
- Ticks are applied in order, each acknowledged once its outputs are durable.
- The clock of a process is never behind a tick that it has applied, even if another machine wrote it. A tick farther ahead of this
  machine's clock than clocks may differ (`AHEAD`) is rejected.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from faust.exceptions import ProducerSendError
from faust.types import TP

from schemas.codec import DecodeError, decode, encode
from schemas.records import Tick
from streams.clock import AHEAD, now_ms

if TYPE_CHECKING:
    from faust.types import EventT

    from streams.kafka.decide.agents import Decider

LOOK = 0.05
"""Seconds between two checks of the deadlines."""
REACH = 10.0
"""Seconds in which a broker must answer."""
APART = 100
"""Minimum ms between two ticks of a partition: a stage may want another one after a commit, which it cannot observe."""


class Ticker:
    """The ticks of one stage in the partitions that this process owns."""

    def __init__(self, decider: Decider, prefix: str) -> None:
        self._decider = decider
        ticks = decider.stage.ticks
        self._name = ticks.name if ticks else ""
        self.topic = prefix + self._name
        self._inputs = {topic.name: prefix + topic.name for topic in decider.stage.inputs}
        self._sink = decider.app.topic(self.topic, key_serializer="raw", value_serializer="raw")
        self._held: dict[int, deque[EventT[Any]]] = defaultdict(deque)
        self._wanted: set[int] = set()
        """Newly assigned partitions without a tick since."""
        self._written: dict[int, int] = {}
        """Offset of the last tick written, by partition, until it is read."""
        self._last: dict[int, int] = {}
        """Time of the last tick written, in ms since the epoch."""
        decider.app.task(self._run)

    def begin(self, partitions: Iterable[int]) -> None:
        """Schedule a tick for each newly assigned partition."""
        self._wanted |= set(partitions)

    def forget(self) -> None:
        """Drop all kept ticks after a revocation: they are delivered again to the next owner."""
        for held in self._held.values():
            for event in held:
                event.message.acked = True
        self._held.clear()
        self._written.clear()

    # ---- reading -------------------------------------------------------------------------------------------------

    def held(self, event: EventT[Any]) -> bool:
        """Whether this is a tick; if so, it is kept until `ripe` returns it."""
        message: Any = event.message
        if message.topic != self.topic:
            return False
        message.incref()
        self._held[message.partition].append(event)
        return True

    async def ripe(self) -> list[EventT[Any]]:
        """Return the ticks that can be applied; the caller acknowledges them."""
        found = []
        for partition, held in self._held.items():
            while held and not await self._too_early(partition, held[0]):
                event = held.popleft()
                if self._written.get(partition, event.message.offset + 1) <= event.message.offset:
                    del self._written[partition]
                found.append(event)
        return found

    async def _too_early(self, partition: int, event: EventT[Any]) -> bool:
        """Whether a tick has to wait for the ends that it names; a value that is no tick never waits, and is rejected."""
        try:
            tick = decode(self._decider.wire.plain(event.message.value or b""))
        except DecodeError:
            return False
        if not isinstance(tick, Tick):
            return False
        for name, end in tick.ends.items():
            if name in self._inputs and await self._comes(TP(self._inputs[name], partition), end):
                return True
        # A tick from farther ahead is rejected.
        if tick.time <= now_ms.machine() + AHEAD:
            now_ms.not_before(tick.time)
        return False

    async def _comes(self, tp: TP, end: int) -> bool:
        """Whether records below `end` are still to be decided; the broker is asked once everything read of the input is decided."""
        following = self._decider.following
        due = await following.position(tp)
        if due >= end:
            return False
        if following.reached(tp) <= due:
            with suppress(KafkaError, TimeoutError):
                async with asyncio.timeout(REACH):
                    return due < ((await self._decider.app.consumer.highwaters(tp))[tp] or 0)
        return True

    # ---- writing -------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Write due ticks without end; broker errors are retried."""
        try:
            while True:
                await asyncio.sleep(LOOK)
                with suppress(KafkaError, ProducerSendError):
                    await self._look()
        except Exception as error:  # noqa: BLE001 - without ticks a stage silently stops
            self._decider.end(error)

    async def _look(self) -> None:
        for partition in sorted(self._decider.owned.partitions):
            # It may have been revoked during a write, and its store closed.
            if partition in self._decider.owned.partitions and self._due(partition):
                await self._write(partition)

    def _due(self, partition: int) -> bool:
        if partition in self._wanted:
            return True
        deadline, now = self._decider.stage.deadline, now_ms()
        if deadline is None or partition in self._written or now < self._last.get(partition, 0) + APART:
            return False
        due = deadline(self._decider.rows(partition))
        return due is not None and due <= now

    async def _write(self, partition: int) -> None:
        places = {TP(topic, partition): name for name, topic in self._inputs.items()}
        ends = await self._decider.app.consumer.highwaters(*places)
        now = now_ms()
        tick = Tick(time=now, ends={places[tp]: end or 0 for tp, end in ends.items()})
        value = self._decider.wire.frame(self._name, encode(tick))
        sent = await (await self._sink.send(key=b"", value=value, partition=partition))
        self._wanted.discard(partition)
        self._last[partition] = now
        if self._decider.following.next.get(TP(self.topic, partition), 0) <= sent.offset:
            self._written[partition] = sent.offset
