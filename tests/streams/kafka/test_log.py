"""The log on a real Kafka: the ends of reads, and the waits of polls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from schemas.ports import Logged
from schemas.records import Removed
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.operations.selection import batches
from streams.topology.flow import TopologySettings, topology
from tests.servers.fixtures import TIMEOUT, Topics
from tests.streams.kafka.conftest import Broker

SUMMARIES = "summaries"


def append(log: KafkaLog, numbers: Iterable[int], partition: int | None = None) -> None:
    """Append a removal for each number."""
    made = ((n, Removed(oid=f"{n:064d}", url="u", object_url="u", version=1, time=2, reason="gone")) for n in numbers)
    log.append(SUMMARIES, [(b"k%d" % n, one) for n, one in made], partition)


def offsets(records: Iterable[Logged]) -> list[int]:
    """The offsets of records."""
    return [logged.offset for logged in records]


class Asked:
    """A consumer that records the calls to it."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.waited: list[int] = []
        """The number of messages that each poll waited for."""
        self.calls: list[str] = []

    def consume(self, count: int, timeout: float) -> Any:
        if timeout:
            self.waited.append(count)
        return self._consumer.consume(count, timeout)

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._consumer, name)


@pytest.fixture
def log(cluster: Cluster, topics: Topics) -> KafkaLog:
    """A log whose topic of summaries has one partition."""
    topics.make(SUMMARIES, 1)
    return KafkaLog(cluster, topology(TopologySettings()))


def test_log_ends_before_open_transaction(log: KafkaLog, broker: Broker) -> None:
    """The end of a topic is before its open transaction; once that has ended, committed records are read, aborted ones not."""
    append(log, range(3))

    def found() -> tuple[Sequence[int], list[int]]:
        ends = log.ends(SUMMARIES)
        read = [logged for batch, _ in batches(log, SUMMARIES, 0, 0, ends[0], 10) for logged in batch]
        return ends, offsets(read)

    for keep, before, after in ((True, ([3], [0, 1, 2]), ([5], [0, 1, 2, 3])), (False, ([5], [0, 1, 2, 3]), ([7], [0, 1, 2, 3]))):
        with broker.transaction(keep=keep) as stranger:
            stranger.produce(log.cluster.topic(SUMMARIES), b"value", b"k")
            assert stranger.flush(TIMEOUT) == 0
            assert found() == before
        while log.ends(SUMMARIES) == before[0]:
            # The commit of a transaction is acknowledged before its markers are written.
            time.sleep(0.02)
        assert found() == after


def asked(log: KafkaLog) -> Asked:
    """Record the calls to the consumer of a log."""
    log.__dict__["_consumer"] = watched = Asked(log._reader())
    return watched


@pytest.mark.parametrize("first", [50, 40])
def test_outdated_end_does_not_end_read(log: KafkaLog, first: int) -> None:
    """Records appended after a full read are read, whether the outdated end is reported before the next records or behind some."""
    append(log, range(50))
    with log:
        assert offsets(log.read(SUMMARIES, 0, 0, first, until=first)) == list(range(first))
        time.sleep(1.0)  # the client reports the end, which is kept in its queue
        append(log, range(50, 60))
        (end,) = log.ends(SUMMARIES)
        assert offsets(logged for batch, _ in batches(log, SUMMARIES, 0, first, end, 50) for logged in batch) == [*range(first, 60)]


def test_reads_continue_and_end_with_log(log: KafkaLog) -> None:
    """Each read goes on where the last one ended, and returns nothing at the end, with and without `until`."""
    append(log, range(7))
    with log:
        for until in (None, 7):
            assert [offsets(log.read(SUMMARIES, 0, start, 3, until)) for start in (0, 3, 6, 7)] == [[0, 1, 2], [3, 4, 5], [6], []]
        assert offsets(log.read(SUMMARIES, 0, 2, 9, until=4)) == [2, 3]
        assert offsets(log.read(SUMMARIES, 0, 4, 9)) == [4, 5, 6]
        append(log, [7])
        assert offsets(log.read(SUMMARIES, 0, 7, 9)) == [7]
        assert offsets(log.read(SUMMARIES, 0, 99, 9)) == []


def test_follow_from_beyond_end_waits(log: KafkaLog) -> None:
    """To follow from an offset beyond the end waits for it; records below it are not returned."""
    append(log, range(5))
    with log:
        coming: Any = log.follow(SUMMARIES, {0: 7})
        later = threading.Timer(2.0, append, (KafkaLog(log.cluster, topology(TopologySettings())), range(5, 9)))
        later.start()
        try:
            assert [next(coming).offset, next(coming).offset] == [7, 8]
        finally:
            later.join()
            coming.close()


def test_poll_does_not_wait_for_more_records(log: KafkaLog) -> None:
    """A poll waits for one record, and not at all at the end; records that have arrived are returned without a wait for more."""
    append(log, range(20))
    with log:
        watched = asked(log)
        assert [offsets(batch) for batch, _ in batches(log, SUMMARIES, 0, 0, 20, 10)] == [[*range(10)], [*range(10, 20)]]
        assert set(watched.waited) == {1}
        assert watched.calls.count("get_watermark_offsets") == watched.calls.count("assign") == 1
        before = len(watched.waited)
        assert log.read(SUMMARIES, 0, 20, 10, until=20) == []
        assert len(watched.waited) == before


def test_find_assigns_all_partitions_once(cluster: Cluster, topics: Topics) -> None:
    """A scan of a whole topic assigns all partitions once; the records of each are found in their order."""
    topics.make(SUMMARIES, 12)
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        for partition in range(0, 12, 2):
            append(log, range(30), partition)
        watched = asked(log)
        found = [(logged.partition, logged.offset) for logged in log.find(SUMMARIES, b"k7")]
        assert sorted(found) == [(partition, 7) for partition in range(0, 12, 2)]
        assert len(list(log.find(SUMMARIES, b"0" * 60))) == 180
        assert (watched.calls.count("assign"), watched.calls.count("get_watermark_offsets")) == (2, 0)
        assert set(watched.waited) == {1}
        assert offsets(log.read(SUMMARIES, 4, 28, 9)) == [28, 29]
