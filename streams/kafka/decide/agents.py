"""Stateful stages on Kafka: Faust agents made from the topology value.

Strategy: a stage is a consumer group with one agent over all its inputs and one table. The records of a batch are decided one by
one, in order; then their results become durable in an order that tolerates a crash at any point: rows, then outputs, then the
offset. `streams/simulator.py` crashes at the same points.

Delivery: at least once. Records that a killed worker did not commit are read again; stages repeat their outputs, and versions
absorb the repetition.

Laws:
- Outputs are sent once the broker has acknowledged every row of the batch; the batch is acknowledged once the broker has
  acknowledged every output.
- A record that a stage cannot process becomes a dead letter with its bytes and headers, awaited like any output; its rows are
  undone. No exception of the stage leaves the agent.
- A batch completes, or the process ends at once (`die`) without committing any of it. A cancelled agent finishes its batch first,
  and no partition is revoked before that.
- Records are decided in log order without omissions (`gap_detector.py`), by the owner of their partition
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
from schemas.records import Record, Rejected, Tick
from schemas.wire import SINGLE, Wire
from streams.clock import now_ms
from streams.kafka.client.cluster import PROBE, Cluster, ClusterError
from streams.kafka.decide.apps import STORE
from streams.kafka.decide.gap_detector import PATIENCE, GapDetector
from streams.kafka.decide.offset_probe import make_probe
from streams.kafka.decide.partition_ownership import OwnedPartitions, UnrecoveredError
from streams.kafka.decide.rows import TableRows, durable, of_store
from streams.kafka.decide.sending import Outgoing, RecordPosition, Sender
from streams.kafka.decide.ticks import Ticker
from streams.kafka.worker.telemetry import WorkerTelemetry
from streams.telemetry import Written
from streams.topology.flow import REJECTED, Stage
from streams.topology.routing import Router, poisoned_letter

if TYPE_CHECKING:
    import faust
    from faust.types import EventT

BATCH = 256
"""Maximum number of records of a batch."""
WAITS = 4
LEAST, MOST = 0.02, 0.25
"""Bounds, in seconds, of the time that a batch waits until it is full: WAITS times the duration of the last batch.

The first batch after a pause waits for LEAST. Every batch costs the stage and the broker several requests, whatever its size, and
while cores are busy there is no hurry.
"""
STEP = 0.005
"""Seconds between two checks whether a waiting batch is full."""
LARGEST = 999_000
"""Bytes of a record and its key that topics accept by default; if the broker has to reject a record, its whole batch fails."""
RAW: Mapping[str, Any] = {"key_serializer": "raw", "value_serializer": "raw"}


def die(error: BaseException | None) -> None:
    """End the process before anything of the batch can be committed."""
    print(f"harvest: {exit_reason(error)}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(1)


def exit_reason(error: BaseException | None) -> str:
    """Return the reason why a worker ends: an UnrecoveredError by its text, any other error by its repr."""
    return f"it cannot go on: {error if isinstance(error, UnrecoveredError) else repr(error)}"


class Decider:
    """The agent of a stage, in an application of its own.

    `cluster` is that of the application; `wire` is the format of values there.
    """

    def __init__(
        self,
        app: faust.App,
        stage: Stage[Any, Any],
        cluster: Cluster,
        end: Callable[[BaseException | None], None] = die,
        wire: Wire = SINGLE,
        largest: int = LARGEST,
    ) -> None:
        """`largest`: bytes of a record and its key that every topic written by this stage accepts."""
        self.app = app
        self.stage = stage
        self.end = end
        self.wire = wire
        self._prefix = prefix = cluster.prefix
        self._largest = largest
        inputs = (*stage.inputs, *((stage.ticks,) if stage.ticks else ()))
        self.names = {prefix + topic.name: topic.name for topic in inputs}
        self.router = Router(stage, REJECTED)
        partitions = app.conf.topic_partitions
        self.table: Any = app.Table("rows", partitions=partitions, key_type=bytes, value_type=bytes, options=dict(STORE))
        seen = make_probe(cluster.client(group__id=cluster.group(PROBE)))
        self.following = GapDetector(app, {prefix + topic.name for topic in inputs if topic.keep != "compact"}, seen)
        self.owned = OwnedPartitions(self)
        self.sender = Sender(cluster, lambda: self.owned.session, self.owned.awake)
        self.ticker = Ticker(self, prefix) if stage.ticks else None
        self.going: asyncio.Task[None] | None = None
        self._ended = time.monotonic()
        self._took = 0.0
        """Duration of the last batch in seconds."""
        self._holds = False
        """Whether a batch is being collected or processed."""
        self.telling: WorkerTelemetry | None = None
        """Receives what the broker has acknowledged."""
        app.agent(app.topic(*self.names, **RAW), name=stage.name)(self.run)

    async def run(self, stream: Any) -> None:
        """Run the agent on Faust's queue: passing each record through the stream would take longer than deciding it."""
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
        """Return the next batch, empty when the stream ends: records taken by then stay unacknowledged."""
        asked = time.monotonic()
        # The queue of a stream that ends raises it.
        with suppress(StopAsyncIteration):
            events = [await queue.get()]
            self._holds = True
            came = time.monotonic()
            until = came + self.waits(came - asked)
            while queue.qsize() < BATCH - 1 and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110 - Faust signals no event
                await asyncio.sleep(min(left, STEP))
            while len(events) < BATCH and not queue.empty():
                events.append(queue.get_nowait())
            if not self.app.should_stop:
                # Faust reads the time of the last record here, and considers an agent without one hung.
                self.app.monitor.stream_inbound_time.update(dict.fromkeys((event.message.tp for event in events), came))
                return events
        return []

    def waits(self, paused: float) -> float:
        """Return the seconds that a batch waits for more records; `paused`: seconds without input before its first record."""
        return min(MOST, max(LEAST, WAITS * self._took)) if paused < MOST else LEAST

    def _ended_well(self) -> bool:
        going = self.going
        return going is not None and going.done() and not going.cancelled() and going.exception() is None

    def idle(self) -> bool:
        """Whether nothing was decided for PATIENCE seconds, and no batch is pending."""
        return not self._holds and (self.going is None or self.going.done()) and time.monotonic() - self._ended > PATIENCE

    async def _whole(self, events: Sequence[EventT[Any]]) -> None:
        """Process a batch to its end, even if the agent is cancelled."""
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
        """Decide the records, then send the rows, then the outputs."""
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
        self,
        telling: WorkerTelemetry,
        events: Sequence[EventT[Any]],
        sent: Iterable[tuple[Outgoing, RecordPosition]],
        seconds: float,
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
        """Return the rows of a partition, for one record."""
        return TableRows(self.table, partition, self.owned.cursors(partition))

    def decide(self, event: EventT[Any]) -> tuple[list[Outgoing], list[Outgoing]]:
        """Decide one record; return its rows, for the changelog, and its outputs."""
        message: Any = event.message
        if message.value is None:
            return [], []
        origin = Origin(self.names[message.topic], message.partition, message.offset, self.following.committed(message.tp))
        rows = self.rows(message.partition)
        try:
            plain = decode(self.wire.plain(message.value))
            self.router.admit(origin.topic, plain, now_ms.machine())
            if isinstance(plain, Tick):
                plain = self.owned.tick(plain, origin.partition)
            given = [self._output(record) for record in self.stage.process(rows, plain, self.owned.origin(origin))]
        except ClusterError:
            # The registry does not answer, which is not the record's fault: it is read again after a restart.
            rows.undo()
            raise
        except Exception as error:
            if of_store(error):
                raise
            # Rule 6: no other exception may stop the partition.
            rows.undo()
            stamp = int(message.timestamp * 1000)
            given = [
                self._letter(poisoned_letter(self.stage.name, error, origin, message.key or b"", message.value, stamp), message)
            ]
        return rows.written(), given

    def _output(self, record: Record, headers: Any = None) -> Outgoing:
        """Encode a record for its topic. Raises ValueError if it is too large for the log."""
        topic, key, _ = self.router.route(record)
        value = self.wire.frame(topic, encode(record))
        if len(value) + len(key) > self._largest:
            raise ValueError(f"a record of {len(value)} bytes for {topic} is too large for the log")
        return Outgoing(self._prefix + topic, key, value, headers=headers)

    def _letter(self, rejected: Rejected, message: Any) -> Outgoing:
        try:
            return self._output(rejected, message.headers or None)
        except ValueError:
            # A record of maximal size does not fit into a dead letter: it remains readable at the letter's origin.
            return self._output(msgspec.structs.replace(rejected, value=None), message.headers or None)
