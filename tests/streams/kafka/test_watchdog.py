"""The watchdog of workers without progress, the table folders of workers, and the buffer of an edge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.cluster import Cluster
from streams.kafka.decide.run_agent import claim_folder
from streams.kafka.edge.source import FULL, Buffer
from streams.kafka.worker.watchdog import Watchdog
from tests.streams.kafka.conftest import Broker

STALL = 10.0


class Watched:
    """A topic of five records, a group that has committed some of them, and the watchdog's messages."""

    def __init__(self, broker: Broker) -> None:
        self.topic = broker.topics.make("in")
        broker.fill(self.topic, {b"%d" % n: b"" for n in range(5)})
        self.client: Consumer = broker.client(f"{self.topic}-group")
        self.said: list[str] = []
        self.excused: list[tuple[str, int]] = []
        self.mine = [(self.topic, 0)]
        self.everywhere = [(self.topic, 0)]
        given = lambda: self.mine, lambda: self.excused, self.said.append
        self.group = f"{self.topic}-group"
        self.dog = Watchdog(Cluster(broker.address), self.group, STALL, *given, everywhere=lambda: self.everywhere)

    def commit(self, offset: int, metadata: str = "") -> None:
        place = TopicPartition(self.topic, 0, offset, metadata=metadata)
        retry_coordinator(lambda: self.client.commit(offsets=[place], asynchronous=False))

    def look(self, now: float) -> list[str]:
        retry_coordinator(lambda: self.dog.look(self.client, now))
        return self.said


@pytest.fixture
def watched(broker: Broker) -> Iterator[Watched]:
    """A watchdog that checks only when a test calls it."""
    watched = Watched(broker)
    yield watched
    watched.client.close()


def test_stalled_partition_ends_worker(watched: Watched) -> None:
    """An offset that stays the same for too long although there is more to read ends the worker, even one never committed."""
    assert not watched.look(0.0)
    assert not watched.look(STALL - 1)
    assert watched.look(STALL + 1) == [f"{watched.topic}-0: stands at 0 of 5 for more than 10 s"]


def test_progress_restarts_time_limit(watched: Watched) -> None:
    """Each change of an offset, or of its metadata alone, restarts the time limit; a partition read to its end never stalls."""
    watched.look(0.0)
    watched.commit(2)
    assert not watched.look(STALL + 1)
    watched.commit(2, "1:AQ==")
    assert not watched.look(2 * STALL + 2)
    watched.commit(5)
    assert not watched.look(3 * STALL + 3)
    assert not watched.look(9 * STALL)


def test_excused_partition_may_stall(watched: Watched) -> None:
    """An excused partition may stall, since it has deadlines of its own; its time limit starts when the excuse ends."""
    watched.excused = [(watched.topic, 0)]
    watched.look(0.0)
    assert not watched.look(STALL + 1)
    watched.excused = []
    assert not watched.look(STALL + 2)
    assert watched.look(2 * STALL + 3)


def test_worker_without_partitions_ends_if_unowned_one_stalls(watched: Watched, broker: Broker) -> None:
    """A worker without partitions is well while others own them all; it ends if a partition without an owner stalls."""
    watched.mine = []
    other = broker.client(watched.group)
    taken = threading.Event()
    other.subscribe([watched.topic], on_assign=lambda *_: taken.set())
    while not taken.is_set():
        other.poll(0.1)
    watched.look(0.0)
    assert not watched.look(STALL + 1)
    other.close()
    watched.commit(2)
    assert not watched.look(STALL + 2)
    watched.commit(5)
    assert not watched.look(3 * STALL)
    watched.commit(3)
    assert not watched.look(4 * STALL)
    assert watched.look(5 * STALL + 1) == [
        f"{watched.topic}-0: stands at 3 for more than 10 s, nobody of the group has it, and this process has none"
    ]


def test_unassigned_partition_of_recreated_topic_stalls(watched: Watched, broker: Broker) -> None:
    """A group's member owns its partitions of all topics: one of a topic recreated since the rebalance counts as stalled too."""
    anew = broker.topics.make("anew")
    watched.everywhere += [(anew, 0), (anew, 1)]
    watched.commit(5)
    assert not watched.look(0.0)
    assert not watched.look(STALL + 1)
    broker.fill(anew, {b"": b""})
    assert not watched.look(STALL + 2)
    assert watched.look(2 * STALL + 3) == [f"{anew}-0: stands at 0 of 1 for more than 10 s"]


def test_deleted_topic_ends_reader_after_delay(watched: Watched) -> None:
    """A deleted topic ends its reader, but not at once: a starting broker knows no topics for a moment."""
    watched.everywhere.append((f"{watched.topic}-gone", 0))
    watched.commit(5)
    assert not watched.look(0.0)
    assert not watched.look(STALL - 1)
    assert watched.look(STALL + 1) == [f"{watched.topic}-gone-0: not there for more than 10 s (harvest topics apply)"]


def test_each_worker_has_its_own_table_folder(tmp_path: Path) -> None:
    """A second worker of a stage uses the next folder; the folder of a killed worker is free for the next one."""
    command = f"""
from pathlib import Path
from streams.kafka.decide.run_agent import claim_folder
with claim_folder(Path({str(tmp_path / "t")!r})) as folder:
    print(folder, flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == f"{tmp_path / 't'}\n"
        with claim_folder(tmp_path / "t") as second, claim_folder(tmp_path / "t") as third:
            assert (second, third) == (tmp_path / "t~2", tmp_path / "t~3")
        os.kill(first.pid, signal.SIGKILL)
    with claim_folder(tmp_path / "t") as again:
        assert again == tmp_path / "t"


class Came:
    """A record as the client returns it."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"value"

    def key(self) -> bytes:
        return b"key"

    def timestamp(self) -> tuple[int, int]:
        return 1, 7

    def headers(self) -> list[tuple[str, bytes]]:
        return [("a", b"b")]


def add(buffer: Buffer, offset: int) -> None:
    """Add a record to a buffer."""
    message: Message = Came(offset)  # type: ignore[assignment]
    buffer.add(message)


def test_buffer_leaves_out_finished_records() -> None:
    """Finished records are left out; taken ones are available, with headers, until finished or until their partition goes."""
    buffer = Buffer("in", 1)
    add(buffer, 2)
    buffer.open(0, 3, frozenset({5}))
    for offset in range(3, 8):
        add(buffer, offset)
    assert [logged.offset for logged in buffer.read("in", 0, 3, 2)] == [3, 4]
    assert [logged.offset for logged in buffer.read("in", 0, 5, 9)] == [6, 7]
    assert list(buffer.ends("in")) == [8]
    buffer.finished(0, 3)
    assert (buffer.taken(0, 3), buffer.headers(0, 3)) == (None, [])
    assert buffer.taken(0, 6) is not None
    assert buffer.headers(0, 6) == [("a", b"b")]
    buffer.shut(0)
    assert buffer.taken(0, 6) is None


def test_buffer_reports_end_once_all_is_taken() -> None:
    """The end of a partition is reported once, after all its records were taken; of a revoked partition, never."""
    buffer = Buffer("in", 2)
    for partition in (0, 1):
        buffer.open(partition, 0, frozenset())
    add(buffer, 0)
    for partition in (0, 1):
        buffer.reach(partition, 2)
    assert buffer.reached() == {1: 2}
    buffer.read("in", 0, 0, 1)
    assert buffer.reached() == {0: 2}
    assert buffer.reached() == {}
    buffer.reach(0, 2)
    buffer.shut(0)
    buffer.reach(0, 3)
    assert buffer.reached() == {}


def test_buffer_is_full_until_records_are_read() -> None:
    """A buffer is full at its limit; records that are read, or whose partition goes, make room."""
    buffer = Buffer("in", 1)
    buffer.open(0, 0, frozenset())
    for offset in range(FULL):
        assert not buffer.full
        add(buffer, offset)
    found = [buffer.full]
    buffer.read("in", 0, 0, 1)
    found.append(buffer.full)
    add(buffer, FULL)
    found.append(buffer.full)
    buffer.shut(0)
    assert [*found, buffer.full] == [True, False, True, False]
