"""Stages that decide, run on Kafka by Faust: agents made from the topology value.

Strategy: a stage is a consumer group with one agent over all its inputs and one table. A batch of records is decided one by one, in
order; then all that it gave becomes durable, in an order that any crash may cut: rows, then outputs, then the offset.
`streams/simulator.py` cuts in the same places.

Delivery: at least once. What a killed worker did not commit is read again; stages repeat what they gave, and versions absorb it.

Laws:
- Outputs are sent when the broker has acknowledged every row of the batch; the batch is acknowledged when the broker has
  acknowledged every output.
- A record that a stage cannot process becomes a dead letter with its bytes and headers, awaited like any output; its rows are
  undone. No exception of ours leaves the agent.
- A batch ends whole, or the process ends at once (`die`), with nothing committed of it. A cancelled agent finishes its batch first,
  and no partition is given away before that.
- Records are decided in the order of the log, none left out (`gap_detector.py`), by the owner of their partition
  (`partition_ownership.py`).
- Keys are partitioned by murmur2 (law 7), as Faust's producer does; no stage reads a clock: a dead letter has its record's time.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from schemas.codec import decode, encode
from schemas.ports import Origin
from schemas.records import Record, Rejected
from schemas.wire import SINGLE, Wire
from streams.clock import now_ms
from streams.kafka.client.cluster import ClusterError
from streams.kafka.decide.apps import STORE
from streams.kafka.decide.gap_detector import PATIENCE, GapDetector
from streams.kafka.decide.offset_probe import witness
from streams.kafka.decide.partition_ownership import OwnedPartitions, UnrecoveredError
from streams.kafka.decide.rows import TableRows, durable, of_store
from streams.kafka.decide.sending import Outgoing, RecordPosition, Sender
from streams.kafka.decide.ticks import Ticker
from streams.kafka.worker.telemetry import Telling
from streams.telemetry import Written
from streams.topology.flow import REJECTED, Stage
from streams.topology.routing import Router, poisoned_letter

if TYPE_CHECKING:
    import faust
    from faust.types import EventT

BATCH = 256
"""Records of a batch."""
WAITS = 4
LEAST, MOST = 0.02, 0.25
"""A batch that is not full waits for more records so many times as long as the last one took, within these bounds in seconds; the
first one behind a pause, for the least. Each costs the stage and the broker several requests, whatever there is in it, and where
cores are busy there is no hurry."""
STEP = 0.005
"""Seconds between two looks at whether a batch that waits is full."""
LARGEST = 999_000
"""Bytes of a record, and its key, that topics take as brokers make them; a client that is told so late gives up the whole batch."""
RAW: Mapping[str, Any] = {"key_serializer": "raw", "value_serializer": "raw"}


def die(error: BaseException | None) -> None:
    """End the process before anything of the batch can be committed."""
    print(f"harvest: {last_word(error)}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(1)


def last_word(error: BaseException | None) -> str:
    """Why a worker ends: what we say ourselves as we say it, any other error with its kind."""
    return f"it cannot go on: {error if isinstance(error, UnrecoveredError) else repr(error)}"


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
        largest: int = LARGEST,
    ) -> None:
        """`largest`: bytes of a record, and its key, that all topics take which this writes."""
        self.app = app
        self.stage = stage
        self.end = end
        self.wire = wire
        self._prefix = prefix
        self._largest = largest
        inputs = (*stage.inputs, *((stage.ticks,) if stage.ticks else ()))
        self.names = {prefix + topic.name: topic.name for topic in inputs}
        self.router = Router(stage, REJECTED)
        partitions = app.conf.topic_partitions
        self.table: Any = app.Table("rows", partitions=partitions, key_type=bytes, value_type=bytes, options=dict(STORE))
        brokers = ",".join(f"{url.host}:{url.port}" for url in app.conf.broker)
        seen = witness({"bootstrap.servers": brokers, "client.id": "harvest", "log_level": 0})
        self.following = GapDetector(app, {prefix + topic.name for topic in inputs if topic.keep != "compact"}, seen)
        self.owned = OwnedPartitions(self)
        self.sender = Sender(brokers, lambda: self.owned.session, self.owned.awake)
        self.ticker = Ticker(self, prefix) if stage.ticks else None
        self.going: asyncio.Task[None] | None = None
        self._ended = time.monotonic()
        self._took = 0.0
        """Seconds that the last batch took."""
        self._holds = False
        """Whether there are records in hand, decided or not."""
        self.telling: Telling | None = None
        """Is told of what the broker has acknowledged."""
        app.agent(app.topic(*self.names, **RAW), name=stage.name)(self.run)

    async def run(self, stream: Any) -> None:
        """The agent. It takes records where Faust puts them: the way of each through the stream would take longer than deciding."""
        await stream.maybe_start()
        queue = stream.channel.queue
        while True:
            try:
                events = await self._taken(queue)
                if not events:
                    return
                try:
                    await self._whole(events)
                finally:
                    if self._ended_well():
                        for event in events:
                            event.ack()
            finally:
                self._holds = False

    async def _taken(self, queue: Any) -> list[EventT[Any]]:
        """The next batch; none, where the stream ends: what was taken by then is acknowledged by nobody."""
        asked = time.monotonic()
        # It is raised by the queue of a stream that ends.
        with suppress(StopAsyncIteration):
            events = [await queue.get()]
            self._holds = True
            came = time.monotonic()
            until = came + self.waits(came - asked)
            while queue.qsize() < BATCH - 1 and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110 - Faust puts, and tells nobody
                await asyncio.sleep(min(left, STEP))
            while len(events) < BATCH and not queue.empty():
                events.append(queue.get_nowait())
            if not self.app.should_stop:
                # Faust looks here for when it had a record last, and takes an agent that has none for one that hangs.
                self.app.monitor.stream_inbound_time.update(dict.fromkeys((event.message.tp for event in events), came))
                return events
        return []

    def waits(self, paused: float) -> float:
        """Seconds that a batch waits for more, whose first record came after so many of nothing."""
        return min(MOST, max(LEAST, WAITS * self._took)) if paused < MOST else LEAST

    def _ended_well(self) -> bool:
        going = self.going
        return going is not None and going.done() and not going.cancelled() and going.exception() is None

    def idle(self) -> bool:
        """Whether there has been nothing to decide for a while, and there is nothing in hand."""
        return not self._holds and (self.going is None or self.going.done()) and time.monotonic() - self._ended > PATIENCE

    async def _whole(self, events: Sequence[EventT[Any]]) -> None:
        """A batch, to its end, whatever befalls the agent."""
        begun = time.monotonic()
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
            self._ended = time.monotonic()
            self._took = self._ended - begun

    async def batch(self, events: Sequence[EventT[Any]]) -> None:
        """Decide, then rows, then outputs."""
        begun = time.monotonic()
        rows: list[Outgoing] = []
        outputs: list[Outgoing] = []
        ticks: list[EventT[Any]] = []
        for event in self.owned.current(events):
            if not await self.following.takes(event.message):
                continue
            if self.ticker is None or not self.ticker.held(event):
                self._decided(event, rows, outputs)
        if self.ticker is not None:
            ticks = await self.ticker.ripe()
            for tick in ticks:
                self._decided(tick, rows, outputs)
        durable(self.table, await self.sender.send(rows))
        acknowledged = await self.sender.send(outputs)
        for tick in ticks:
            tick.ack()
        if self.telling is not None:
            self._tell(self.telling, events, zip(outputs, acknowledged, strict=True), time.monotonic() - begun)

    def _tell(
        self, telling: Telling, events: Sequence[EventT[Any]], sent: Iterable[tuple[Outgoing, RecordPosition]], seconds: float
    ) -> None:
        for output, at in sent:
            value = self.wire.plain(output.value or b"")
            topic = output.topic.removeprefix(self._prefix)
            telling.wrote(Written(self.stage.name, topic, at.partition, at.offset, value))
        oldest: dict[str, float] = {}
        for message in (event.message for event in events):
            oldest[message.topic] = min(oldest.get(message.topic, message.timestamp), message.timestamp)
        for topic, stamp in oldest.items():
            telling.worked(self.names[topic], stamp * 1000, seconds)

    def _decided(self, event: EventT[Any], rows: list[Outgoing], outputs: list[Outgoing]) -> None:
        written, given = self.decide(event)
        rows += written
        outputs += given

    def rows(self, partition: int) -> TableRows:
        """The rows of a partition, for one record."""
        return TableRows(self.table, partition, self.owned.cursors(partition))

    def decide(self, event: EventT[Any]) -> tuple[list[Outgoing], list[Outgoing]]:
        """The rows of one record, for the changelog, and its outputs."""
        message: Any = event.message
        if message.value is None:
            return [], []
        origin = Origin(self.names[message.topic], message.partition, message.offset, self.following.committed(message.tp))
        rows = self.rows(message.partition)
        try:
            plain = decode(self.wire.plain(message.value))
            self.router.admit(origin.topic, plain, now_ms.machine())
            given = [self._output(record) for record in self.stage.process(rows, plain, origin)]
        except ClusterError:
            # The registry does not answer: no fault of the record's, which comes again when the process is started anew.
            rows.undo()
            raise
        except Exception as error:
            if of_store(error):
                raise
            # Rule 6: whatever else it is, it must not end the partition.
            rows.undo()
            stamp = int(message.timestamp * 1000)
            given = [
                self._letter(poisoned_letter(self.stage.name, error, origin, message.key or b"", message.value, stamp), message)
            ]
        return rows.written(), given

    def _output(self, record: Record, headers: Any = None) -> Outgoing:
        """Raises ValueError for a record that the log does not take."""
        topic, key, _ = self.router.route(record)
        value = self.wire.frame(topic, encode(record))
        if len(value) + len(key) > self._largest:
            raise ValueError(f"a record of {len(value)} bytes for {topic} is too large for the log")
        return Outgoing(self._prefix + topic, key, value, headers=headers)

    def _letter(self, rejected: Rejected, message: Any) -> Outgoing:
        try:
            return self._output(rejected, message.headers or None)
        except ValueError:
            # What fills a record to its brim finds no room in another: it stays where its origin says.
            return self._output(msgspec.structs.replace(rejected, value=None), message.headers or None)
