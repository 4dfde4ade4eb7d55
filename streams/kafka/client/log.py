"""The topics of a cluster as a `Log`: what commands read and write (`streams/logs.py`), by their own names, without the prefix.

Strategy: one consumer without a group reads a partition at a time, to the end that it had when the read began; it moves no offset.
One producer writes; nothing is said to be written that the brokers have not acknowledged.

Laws:
- Topics are those of the topology that are there; others on the cluster are no business of ours.
- Values are given in single-object encoding, whichever way they are in the topic, and written the way of the cluster.
- Bounded: a read ends at the end that the partition has when it begins, and a cluster that says nothing any more is a ClusterError.
- Whoever writes partitions by murmur2 (law 7), with acknowledgements of all replicas in sync, and once (idempotence).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from schemas.codec import DecodeError, decode, encode
from schemas.ports import Logged
from schemas.records import Record, Summary
from streams.kafka.client.admin import EARLIEST, LATEST, Admin
from streams.kafka.client.brokers import passing
from streams.kafka.client.cluster import TIMEOUT, Cluster, ClusterError, sentence, told
from streams.kafka.client.registry import wire
from streams.kafka.decide.client_workarounds import HELD, PARTITIONER, Parts, met
from streams.logs import Lag
from streams.topology.flow import Topology

BATCH = 500
WAIT = 0.5
SILENCE = 60
"""Seconds of a poll, and polls without a word after which the cluster is given up: a machine that stands still costs one."""
LAST = 20
"""Records at the end of a partition, among which there is a summary, if there is one at all."""
LARGEST = 64 << 20
"""Bytes of a record that the producer lets through: whether the topic does is its own setting."""


class KafkaLog:
    """`streams.logs.LogAccess` of a cluster. Raises ClusterError where no broker answers."""

    def __init__(self, cluster: Cluster, drawn: Topology) -> None:
        self.cluster = cluster
        self.admin = Admin(cluster)
        self._there = there = self.admin.partitions()
        names = ((topic.name, cluster.topic(topic.name)) for topic in drawn.topics)
        self._topics = {name: there[full] for name, full in names if full in there}
        self._wire = wire(cluster, drawn.topics)
        self._at: tuple[str, int, int] | None = None
        """Where the consumer reads next; None: it must be told."""

    @cached_property
    def _consumer(self) -> Consumer:
        return self._reader()

    def _reader(self) -> Consumer:
        # A group that nobody commits for; the client wants a name.
        group = self.cluster.group("reader")
        settings = {"enable__auto__commit": False, "enable__partition__eof": True, "fetch__wait__max__ms": 100}
        return Consumer(self.cluster.client(group__id=group, auto__offset__reset="earliest", **settings))

    @cached_property
    def producer(self) -> Producer:
        """The producer, for what is no topic of the topology."""
        # Not compressed: Faust's client ends at what it has no library for.
        settings = {"enable__idempotence": True, "message__max__bytes": LARGEST}
        return met(Producer(self.cluster.client(**settings) | HELD | PARTITIONER))

    # ---- what there is -------------------------------------------------------------------------------------------

    def topics(self) -> Mapping[str, int]:
        """Partition count by topic."""
        return self._topics

    def starts(self, topic: str) -> Sequence[int]:
        """See LogAccess."""
        return list(self.admin.offsets(self._places(topic), EARLIEST).values())

    def ends(self, topic: str) -> Sequence[int]:
        """See LogAccess."""
        return list(self.admin.offsets(self._places(topic), LATEST).values())

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """See LogAccess: by the index of times that Kafka keeps."""
        found = self.admin.since(self._places(topic), time_ms).values()
        return [end if offset < 0 else offset for offset, end in zip(found, self.ends(topic), strict=True)]

    def _places(self, topic: str) -> list[tuple[str, int]]:
        return [(self.cluster.topic(topic), number) for number in range(self._topics[topic])]

    def lags(self, drawn: Topology) -> Iterator[Lag]:
        """See LogAccess."""
        return self.admin.lags(drawn)

    def gatherer(self) -> str:
        """The cluster remembers no name: it is a setting, the same for all workers."""
        return ""

    def gatherers(self) -> set[str]:
        """The names in the last summaries that essence made, while they are kept."""
        if "made" not in self._topics:
            return set()
        found = set()
        for number, (start, end) in enumerate(zip(self.starts("made"), self.ends("made"), strict=True)):
            for logged in self.read("made", number, max(start, end - LAST), LAST):
                with suppress(DecodeError):
                    if isinstance(record := decode(logged.value or b""), Summary):
                        found.add(record.gatherer)
        return found

    # ---- reading -------------------------------------------------------------------------------------------------

    def read(self, topic: str, partition: int, offset: int, limit: int, until: int | None = None) -> Sequence[Logged]:
        """See `schemas.ports.Log`: fewer than `limit` only where no more were there when it was asked."""
        if topic not in self._topics:
            raise KeyError(topic)
        found: list[Logged] = []
        if until is not None and offset >= until:
            return found
        with told(self.cluster):
            going, self._at, at = self._at == (topic, partition, offset), None, offset
            end = until if going and until is not None else self._end(topic, partition, until, None if going else offset)
            while len(found) < limit and at < end:
                for message in self._polled(self._consumer, min(limit - len(found), BATCH)):
                    if message.error() is not None:
                        # It may have waited here since an earlier read, and records have come since: what counts is the end of now.
                        at, end, going = max(at, message.offset()), self._end(topic, partition, until), False
                    elif message.offset() >= end:
                        return found
                    else:
                        found.append(self._logged(topic, message))
                        at, going = message.offset() + 1, True
            # One that has met an end is told of none again: the next read begins anew.
            self._at = (topic, partition, at) if going else None
        return found

    def _end(self, topic: str, partition: int, until: int | None, start: int | None = None) -> int:
        """Where a read ends, as of now; with `start` the consumer is pointed there, if there is anything to read."""
        place = TopicPartition(self.cluster.topic(topic), partition)
        low, high = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT)
        if start is not None and start < high:
            place.offset = max(low, start)
            self._consumer.assign([place])
        return high if until is None else min(until, high)

    def _polled(self, consumer: Consumer, limit: int) -> list[Any]:
        """At least one message or end of a partition. Raises ClusterError."""
        for _ in range(SILENCE):
            if batch := self._taken(consumer, limit):
                return batch
        raise ClusterError(f"{self.cluster.brokers}: no broker of Kafka answers")

    def _taken(self, consumer: Consumer, limit: int) -> list[Any]:
        """What has come; waits for the first only: the client would wait its whole time for as many. Raises ClusterError."""
        batch = consumer.consume(1, WAIT)
        if batch and limit > 1:
            batch += consumer.consume(limit - 1, 0)
        for message in batch:
            self._check(message.error())
        return [message for message in batch if (error := message.error()) is None or self._is_end(error)]

    def _check(self, error: KafkaError | None) -> None:
        """The end of a partition is no error; what the client tries again by itself is none yet. Raises ClusterError."""
        if error is not None and not self._is_end(error) and not passing(error):
            raise ClusterError(sentence(self.cluster, error))

    @staticmethod
    def _is_end(error: KafkaError) -> bool:
        return bool(error.code() == KafkaError._PARTITION_EOF)  # noqa: SLF001

    def _logged(self, topic: str, message: Any) -> Logged:
        value, time_ms = message.value(), message.timestamp()[1]
        if value is not None:
            # What is no record is given as it is: whoever decodes it finds out, and has its bytes.
            with suppress(DecodeError):
                value = self._wire.plain(value)
        return Logged(topic, message.partition(), message.offset(), time_ms, message.key() or b"", value)

    def find(self, topic: str, text: bytes) -> Iterator[Logged]:
        """See LogAccess: every record comes over the network, of all partitions at once, each in its order."""
        starts, ends = self.starts(topic), self.ends(topic)
        left = {number: end for number, (start, end) in enumerate(zip(starts, ends, strict=True)) if start < end}
        found: list[Logged] = []
        with told(self.cluster):
            self._at = None
            name = self.cluster.topic(topic)
            if left:
                # A client that is told of a topic only now begins a second later where it does not know its leaders.
                self._consumer.list_topics(name, timeout=TIMEOUT)
                self._consumer.assign([TopicPartition(name, number, starts[number]) for number in left])
            while left:
                for message in self._polled(self._consumer, BATCH):
                    number, end = message.partition(), left.get(message.partition(), 0)
                    if message.error() is None and message.offset() < end:
                        logged = self._logged(topic, message)
                        if logged.key == text or (logged.value is not None and text in logged.value):
                            found.append(logged)
                    if message.error() is not None or message.offset() + 1 >= end:
                        left.pop(number, None)
        # Not as they come: whoever takes them may read something else in between.
        return iter(found)

    def follow(self, topic: str, offsets: Mapping[int, int]) -> Iterator[Logged]:
        """See LogAccess: a consumer of its own, over all partitions at once."""
        name = self.cluster.topic(topic)
        consumer = self._reader()
        try:
            consumer.assign([TopicPartition(name, partition, offset) for partition, offset in offsets.items()])
            while True:
                for message in self._taken(consumer, BATCH):
                    # From beyond the end the client begins at the first record that there is.
                    if message.error() is None and message.offset() >= offsets[message.partition()]:
                        yield self._logged(topic, message)
        finally:
            consumer.close()

    def known(self, stage: str, partition: int, keys: Collection[bytes]) -> Mapping[bytes, bytes]:
        """See LogAccess: from the changelog of the stage, read whole; rows that no worker has committed may be among them."""
        return self._rows(stage, partition, keys.__contains__)

    def rows(self, stage: str, partition: int, prefix: bytes) -> Mapping[bytes, bytes]:
        """See LogAccess; as `known`."""
        return self._rows(stage, partition, lambda key: key.startswith(prefix))

    def _rows(self, stage: str, partition: int, wanted: Callable[[bytes], bool]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        name = self.cluster.changelog(stage)
        if name not in self._there:
            return found
        consumer = self._reader()
        try:
            with told(self.cluster):
                consumer.assign([TopicPartition(name, partition, 0)])
                while True:
                    for message in self._polled(consumer, BATCH):
                        if message.error() is not None:
                            return found
                        if wanted(message.key() or b""):
                            found.pop(message.key(), None)
                            found.update({message.key(): message.value()} if message.value() is not None else {})
        finally:
            consumer.close()

    # ---- writing -------------------------------------------------------------------------------------------------

    def append(self, topic: str, records: Iterable[tuple[bytes, Record | None]], partition: int | None = None) -> None:
        """See `schemas.ports.Log`."""
        now, at = time.time_ns() // 1_000_000, -1 if partition is None else partition
        values = ((key, None if record is None else encode(record)) for key, record in records)
        self.write(Logged(topic, at, -1, now, key, value) for key, value in values)

    def write(self, records: Iterable[Logged], *, raw: bool = False) -> None:
        """See LogAccess: acknowledged one and all when it returns. Raises ClusterError where one was not."""
        failed: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error)

        parts = Parts()
        with told(self.cluster):
            for logged in records:
                if logged.topic not in self._topics:
                    raise KeyError(logged.topic)
                value = logged.value if logged.value is None or raw else self._wire.frame(logged.topic, logged.value)
                if parts.counted(logged.key, value) and not self._acknowledged(failed):
                    break
                name = self.cluster.topic(logged.topic)
                self.producer.produce(name, value, logged.key, logged.partition, on_delivery=delivered, timestamp=logged.time)
            else:
                self._acknowledged(failed)
        if failed or len(self.producer):
            raise ClusterError(
                sentence(self.cluster, failed[0]) if failed else f"{self.cluster.brokers}: no broker of Kafka answers"
            )

    def _acknowledged(self, failed: Collection[Any]) -> bool:
        """Have what was produced sent, and wait; whether all of it was acknowledged."""
        for _ in range(SILENCE):
            if failed or self.producer.flush(WAIT) == 0:
                break
        return not failed and not len(self.producer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_consumer" in self.__dict__:
            self._consumer.close()
