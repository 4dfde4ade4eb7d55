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
  cancelled, or whose sends failed. A cancelled agent finishes its batch first.
- Records are decided in the order of the log, none left out: where one of an input that is not compacted does not follow its
  predecessor, the process ends before it is decided. Faust skips records when a recovery seeks while a fetch is being delivered.
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
from streams.kafka.apps import STORE
from streams.kafka.rows import TableRows
from streams.routing import Routed, Router, poisoned
from streams.topology import REJECTED, Stage

if TYPE_CHECKING:
    import faust
    from faust.types import EventT

BATCH = 256
WITHIN = 0.02
"""Records of a batch, and seconds that a batch waits for more."""
RAW: Mapping[str, Any] = {"key_serializer": "raw", "value_serializer": "raw"}


class SkippedError(Exception):
    """Records were not delivered: a fault of the client, which a new start mends, since nothing behind them is committed."""


def die(error: BaseException | None) -> None:
    """End the process before anything of the batch can be committed."""
    print(f"harvest: a batch could not be ended: {error!r}", file=sys.stderr, flush=True)  # noqa: T201 - its last word
    os._exit(1)


class Decider:
    """The agent of a stage, in an application of its own. Raises ValueError for a stage that waits for ticks.

    `prefix` stands before the name of each topic on the broker.
    """

    def __init__(
        self, app: faust.App, stage: Stage[Any, Any], prefix: str = "", end: Callable[[BaseException | None], None] = die
    ) -> None:
        if stage.deadline is not None:
            raise ValueError(f"{stage.name} waits for ticks, which nobody writes here")
        self.app = app
        self.stage = stage
        self.end = end
        self.names = {prefix + topic.name: topic.name for topic in stage.inputs}
        self.whole = {prefix + topic.name for topic in stage.inputs if topic.keep == "delete"}
        self.next: dict[Any, int] = {}
        self.router = Router(stage, REJECTED)
        partitions = app.conf.topic_partitions
        self.table: Any = app.Table("rows", partitions=partitions, key_type=bytes, value_type=bytes, options=dict(STORE))
        self.outputs = {topic.name: app.topic(prefix + topic.name, **RAW) for topic in (*stage.outputs, REJECTED)}
        app.agent(app.topic(*self.names, **RAW), name=stage.name)(self.run)

    async def run(self, stream: Any) -> None:
        """The agent."""
        # The generator is held by no name: one that is held after an error acknowledges nothing, and all stands still.
        async for events in stream.take_events(BATCH, within=WITHIN):
            await self._whole(events)

    async def _whole(self, events: Sequence[EventT[Any]]) -> None:
        """A batch, to its end, whatever befalls the agent."""
        task = asyncio.ensure_future(self.batch(events))
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
        for event in events:
            await self.follow(event.message)
            written, given = self.decide(event)
            rows += written
            routed += given
        await asyncio.gather(*rows)
        # Each send is awaited twice: once to be on its way, in order, and once to be acknowledged.
        sent = [await self.outputs[r.topic].send(key=r.key, value=encode(r.record)) for r in routed]
        await asyncio.gather(*sent)

    async def follow(self, message: Any) -> None:
        """See that no record was left out before this one, the first one included. Raises SkippedError."""
        if message.tp not in self.next:
            self.next.update(await self.app.consumer.earliest_offsets(message.tp))
        # What was committed since by another worker, which had the partition for a while, was not left out.
        due = max(self.next[message.tp], self.committed(message))
        if message.offset > due and message.topic in self.whole:
            raise SkippedError(f"{message.topic}-{message.partition}: {message.offset} came where {due} was due")
        self.next[message.tp] = message.offset + 1

    def committed(self, message: Any) -> int:
        """The offset that is committed in a record's partition."""
        consumer: Any = self.app.consumer
        return consumer._committed_offset.get(message.tp) or 0  # noqa: SLF001 - told nowhere else

    def decide(self, event: EventT[Any]) -> tuple[list[Awaitable[Any]], list[Routed]]:
        """The rows of one record, on their way to the changelog, and its outputs."""
        message: Any = event.message
        if message.value is None:
            return [], []
        origin = Origin(self.names[message.topic], message.partition, message.offset, self.committed(message))
        rows = TableRows(self.table, message.partition)
        try:
            given = [self.router.route(record) for record in self.stage.process(rows, decode(message.value), origin)]
        except Exception as error:  # noqa: BLE001 - rule 6: whatever it is, it must not end the partition
            rows.undo()
            time = int(message.timestamp * 1000)
            rejected = poisoned(self.stage.name, error, origin, message.key or b"", message.value, time)
            given = [self.router.route(rejected)]
        return rows.send(), given
