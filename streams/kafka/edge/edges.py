"""Edges on Kafka: a plain consumer and a plain producer around an edge that both runners share, on one event loop.

Strategy: the loop asks the consumer for records without waiting, gives the edge new work, and has a task send what it finished. A
record is finished when the broker has all that it gave; then its offset, and what is finished above it, is committed now and then.

Delivery: at least once. What a killed worker had in flight, or had finished since the last commit, is done again; its version makes
both one (law 3). A record's outputs go in their order, behind those of earlier records of its key where the edge keeps that order.

Laws:
- Bodies are durable before the records that name them are sent.
- What is in flight when its partition goes to another worker is done twice; here it counts for nothing any more.
- What cannot be processed, or gives what the broker refuses as too large, is a dead letter, sent like any output, with its headers;
  without its bytes, where that is too large as well.
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
from streams.kafka.client.brokers import TIMEOUT, passing, patient
from streams.kafka.client.cluster import ClusterError
from streams.kafka.client.commits import told, understood
from streams.kafka.edge.outbox import Outbox
from streams.kafka.edge.source import Buffer
from streams.store import Offsets
from streams.topology.flow import REJECTED

IDLE = 0.02
"""Seconds between two looks at the consumer while nothing comes."""
POLL = 500
"""Records of one look."""
WAITS, MOST = 4, 0.1
"""What is finished waits for more so many times as long as the last sending took, and so many seconds at the most: each costs the
edge and the broker several requests, whatever there is in it."""


class EdgeRunner:
    """One edge in this process."""

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
        """What all partitions were told last; None: those that have come since were told nothing."""
        self._wake = asyncio.Event()
        self._stop: Callable[[], bool] = lambda: False
        self._moved: set[int] = set()
        self._bare: set[tuple[int, int]] = set()
        """Records whose dead letters are too large for the log, and go without their bytes now."""
        self._next_commit = 0.0
        self._sending: asyncio.Task[None] | None = None
        self._next_sending = 0.0
        self.beat = time.monotonic()
        """When the loop went round last."""
        self.worked: Callable[[float, float], None] = lambda *_: None
        """Is told of what was sent together: when the oldest was written (ms), and how many seconds it took."""
        edge.wake = self._wake.set

    # ---- running -------------------------------------------------------------------------------------------------

    async def run(self, stop: Callable[[], bool]) -> None:
        """Until `stop` says so. Raises KafkaException, ClusterError, and what ends the edge."""
        self._stop = stop
        self._consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        while not stop():
            self.beat = time.monotonic()
            self._wake.clear()
            try:
                came = self._read()
            except KafkaException:
                # Whoever leaves need not know what the broker would have said.
                if stop():
                    return
                raise
            self._edge.launch()
            self._edge.check()
            self._reach()
            self._send()
            self._commit_if_due()
            if not came:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), IDLE)
            else:
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Send what is finished, commit it, and leave the group."""
        try:
            with suppress(KafkaException):
                if self._sending is not None:
                    await self._sending
                await self._settle()
                self._commit(asynchronous=False)
        finally:
            # Whatever failed: who leaves says so, or its partitions stand for a session.
            self._consumer.close()

    def places(self) -> list[tuple[str, int]]:
        """The partitions that are worked on; for another thread."""
        return [(self._topic, partition) for partition in list(self._edge.windows)]

    def excused(self, stall: float) -> list[tuple[str, int]]:
        """Those of which something is in flight, which has deadlines of its own; none, where the loop stands."""
        if time.monotonic() - self.beat > stall:
            return []
        return [(self._topic, partition) for partition, window in list(self._edge.windows.items()) if window.flying]

    # ---- in ------------------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Take what has come; says whether anything has."""
        if self._paused is not self._buffer.full:
            self._paused = self._buffer.full
            (self._consumer.pause if self._paused else self._consumer.resume)(self._consumer.assignment())
        messages = self._consumer.consume(POLL, 0)
        for message in messages:
            self._take(message)
        return bool(messages)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self._buffer.add(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            self._buffer.reach(message.partition() or 0, message.offset() or 0)
        elif not passing(error):
            raise KafkaException(error)

    def _reach(self) -> None:
        """What stands behind the last record, and is none (a marker of a transaction), is passed, or it would be a lag for ever."""
        for partition, end in self._buffer.reached().items():
            if self._edge.windows[partition].reach(end):
                self._moved.add(partition)

    def _on_assign(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        if not places:
            return
        for place in patient(lambda: consumer.committed(list(places), timeout=TIMEOUT), self._stop):
            low, _ = patient(partial(consumer.get_watermark_offsets, place, timeout=TIMEOUT), self._stop)
            committed = understood(max(place.offset, 0), place.metadata if place.offset >= 0 else None)
            start = max(committed.next, low)
            done = frozenset(offset for offset in committed.done if offset > start)
            self._edge.open(place.partition, Offsets(start, done))
            self._buffer.open(place.partition, start, done)
            consumer.incremental_assign([TopicPartition(place.topic, place.partition, start)])
        self._paused = None
        self._edge.taken()

    def _on_revoke(self, _: Consumer, places: Sequence[TopicPartition]) -> None:
        with suppress(KafkaException):
            # The group may have gone on without us.
            self._commit(asynchronous=False)
        self._on_lost(_, places)

    def _on_lost(self, _: Consumer, places: Sequence[TopicPartition]) -> None:
        for place in places:
            self._edge.shut(place.partition)
            self._buffer.shut(place.partition)
            self._moved.discard(place.partition)
            # Whoever has it next, and be it this one, begins anew.
            for known in (self._bare, self._outbox.refused):
                # What is refused is told by another thread (`mends.flushed`).
                known -= {one for one in list(known) if one[0] == place.partition}

    # ---- out -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Have what was finished sent, unless something is being sent."""
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
            # Who dies now leaves a part of what the object gives, as whoever dies while sending does.
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
        """What a record gave is too large for the log: a dead letter takes its place; that of a dead letter, one without bytes."""
        place = one.partition, one.offset
        letter = _letter(one)
        if place in self._bare:
            raise ClusterError(
                f"{self._topic}, partition {one.partition}: the dead letter of {one.offset} is too large for the log"
            )
        if letter is None:
            self._edge.refuse(logged, ValueError("it gives a record that is too large for the log"), "too large for the log")
            return
        # What fills a record to its brim finds no room in another: it stays where its origin says.
        self._bare.add(place)
        (frame,) = one.frames
        bare = msgspec.structs.replace(letter, value=None)
        self._edge.done(one._replace(frames=[frame._replace(value=encode(bare), record=None)]))

    def _commit_if_due(self) -> None:
        if self._moved and time.monotonic() >= self._next_commit:
            self._next_commit = time.monotonic() + self._every
            self._commit(asynchronous=True)

    def committed(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        """What became of a commit: one that failed is made again with the next, or offsets would stand though all is done."""
        self._moved |= {place.partition for place in places if (error or place.error) is not None}

    def _commit(self, *, asynchronous: bool) -> None:
        moved, self._moved = self._moved, set()
        offsets: list[Any] = []
        for partition in sorted(moved):
            # Nothing is committed of what went to another worker.
            if partition in self._edge.windows:
                at = self._edge.windows[partition].offsets()
                offsets.append(TopicPartition(self._topic, partition, at.next, metadata=told(at)))
        try:
            if offsets and asynchronous:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            elif offsets:
                self.committed(None, self._consumer.commit(offsets=offsets, asynchronous=False))
        except KafkaException:
            # What stays here is told with the next.
            self._moved |= moved
            raise


def _letter(one: Finished) -> Rejected | None:
    """The dead letter about a record that is all it gave; those about members have no place in the log."""
    if len(one.frames) != 1 or one.frames[0].topic != REJECTED.name:
        return None
    record = decode(one.frames[0].value)
    return record if isinstance(record, Rejected) and (record.partition, record.offset) == (one.partition, one.offset) else None
