"""The topics of a cluster as a `Log` for commands (`streams/logs.py`), by their names without the prefix.

Strategy: one consumer, which commits no offsets, reads one partition at a time, up to the end that it had when the read began. One
producer writes; a write returns only once the brokers have acknowledged it.

Laws:
- Only existing topics of the topology are visible; others on the cluster are ignored.
- Values are returned in single-object encoding, whatever their encoding in the topic, and are written in the cluster's wire format.
- Bounded: a read stops at the end that the partition has when it begins, and a cluster that stops answering is a ClusterError.
- Writes are partitioned by murmur2 (law 7), acknowledged by all in-sync replicas, and idempotent.
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
from streams.kafka.client.brokers import is_transient
from streams.kafka.client.cluster import READER, TIMEOUT, Cluster, ClusterError, cluster_errors, sentence
from streams.kafka.client.producer import SendSplitter, connected, ordered_producer
from streams.kafka.client.registry import wire
from streams.logs import Lag
from streams.topology.flow import Topology

BATCH = 500
WAIT = 0.5
SILENCE = 60
"""Empty polls, of WAIT seconds each, after which a read or write fails; a suspended machine costs only one poll."""
LAST = 20
"""Records at the end of a partition that are searched for a summary."""


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
        """Topic, partition and offset that the consumer reads next; None: it must be assigned."""

    @cached_property
    def _consumer(self) -> Consumer:
        return self._reader()

    def _reader(self) -> Consumer:
        group = self.cluster.group(READER)
        settings = {"enable__auto__commit": False, "enable__partition__eof": True, "fetch__wait__max__ms": 100}
        return Consumer(self.cluster.client(group__id=group, auto__offset__reset="earliest", **settings))

    @cached_property
    def producer(self) -> Producer:
        """The producer, also for topics outside the topology."""
        return connected(ordered_producer(self.cluster.client()))

    # ---- what there is -------------------------------------------------------------------------------------------

    def topics(self) -> Mapping[str, int]:
        """Return the partition count by topic."""
        return self._topics

    def starts(self, topic: str) -> Sequence[int]:
        """See LogAccess."""
        return list(self.admin.offsets(self._places(topic), EARLIEST).values())

    def ends(self, topic: str) -> Sequence[int]:
        """See LogAccess."""
        return list(self.admin.offsets(self._places(topic), LATEST).values())

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """See LogAccess: uses Kafka's time index."""
        found = self.admin.since(self._places(topic), time_ms).values()
        return [end if offset < 0 else offset for offset, end in zip(found, self.ends(topic), strict=True)]

    def _places(self, topic: str) -> list[tuple[str, int]]:
        return [(self.cluster.topic(topic), number) for number in range(self._topics[topic])]

    def lags(self, drawn: Topology) -> Iterator[Lag]:
        """See LogAccess."""
        return self.admin.lags(drawn)

    def gatherer(self) -> str:
        """Return "": on a cluster the Gatherer's name is a setting, the same for all workers, and is not stored."""
        return ""

    def gatherers(self) -> set[str]:
        """Return the Gatherer names in the latest summaries of `made`, while they are retained."""
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
        """See `schemas.ports.Log`: fewer than `limit` records only if the partition had no more at the time of the call."""
        if topic not in self._topics:
            raise KeyError(topic)
        found: list[Logged] = []
        if until is not None and offset >= until:
            return found
        with cluster_errors(self.cluster):
            going, self._at, at = self._at == (topic, partition, offset), None, offset
            end = until if going and until is not None else self._end(topic, partition, until, None if going else offset)
            while len(found) < limit and at < end:
                for message in self._polled(self._consumer, min(limit - len(found), BATCH)):
                    if message.error() is not None:
                        # The end-of-partition event may date from an earlier read, and records may have arrived since: the present
                        # end counts.
                        at, end, going = max(at, message.offset()), self._end(topic, partition, until), False
                    elif message.offset() >= end:
                        return found
                    else:
                        found.append(self._logged(topic, message))
                        at, going = message.offset() + 1, True
            # After an end-of-partition event the consumer emits no second one: the next read assigns it anew.
            self._at = (topic, partition, at) if going else None
        return found

    def _end(self, topic: str, partition: int, until: int | None, start: int | None = None) -> int:
        """Return the present end of a read; with `start`, assign the consumer there if there is anything to read."""
        place = TopicPartition(self.cluster.topic(topic), partition)
        low, high = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT)
        if start is not None and start < high:
            place.offset = max(low, start)
            self._consumer.assign([place])
        return high if until is None else min(until, high)

    def _polled(self, consumer: Consumer, limit: int) -> list[Any]:
        """Return at least one message or end-of-partition event. Raises ClusterError."""
        for _ in range(SILENCE):
            if batch := self._taken(consumer, limit):
                return batch
        raise ClusterError(f"{self.cluster.brokers}: no broker of Kafka answers")

    def _taken(self, consumer: Consumer, limit: int) -> list[Any]:
        """Return the messages that have arrived, waiting for the first only. Raises ClusterError.

        A call for `limit` messages would wait its whole time-out for all of them.
        """
        batch = consumer.consume(1, WAIT)
        if batch and limit > 1:
            batch += consumer.consume(limit - 1, 0)
        for message in batch:
            self._check(message.error())
        return [message for message in batch if (error := message.error()) is None or self._is_end(error)]

    def _check(self, error: KafkaError | None) -> None:
        """Raise ClusterError, but not for the end of a partition or for errors that the client retries by itself."""
        if error is not None and not self._is_end(error) and not is_transient(error):
            raise ClusterError(sentence(self.cluster, error))

    @staticmethod
    def _is_end(error: KafkaError) -> bool:
        return bool(error.code() == KafkaError._PARTITION_EOF)  # noqa: SLF001

    def _logged(self, topic: str, message: Any) -> Logged:
        value, time_ms = message.value(), message.timestamp()[1]
        if value is not None:
            # A value that cannot be decoded is returned as it is: its reader gets the error, and the bytes.
            with suppress(DecodeError):
                value = self._wire.plain(value)
        return Logged(topic, message.partition(), message.offset(), time_ms, message.key() or b"", value)

    def find(self, topic: str, text: bytes) -> Iterator[Logged]:
        """See LogAccess: reads every record over the network, all partitions at once, each in order."""
        starts, ends = self.starts(topic), self.ends(topic)
        left = {number: end for number, (start, end) in enumerate(zip(starts, ends, strict=True)) if start < end}
        found: list[Logged] = []
        with cluster_errors(self.cluster):
            self._at = None
            name = self.cluster.topic(topic)
            if left:
                # Without a metadata request first, a client that does not know the topic's leaders begins a second later.
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
        # Not lazily: the caller may read something else in between, with the same consumer.
        return iter(found)

    def follow(self, topic: str, offsets: Mapping[int, int]) -> Iterator[Logged]:
        """See LogAccess: with a separate consumer, over all partitions at once."""
        name = self.cluster.topic(topic)
        consumer = self._reader()
        try:
            consumer.assign([TopicPartition(name, partition, offset) for partition, offset in offsets.items()])
            while True:
                for message in self._taken(consumer, BATCH):
                    # For an offset beyond the end, the client begins at the earliest record instead.
                    if message.error() is None and message.offset() >= offsets[message.partition()]:
                        yield self._logged(topic, message)
        finally:
            consumer.close()

    def known(self, stage: str, partition: int, keys: Collection[bytes]) -> Mapping[bytes, bytes]:
        """See LogAccess: reads the whole changelog of the stage, which may hold rows of a batch that is not committed."""
        return self._rows(stage, partition, keys.__contains__)

    def rows(self, stage: str, partition: int, prefix: bytes) -> Mapping[bytes, bytes]:
        """See LogAccess; reads like `known`."""
        return self._rows(stage, partition, lambda key: key.startswith(prefix))

    def _rows(self, stage: str, partition: int, wanted: Callable[[bytes], bool]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        name = self.cluster.changelog(stage)
        if name not in self._there:
            return found
        consumer = self._reader()
        try:
            with cluster_errors(self.cluster):
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
        """See LogAccess: returns once all records are acknowledged. Raises ClusterError if one was not."""
        failed: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error)

        splitter = SendSplitter()
        with cluster_errors(self.cluster):
            for logged in records:
                if logged.topic not in self._topics:
                    raise KeyError(logged.topic)
                value = logged.value if logged.value is None or raw else self._wire.frame(logged.topic, logged.value)
                if splitter.begins_send(logged.key, value) and not self._acknowledged(failed):
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
        """Flush the producer; whether everything was acknowledged."""
        for _ in range(SILENCE):
            if failed or self.producer.flush(WAIT) == 0:
                break
        return not failed and not len(self.producer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_consumer" in self.__dict__:
            self._consumer.close()
