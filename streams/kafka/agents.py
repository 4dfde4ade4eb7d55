"""Stages that decide, run on Kafka by Faust: agents made from the topology value.

Strategy: a stage is a consumer group with one agent over all its inputs and one table. A batch of records is decided one by one, in
order; then all that it gave becomes durable, in an order that any crash may cut: rows, then outputs, then the offset.
`streams/simulator.py` cuts in the same places.

Delivery: at least once. What a killed worker did not commit is read again; stages repeat what they gave, and versions absorb it.

Laws:
- Outputs are sent when the broker has acknowledged every row of the batch; the batch is acknowledged when the broker has
  acknowledged every output.
- A record that a stage cannot process becomes a dead letter, sent and awaited like any output; its rows are undone. No exception
  of ours leaves the agent, for Faust acknowledges what an agent raised at.
- A batch ends whole, or the process ends at once (`die`), with nothing committed of it: Faust acknowledges a batch whose agent is
  cancelled, or whose sends failed. A cancelled agent finishes its batch first, and no partition is given away before that.
- Records are decided in the order of the log, none left out (`following.py`), by the owner of their partition (`owning.py`).
- Keys are partitioned by murmur2 (law 7), as Faust's producer does; no stage reads a clock: a dead letter has its record's time.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemas.codec import decode, encode
from schemas.ports import Origin
from schemas.wire import SINGLE, Wire
from streams.kafka.apps import STORE
from streams.kafka.cluster import ClusterError
from streams.kafka.following import Following
from streams.kafka.owning import Owned
from streams.kafka.rows import TableRows
from streams.kafka.ticks import Ticker
from streams.routing import Routed, Router, poisoned
from streams.topology import REJECTED, Stage

if TYPE_CHECKING:
    import faust
    from faust.types import EventT

BATCH = 256
WITHIN = 0.02
"""Records of a batch, and seconds that a batch waits for more."""
RAW: Mapping[str, Any] = {"key_serializer": "raw", "value_serializer": "raw"}


def die(error: BaseException | None) -> None:
    """End the process before anything of the batch can be committed."""
    print(f"harvest: a batch could not be ended: {error!r}", file=sys.stderr, flush=True)  # noqa: T201 - its last word
    os._exit(1)


class Decider:
    """The agent of a stage, in an application of its own.

    `prefix` stands before the name of each topic on the broker; `wire` is how values stand there.
    """

    def __init__(
        self,
        app: faust.App,
        stage: Stage[Any, Any],
        prefix: str = "",
        end: Callable[[BaseException | None], None] = die,
        wire: Wire = SINGLE,
    ) -> None:
        self.app = app
        self.stage = stage
        self.end = end
        self.wire = wire
        inputs = (*stage.inputs, *((stage.ticks,) if stage.ticks else ()))
        self.names = {prefix + topic.name: topic.name for topic in inputs}
        self.following = Following(app, {prefix + topic.name for topic in inputs if topic.keep == "delete"})
        self.router = Router(stage, REJECTED)
        partitions = app.conf.topic_partitions
        self.table: Any = app.Table("rows", partitions=partitions, key_type=bytes, value_type=bytes, options=dict(STORE))
        self.outputs = {topic.name: app.topic(prefix + topic.name, **RAW) for topic in (*stage.outputs, REJECTED)}
        self.owned = Owned(self)
        self.ticker = Ticker(self, prefix) if stage.ticks else None
        self.going: asyncio.Task[None] | None = None
        app.agent(app.topic(*self.names, **RAW), name=stage.name)(self.run)

    async def run(self, stream: Any) -> None:
        """The agent."""
        # The generator is held by no name: one that is held after an error acknowledges nothing, and all stands still.
        async for events in stream.take_events(BATCH, within=WITHIN):
            await self._whole(events)

    async def _whole(self, events: Sequence[EventT[Any]]) -> None:
        """A batch, to its end, whatever befalls the agent."""
        task = self.going = asyncio.ensure_future(self.batch(events))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise
        finally:
            if not task.done() or task.cancelled():
                self.end(None)
            elif task.exception() is not None:
                self.end(task.exception())

    async def batch(self, events: Sequence[EventT[Any]]) -> None:
        """Decide, then rows, then outputs."""
        rows: list[Awaitable[Any]] = []
        routed: list[Routed] = []
        ticks: list[EventT[Any]] = []
        for event in self.owned.current(events):
            if not await self.following.takes(event.message):
                continue
            if self.ticker is None or not self.ticker.held(event):
                self._decided(event, rows, routed)
        if self.ticker is not None:
            ticks = await self.ticker.ripe()
            for tick in ticks:
                self._decided(tick, rows, routed)
        self.owned.awake()
        await asyncio.gather(*rows)
        # Each send is awaited twice: once to be on its way, in order, and once to be acknowledged.
        sent = [await self.outputs[r.topic].send(key=r.key, value=self.wire.frame(r.topic, encode(r.record))) for r in routed]
        await asyncio.gather(*sent)
        for tick in ticks:
            tick.ack()

    def _decided(self, event: EventT[Any], rows: list[Awaitable[Any]], routed: list[Routed]) -> None:
        written, given = self.decide(event)
        rows += written
        routed += given

    def rows(self, partition: int) -> TableRows:
        """The rows of a partition, for one record."""
        return TableRows(self.table, partition, self.owned.cursors(partition))

    def decide(self, event: EventT[Any]) -> tuple[list[Awaitable[Any]], list[Routed]]:
        """The rows of one record, on their way to the changelog, and its outputs."""
        message: Any = event.message
        if message.value is None:
            return [], []
        origin = Origin(self.names[message.topic], message.partition, message.offset, self.following.committed(message.tp))
        rows = self.rows(message.partition)
        try:
            given = [
                self.router.route(record) for record in self.stage.process(rows, decode(self.wire.plain(message.value)), origin)
            ]
        except ClusterError:
            # The registry does not answer: no fault of the record's, which comes again when the process is started anew.
            rows.undo()
            raise
        except Exception as error:  # noqa: BLE001 - rule 6: whatever it is, it must not end the partition
            rows.undo()
            stamp = int(message.timestamp * 1000)
            rejected = poisoned(self.stage.name, error, origin, message.key or b"", message.value, stamp)
            given = [self.router.route(rejected)]
        return rows.send(), given
