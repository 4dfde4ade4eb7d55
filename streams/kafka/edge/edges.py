"""Runner of an edge on Kafka: a plain consumer and producer around the edge shared with the embedded runner, on one event loop.

Strategy: the loop polls the consumer without blocking, hands new records to the edge, and sends finished outputs in a task. A
record is finished once the broker has acknowledged all its outputs; its offset, and the finished ones above it, are then committed
periodically.

Delivery: at least once. Records in flight in a killed worker, or finished since its last commit, are repeated; the version makes
the repetition harmless (law 3). The outputs of a record are sent in order, after those of earlier records of its key where the edge
keeps that order.

Laws:
- Bodies are durable before the records that name them are sent.
- Records in flight when their partition is reassigned are processed twice; here their results are discarded.
- An input that cannot be processed, or whose output the broker rejects as too large, becomes a dead letter, sent like any output,
  with its headers; the bytes are omitted if they make the dead letter too large as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from schemas.codec import decode, encode
from schemas.ports import Logged
from schemas.records import Rejected
from streams.edges.base import EdgeBase, Finished
from streams.faults import fault
from streams.kafka.client.brokers import TIMEOUT, is_transient, retry_coordinator
from streams.kafka.client.closing import close_consumer
from streams.kafka.client.cluster import ClusterError
from streams.kafka.client.commits import decode_commit, encode_metadata
from streams.kafka.edge.outbox import Outbox
from streams.kafka.edge.source import Buffer
from streams.store import Offsets, StoreError
from streams.topology.flow import REJECTED

IDLE = 0.02
"""Seconds between two polls of the consumer while nothing arrives."""
POLL = 500
"""Records per poll."""
WAITS, MOST = 4, 0.1
"""Finished records wait for more: WAITS times the duration of the last send, at most MOST seconds.

Each send costs the edge and the broker several requests, whatever its size.
"""


class EdgeRunner:
    """Runs one edge in this process."""

    def __init__(
        self, edge: EdgeBase, buffer: Buffer, outbox: Outbox, client: Mapping[str, Any], topic: str, commit: float
    ) -> None:
        """`client`: settings of the consumer; `topic`: the input's name on the broker; `commit`: seconds between two commits."""
        self._edge = edge
        self._buffer = buffer
        self._outbox = outbox
        own = {"enable.auto.commit": False, "enable.partition.eof": True, "on_commit": self.committed}
        self._consumer = Consumer({**client, **own})
        self._topic = topic
        self._every = commit
        self._paused: bool | None = None
        """State last applied to all partitions; None: partitions were assigned since, and have none yet."""
        self._wake = asyncio.Event()
        self._stop: Callable[[], bool] = lambda: False
        self._failure: KafkaException | None = None
        """Why assigned partitions could not be opened."""
        self._moved: set[int] = set()
        self._bare: set[tuple[int, int]] = set()
        """Records (partition, offset) whose dead letters are too large for the log and are now sent without bytes."""
        self._next_commit = 0.0
        self._sending: asyncio.Task[None] | None = None
        self._next_sending = 0.0
        self.beat = time.monotonic()
        """Time (monotonic) of the last loop iteration."""
        self.worked: Callable[[float, float], None] = lambda *_: None
        """Callback after each send: time of the oldest input record (ms), and duration in seconds."""
        edge.wake = self._wake.set

    # ---- running -------------------------------------------------------------------------------------------------

    async def run(self, stop: Callable[[], bool]) -> None:
        """Run until `stop` returns true. Raises KafkaException, ClusterError, and what ends the edge."""
        self._stop = stop
        self._consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        while not stop():
            self.beat = time.monotonic()
            self._wake.clear()
            try:
                came = self._turn()
            except (KafkaException, StoreError):
                # While stopping, an error of the broker is irrelevant, and the store no longer waits for its storage.
                if stop():
                    return
                raise
            if not came:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), IDLE)
            else:
                await asyncio.sleep(0)

    def _turn(self) -> bool:
        """Do what is due, without waiting; whether any message arrived."""
        came = self._read()
        self._edge.launch()
        self._edge.check()
        self._reach()
        self._send()
        self._commit_if_due()
        return came

    async def close(self) -> None:
        """Send what is finished, commit it, and leave the group."""
        self._stop = lambda: True
        try:
            # What cannot be stored is not sent, and is repeated by the next owner.
            with suppress(KafkaException, StoreError):
                if self._sending is not None:
                    await self._sending
                await self._settle()
                self._commit(asynchronous=False)
        finally:
            # Even after a failure: without leaving the group, the partitions stay unassigned until the session expires.
            close_consumer(self._consumer.close)

    def places(self) -> list[tuple[str, int]]:
        """Return the open partitions; may be called from another thread."""
        return [(self._topic, partition) for partition in list(self._edge.windows)]

    def excused(self, stall: float) -> list[tuple[str, int]]:
        """Return the partitions with records in flight, which have deadlines of their own; none if the loop is stuck."""
        if time.monotonic() - self.beat > stall:
            return []
        return [(self._topic, partition) for partition, window in list(self._edge.windows.items()) if window.flying]

    # ---- in ------------------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Poll the consumer; whether any message arrived."""
        if self._paused is not self._buffer.full:
            self._paused = self._buffer.full
            (self._consumer.pause if self._paused else self._consumer.resume)(self._consumer.assignment())
        messages = self._consumer.consume(POLL, 0)
        if self._failure is not None:
            raise self._failure
        for message in messages:
            self._take(message)
        return bool(messages)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self._buffer.add(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            self._buffer.reach(message.partition() or 0, message.offset() or 0)
        elif not is_transient(error):
            raise KafkaException(error)

    def _reach(self) -> None:
        """Advance past offsets after the last record that hold none (transaction markers); they would be a permanent lag."""
        for partition, end in self._buffer.reached().items():
            if self._edge.windows[partition].reach(end):
                self._moved.add(partition)

    def _on_assign(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        # A worker that leaves reads nothing any more. While its client closes, the group does not answer either.
        if not places or self._stop():
            return
        try:
            known = retry_coordinator(lambda: consumer.committed(list(places), timeout=TIMEOUT), self._stop)
            starts = {place.partition: self._start(consumer, place) for place in known}
            # All in one call: a client that has only some of them cannot give them back, and does not close.
            consumer.incremental_assign([TopicPartition(self._topic, partition, at.next) for partition, at in starts.items()])
        except KafkaException as error:
            # Raised when the client has returned: its next callback would run with it, which may crash the process.
            self._failure = error
            return
        for partition, at in starts.items():
            self._edge.open(partition, at)
            self._buffer.open(partition, at.next, at.done)
        self._paused = None
        self._edge.taken()

    def _start(self, consumer: Consumer, place: TopicPartition) -> Offsets:
        """Return where to begin in a partition, by what was committed. Raises KafkaException."""
        low, _ = retry_coordinator(partial(consumer.get_watermark_offsets, place, timeout=TIMEOUT), self._stop)
        committed = decode_commit(max(place.offset, 0), place.metadata if place.offset >= 0 else None)
        start = max(committed.next, low)
        return Offsets(start, frozenset(offset for offset in committed.done if offset > start))

    def _on_revoke(self, _: Consumer, places: Sequence[TopicPartition]) -> None:
        with suppress(KafkaException):
            # The group may have rebalanced without this member.
            self._commit(asynchronous=False)
        self._on_lost(_, places)

    def _on_lost(self, _: Consumer, places: Sequence[TopicPartition]) -> None:
        for place in places:
            self._edge.shut(place.partition)
            self._buffer.shut(place.partition)
            self._moved.discard(place.partition)
            # The next owner, even if it is this worker, starts afresh.
            for known in (self._bare, self._outbox.refused):
                # Copied first: another thread adds to `refused` (`client/producer.py`).
                known -= {one for one in list(known) if one[0] == place.partition}

    # ---- out -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Start sending what was finished, unless a send is under way."""
        if self._sending is not None and self._sending.done():
            self._sending.result()
            self._sending = None
        due = time.monotonic() >= self._next_sending
        if self._sending is None and (self._edge.staging or (due and self._edge.finished)):
            self._sending = asyncio.get_running_loop().create_task(self._settle())
            self._sending.add_done_callback(lambda _: self._wake.set())

    async def _settle(self) -> None:
        finished, self._edge.finished = self._edge.finished, []
        staging = self._edge.drain_staging()
        if not finished and not staging:
            return
        begun = time.monotonic()
        times = [logged.time for one in finished if (logged := self._buffer.taken(one.partition, one.offset)) is not None]
        await asyncio.to_thread(self._edge.settle)
        for part in staging:
            # A crash here leaves part of the object's outputs, as a crash in `send` does.
            await self._outbox.put(part.frames, part.at, [])
        await self._outbox.send([(one, self._buffer.headers(one.partition, one.offset)) for one in finished if self._known(one)])
        fault("edge.sent")
        for one in finished:
            self._finish(one)
        now = time.monotonic()
        self._next_sending = now + min(MOST, WAITS * (now - begun))
        if times:
            self.worked(min(times), time.monotonic() - begun)

    def _known(self, one: Finished) -> bool:
        return self._buffer.taken(one.partition, one.offset) is not None

    def _finish(self, one: Finished) -> None:
        place = one.partition, one.offset
        logged = self._buffer.taken(*place)
        refused = place in self._outbox.refused
        self._outbox.refused.discard(place)
        if logged is None:
            return
        if refused:
            self._refuse(one, logged)
            return
        self._bare.discard(place)
        self._buffer.finished(*place)
        self._edge.finish(one)
        self._moved.add(one.partition)

    def _refuse(self, one: Finished, logged: Logged) -> None:
        """Replace each output too large for the log by a dead letter; if that is too large too, omit the rejected bytes from it."""
        place = one.partition, one.offset
        letter = _letter(one)
        if place in self._bare:
            raise ClusterError(
                f"{self._topic}, partition {one.partition}: the dead letter of {one.offset} is too large for the log"
            )
        if letter is None:
            self._edge.refuse(logged, ValueError("it gives a record that is too large for the log"), "too large for the log")
            return
        # A record of maximal size does not fit into a dead letter: it remains readable at the letter's origin.
        self._bare.add(place)
        (frame,) = one.frames
        bare = msgspec.structs.replace(letter, value=None)
        self._edge.done(one._replace(frames=[frame._replace(value=encode(bare), record=None)]))

    def _commit_if_due(self) -> None:
        if self._moved and time.monotonic() >= self._next_commit:
            self._next_commit = time.monotonic() + self._every
            self._commit(asynchronous=True)

    def committed(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        """Handle the result of a commit: failed partitions are committed again next time, or offsets would never catch up."""
        self._moved |= {place.partition for place in places if (error or place.error) is not None}

    def _commit(self, *, asynchronous: bool) -> None:
        moved, self._moved = self._moved, set()
        offsets: list[Any] = []
        for partition in sorted(moved):
            # Nothing is committed for partitions that were reassigned.
            if partition in self._edge.windows:
                at = self._edge.windows[partition].offsets()
                offsets.append(TopicPartition(self._topic, partition, at.next, metadata=encode_metadata(at)))
        try:
            if offsets and asynchronous:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            elif offsets:
                self.committed(None, self._consumer.commit(offsets=offsets, asynchronous=False))
        except KafkaException:
            # Partitions that are still assigned are committed with the next attempt.
            self._moved |= moved
            raise


def _letter(one: Finished) -> Rejected | None:
    """Return the dead letter about the record itself, if that is its only output; letters about members do not count."""
    if len(one.frames) != 1 or one.frames[0].topic != REJECTED.name:
        return None
    record = decode(one.frames[0].value)
    return record if isinstance(record, Rejected) and (record.partition, record.offset) == (one.partition, one.offset) else None
