"""Sink on Kafka: a consumer group that applies a Broker's topic to any `BrokerIndex`, or `summaries` to the feed.

Strategy: one thread polls, so that the member stays in the group; requests to the index run in threads, one at a time for a
partition. Records that arrive meanwhile wait, up to HELD; then the partition is paused. The start offsets come from the index,
which knows what it holds, not from the group: a new index is filled from the beginning, and one that replaced another continues at
its own offsets. The group's committed offsets only serve those who watch its lag.

Delivery: at least once; versions make it effectively once. The order of a batch is: dead letters for invalid records, awaited; the
changes, acknowledged; dead letters for refused changes, awaited; the index's own offset; the group's. A kill between any two
repeats the batch. Offsets are written for all partitions together, while the next batches are under way, so that they do not queue
behind each other. An engine that refuses nothing gets changes and offsets in one commit, for all partitions together.

Laws:
- Nothing counts as applied that was not acknowledged, or is not in `rejected` with its bytes and headers.
- If the index cannot be written, or was replaced, all partitions are paused; then the index is asked again for the start offsets,
  at growing intervals.
- An index whose offset is beyond the topic's end, or below its first record, is IndexDamaged: it must be rebuilt.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from schemas.ports import BrokerIndex, Follower, Logged
from sinks.feed.feed import Feed
from sinks.index.errors import IndexMoved
from streams.kafka.client.brokers import is_transient
from streams.kafka.client.closing import close_consumer
from streams.kafka.client.cluster import Cluster, ClusterError, cluster_error, membership
from streams.kafka.sink.batch_applier import Applier
from streams.kafka.sink.buffer import HELD_BYTES, Part, Read, is_commit_due
from streams.kafka.sink.dead_letter_producer import DeadLetterProducer
from streams.kafka.sink.feed_filling import FeedFilling
from streams.kafka.sink.position import PositionKeeper, start_of
from streams.topology.flow import Edge, archive

NOTE = logging.getLogger("harvest").warning
TAKEN = 500
"""Maximum number of records per poll."""
REASON = 300
"""Characters of a failure that the readiness check shows."""
POLL, BUSY = 0.5, 0.02
"""Seconds of a poll: while the index is idle, and while it is busy."""
SESSION = 10.0
"""Seconds without a heartbeat after which a member leaves the group."""
LOOK = 5.0
"""Seconds between checks whether the index was replaced, while nothing else happens."""
PATIENCE = 10.0
"""Default seconds that the index may take for an answer."""
REQUESTS = 4
"""Default number of partitions that are written to the index concurrently."""


class IndexSink:
    """A member of the group `index.BROKER`, or of that of another sink (`stage`), which fills its first input.

    `requests`: number of partitions written to the index concurrently, beside the offsets.
    `whole`: the engine refuses nothing, and must not be called from several threads (`requests` is 1); a batch of all partitions
    and its offsets are one commit, the most expensive operation. `note` gets one line about each problem that delays the sink.
    `plain` converts a value to single-object encoding. `patience`: seconds after which a request without an answer counts as a
    failure of the index, for those who ask whether it can be written; the request itself goes on.
    """

    def __init__(
        self,
        cluster: Cluster,
        broker: str,
        index: Follower,
        *,
        stage: Edge[Any, Any] | None = None,
        requests: int = REQUESTS,
        whole: bool = False,
        session: float = SESSION,
        instance: str = "",
        note: Callable[[str], None] = NOTE,
        plain: Callable[[bytes], bytes] = lambda value: value,
        patience: float = PATIENCE,
    ) -> None:
        self.cluster = cluster
        self.name = archive(broker).name if stage is None else stage.inputs[0].name
        name = f"index.{broker}" if stage is None else stage.name
        self.topic = cluster.topic(self.name)
        self.index = index
        self.note = note
        self._whole = whole
        self.parts: dict[int, Part] = {}
        self.applier = Applier(index, DeadLetterProducer(cluster), whole=whole, plain=plain, stage=name.partition(".")[0])
        self._placing = PositionKeeper()
        self._looked = time.monotonic()
        self._patience = patience
        self._asks = 0.0
        """Time (monotonic) since which the polling thread waits for the index to return its offsets; 0: it does not."""
        self._pool = ThreadPoolExecutor(requests, name)
        self._failure = ""
        """Reason of the last failure, after a colon."""
        self._behind = ThreadPoolExecutor(1, f"{name}.offsets")
        self._passing: Future[Mapping[int, int]] | None = None
        """Write of the index's offsets that is under way."""
        group = cluster.group(name)
        settings = {"enable__auto__commit": False, "enable__partition__eof": True, "auto__offset__reset": "error"}
        settings |= {"fetch__wait__max__ms": 50, "queued__max__messages__kbytes": HELD_BYTES >> 10}
        # Pause of the client once its queue is full; the default is a second.
        settings |= {"fetch__queue__backoff__ms": 10}
        client = cluster.client(group__id=group, **settings) | membership(session, instance) | cluster.named(instance)
        self._consumer = Consumer(client | {"on_commit": self._heard})
        self._filling = FeedFilling(self._consumer, self.topic, index, note) if isinstance(index, Feed) else None

    def run(self, stop: Callable[[], bool]) -> None:
        """Consume until `stop` returns true. Raises IndexDamaged, ClusterError, and unexpected errors."""
        self._consumer.subscribe([self.topic], on_assign=self._taken, on_revoke=self._given_up, on_lost=self._lost)
        try:
            while not stop():
                self._take(self._consumer.consume(TAKEN, BUSY if self._busy() or self._waiting() else POLL))
                self._settle()
                self._place()
                self._launch()
        except KafkaException as error:
            raise cluster_error(self.cluster, error.args[0]) from error
        finally:
            self._leave()
            self._pool.shutdown()
            self._behind.shutdown()
            close_consumer(self._consumer.close)

    # ---- for other threads ---------------------------------------------------------------------------------------

    def places(self) -> list[tuple[str, int]]:
        """Return the assigned partitions."""
        return [(self.topic, partition) for partition in list(self.parts)]

    def reaches(self) -> bool:
        """Whether the index has returned its offsets, and nothing has failed since."""
        return self._placing.done

    def trouble(self) -> str:
        """Return why the index cannot be written now; empty if it can."""
        begun = [part.begun for part in list(self.parts.values()) if part.task is not None] + (
            [asks] if (asks := self._asks) else []
        )
        silent = time.monotonic() - min(begun) if begun else 0.0
        if silent > self._patience:
            return f"the index has not answered for {silent:.0f} s"
        return "" if self.reaches() else f"the index cannot be written{self._failure}"

    def excused(self) -> list[tuple[str, int]]:
        """Return partitions whose standstill is excused: those with a request under way; without an index, all of them."""
        if self._asks or not self.reaches():
            return self.places()
        return [(self.topic, partition) for partition, part in list(self.parts.items()) if part.task is not None or part.passing()]

    # ---- reading -------------------------------------------------------------------------------------------------

    def _taken(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        """Start paused on an assignment: nothing is read before the index has returned its offsets."""
        consumer.assign([TopicPartition(p.topic, p.partition, OFFSET_BEGINNING) for p in places])
        consumer.pause(list(places))
        self.parts = {place.partition: Part(0, whole=self._whole) for place in places}
        self._placing.lost()

    def _given_up(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self._leave()

    def _lost(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        """Drop partitions that others already own: nothing can be committed any more."""
        self._answered(wait=True)
        self.parts = {}

    def _leave(self) -> None:
        """Wait for requests under way, and commit."""
        _, errors = self._answered(wait=True)
        if not errors:
            self._pass()
            self._answered(wait=True)
        self._commit(wait=True)
        self.parts = {}

    def _take(self, messages: Sequence[Message]) -> None:
        """Add messages to their partitions, and pause the partitions that are full."""
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                if self._placing.done and (part := self.parts.get(message.partition() or 0)) is not None:
                    part.end = message.offset() or 0
            elif error is not None:
                self._told(error)
            elif self._placing.done and (part := self.parts.get(message.partition() or 0)) is not None:
                part.take(Read(self._logged(message), message.headers()))
        for partition, part in self.parts.items():
            if part.full() and not part.paused:
                self._pause([partition], on=True)

    def _told(self, error: KafkaError) -> None:
        """Raise ClusterError unless the consumer recovers by itself."""
        if not is_transient(error):
            raise cluster_error(self.cluster, error)

    def _logged(self, message: Message) -> Logged:
        """Return the record of a message, with its value still encoded."""
        partition, offset = message.partition() or 0, message.offset() or 0
        key, value = message.key() or b"", message.value()
        return Logged(self.name, partition, offset, message.timestamp()[1], key, value)

    def _pause(self, partitions: Iterable[int], *, on: bool) -> None:
        chosen = [TopicPartition(self.topic, partition) for partition in partitions]
        (self._consumer.pause if on else self._consumer.resume)(chosen)
        for place in chosen:
            self.parts[place.partition].paused = on

    # ---- where to begin ------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Fetch the start offsets from the index, if they are unknown or may be outdated."""
        if self.parts and not self._busy():
            if self._placing.due():
                self._begin()
            elif self._placing.done and time.monotonic() - self._looked > LOOK:
                self._look()
            elif self._placing.done and self._filling is not None:
                with self._repeated():
                    self._filling.proceed(self.parts)

    def _look(self) -> None:
        """Check whether the index was replaced by one with lower offsets."""
        self._looked = time.monotonic()
        with self._repeated():
            offsets = self._offsets()
            if any(offsets.get(partition, 0) < part.applied for partition, part in self.parts.items()):
                self._begin()
                return
            self._commit(wait=False)
            if self._filling is not None:
                self._filling.touch(self.parts)

    @contextmanager
    def _repeated(self) -> Iterator[None]:
        """Start again from the offsets of the index, after a pause, if it or the cluster fails."""
        try:
            yield
        except OSError as error:
            self._fail(error)
        except KafkaException as error:
            self._fail(cluster_error(self.cluster, error.args[0]))

    def _offsets(self) -> Mapping[int, int]:
        self._asks = time.monotonic()
        try:
            return self.index.offsets()
        finally:
            self._asks = 0.0

    def _begin(self) -> None:
        places = list[TopicPartition]()
        with self._repeated():
            places = self._starts()
        if not places:
            return
        # Resume before assigning: a client assigned to paused partitions checks only a second later whether they still are.
        self._pause(self.parts, on=False)
        self._consumer.assign(places)
        self.parts = {place.partition: Part(place.offset, whole=self._whole) for place in places}
        self._commit(wait=False)
        self._placing.found()

    def _starts(self) -> list[TopicPartition]:
        """Return the start offsets. Raises OSError, IndexDamaged, KafkaException."""
        offsets = self._offsets()
        if self._filling is not None:
            return self._filling.starts(self.parts)
        return [start_of(self._consumer, self.topic, partition, offsets.get(partition, 0)) for partition in self.parts]

    def _fail(self, error: Exception) -> None:
        """Pause all partitions and drop their records; later start again from the index's offsets."""
        self._pause(self.parts, on=True)
        for part in self.parts.values():
            part.records.clear()
            part.size = part.end = 0
            part.acknowledged = part.applied
        self._failure = f": {str(error)[:REASON]}"
        if isinstance(error, IndexMoved):
            self._placing.lost()
        elif self._placing.failed():
            self.note(f"{error}; trying again")

    # ---- writing -------------------------------------------------------------------------------------------------

    def _waiting(self) -> bool:
        return any(part.records for part in self.parts.values())

    def _busy(self) -> bool:
        return self._passing is not None or any(part.task is not None for part in self.parts.values())

    def _launch(self) -> None:
        """Start the next request of each partition without one; for a whole engine, one for all partitions together."""
        if not self._placing.done:
            return
        if self._whole:
            if not self._busy() and is_commit_due(self.parts.values()):
                self._request({partition: part for partition, part in self.parts.items() if part.records})
            return
        for partition, part in self.parts.items():
            if part.task is None and part.ripe():
                self._request({partition: part})

    def _request(self, parts: Mapping[int, Part]) -> None:
        task = self._pool.submit(self.applier.apply, {partition: part.batch() for partition, part in parts.items()})
        for partition, part in parts.items():
            part.task, part.begun = task, time.monotonic()
            if part.paused and not part.full(0.5):
                self._pause([partition], on=False)

    def _pass(self) -> None:
        """Write the index's offsets where the index has more than they say."""
        ends = {partition: part.acknowledged for partition, part in self.parts.items() if part.passing()}
        if ends and self._passing is None and self._placing.done:
            self._passing = self._behind.submit(self.applier.remember, ends)

    def _settle(self) -> None:
        """Collect finished requests, and commit. Raises IndexDamaged, and unexpected errors."""
        before = {partition: part.applied for partition, part in self.parts.items()}
        answered, errors = self._answered()
        if answered:
            self._looked = time.monotonic()
            self._commit(wait=False)
        for error in errors:
            if not isinstance(error, OSError | ClusterError):
                raise error
            self._fail(error)
        self._pass()
        # Only once the offsets are stored: if just their write fails, all of it is repeated.
        moved = any(part.applied > before[partition] for partition, part in self.parts.items())
        if moved and not errors and self._placing.done and self._placing.succeeded():
            self.note("the index is written again")

    def _answered(self, *, wait: bool = False) -> tuple[int, list[BaseException]]:
        """Return the number of finished requests, and their errors; with `wait`, wait for all requests."""
        answered, errors = 0, list[BaseException]()
        for partition, part in self.parts.items():
            if part.task is None or not (wait or part.task.done()):
                continue
            error = part.task.exception()
            if error is None:
                part.acknowledged = part.task.result()[partition]
                part.applied = part.acknowledged if self._whole else part.applied
            else:
                part.end = 0
                # Several partitions may share one request.
                errors += [error] if error not in errors else []
            part.task = None
            answered += 1
        if self._passing is not None and (wait or self._passing.done()):
            errors += self._passed(self._passing)
            self._passing = None
            answered += 1
        return answered, errors

    def _passed(self, answer: Future[Mapping[int, int]]) -> list[BaseException]:
        """Record the offsets that were written, or return the error."""
        if (error := answer.exception()) is not None:
            return [error]
        for partition, offset in answer.result().items():
            self.parts[partition].applied = offset
        return []

    def _commit(self, *, wait: bool) -> None:
        """Commit the offsets to the group; a failed commit is repeated once nothing else happens."""
        places = [TopicPartition(self.topic, number, part.done) for number, part in self.parts.items() if part.untold()]
        if places:
            with suppress(KafkaException):
                if wait:
                    self._consumer.commit(offsets=places, asynchronous=False)
                else:
                    self._consumer.commit(offsets=places, asynchronous=True)

    def _heard(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        """Handle the group's answer to a commit."""
        for place in places:
            part = self.parts.get(place.partition)
            if part is not None and error is None and place.error is None:
                part.told = max(part.told, place.offset)


def fill_index(cluster: Cluster, broker: str, index: BrokerIndex, stop: threading.Event, **more: Any) -> None:
    """Fill an index until `stop` is set, then close it."""
    try:
        IndexSink(cluster, broker, index, **more).run(stop.is_set)
    finally:
        index.close()


def sink_options(remote: bool) -> dict[str, Any]:
    """Return IndexSink options: for a server if the index is `remote`, else for an index in a folder."""
    return {"requests": REQUESTS} if remote else {"requests": 1, "whole": True}
