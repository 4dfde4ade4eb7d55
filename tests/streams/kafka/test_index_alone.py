"""The index sink without a broker: batches, waits, progress and commits."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from schemas.codec import encode
from schemas.ports import Logged, Refused
from schemas.records import Removed, Summary
from sinks.index.errors import IndexDamaged, IndexUnreachable
from streams.kafka.client.cluster import Cluster
from streams.kafka.sink import buffer, run_sink
from streams.kafka.sink.index_sink import IndexSink
from tests.streams.kafka.test_index_sink import summary

READ = buffer.Read(Logged("broker.main", 0, 0, 0, b"key", b"value"), None)


def test_partitions_are_excused_while_index_is_asked_for_offsets() -> None:
    """All partitions are excused while the index is asked for its offsets, which has a deadline of its own; afterwards none."""
    found: list[list[tuple[str, int]]] = []

    class Slow:
        def offsets(self) -> Mapping[int, int]:
            found.append(sink.excused())
            return {}

    sink = IndexSink(Cluster("127.0.0.1:1"), "main", cast("Any", Slow()))
    sink.parts = {number: buffer.Part(0) for number in range(2)}
    sink._placing.found()
    sink._look()
    assert found == [[("broker.main", 0), ("broker.main", 1)]]
    assert sink.excused() == []


def test_index_that_does_not_answer_is_not_ready() -> None:
    """A request without an answer for longer than the patience is a trouble that is told, before the request itself ends."""
    sink = IndexSink(Cluster("127.0.0.1:1"), "main", cast("Any", None), patience=0.0)
    assert sink.trouble() == "the index cannot be written"
    sink._placing.found()
    assert sink.trouble() == ""
    part = sink.parts[0] = buffer.Part(0)
    part.task, part.begun = cast("Any", object()), 1.0
    assert "the index has not answered for " in sink.trouble()
    part.task = None
    sink._asks = 1.0
    assert "the index has not answered for " in sink.trouble()
    sink._asks = 0.0
    assert sink.trouble() == ""


class Forgetful:
    """An index on a server that takes all changes, and offsets only while `takes` is set."""

    def __init__(self) -> None:
        self.takes = True
        self.known: dict[int, int] = {}

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        if offsets and not self.takes:
            raise IndexUnreachable("no offsets")
        self.known |= offsets
        return ()


class Group:
    """A client that records the commits of the group."""

    def __init__(self) -> None:
        self.told: dict[int, int] = {}

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> None:
        self.told |= {place.partition: place.offset for place in offsets}

    def pause(self, places: Sequence[TopicPartition]) -> None:
        """Does nothing: no records arrive anyway."""

    resume = pause


class Alone:
    """A sink with two partitions and a simulated index, without a broker."""

    def __init__(self) -> None:
        self.index, self.group = Forgetful(), Group()
        self.notes: list[str] = []
        self.sink = IndexSink(Cluster("127.0.0.1:1"), "main", cast("Any", self.index), note=self.notes.append)
        self.sink._consumer = cast("Any", self.group)

    def begun(self) -> buffer.Part:
        """Start a batch of one record, after the index has reported its offsets; returns the partition."""
        self.sink.parts = {number: buffer.Part(0) for number in range(2)}
        self.sink._placing.found()
        part = self.sink.parts[1]
        part.take(buffer.Read(Logged("broker.main", 1, 0, 1, b"key", encode(summary(1))), None))
        self.sink._launch()
        return part

    def answered(self) -> None:
        """Let all requests in flight finish, and have the sink process the answers."""
        for answer in (*(part.task for part in self.sink.parts.values()), self.sink._passing):
            if answer is not None:
                answer.exception()
        self.sink._settle()


def test_nothing_is_done_until_index_stores_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the index does not store offsets, nothing counts as done; that is reported once, and retried at growing intervals."""
    monkeypatch.setattr(buffer, "BATCH", 1)
    alone = Alone()
    alone.index.takes = False
    pauses = []
    for _ in range(3):
        part = alone.begun()
        alone.answered()
        assert part.passing()
        assert part.done == 0
        alone.answered()
        assert (part.applied, part.passing(), alone.sink.reaches()) == (0, False, False)
        pauses.append(alone.sink._placing._pause)
    assert pauses == sorted(set(pauses))
    assert alone.notes == ["no offsets; trying again"]
    assert alone.group.told == {}
    alone.index.takes = True
    part = alone.begun()
    alone.answered()
    alone.answered()
    assert (part.applied, alone.index.known, alone.group.told) == (1, {1: 1}, {1: 1})
    assert alone.notes[1:] == ["the index is written again"]


def test_leaving_member_writes_and_commits_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that leaves while a batch is in flight writes its offset to the index, and commits it to the group."""
    monkeypatch.setattr(buffer, "BATCH", 1)
    alone = Alone()
    alone.begun()
    alone.sink._leave()
    assert (alone.index.known, alone.group.told) == ({1: 1}, {1: 1})
    assert alone.sink.parts == {}


def test_end_counts_once_index_has_last_offset() -> None:
    """The end behind the last record counts as done once the index has stored the offset of the last record."""
    part = buffer.Part(1)
    part.acknowledged, part.end = 3, 4
    assert (part.passing(), part.done) == (True, 1)
    part.applied = 3
    assert (part.passing(), part.done) == (False, 4)


def test_sink_waits_for_server_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that starts while its server is down waits for it and reports that once; it stops waiting when it is told to stop."""
    monkeypatch.setattr(run_sink, "FIRST", 0.001)
    index: Any = object()
    said: list[str] = []
    answers: list[Any] = [IndexUnreachable("away"), IndexUnreachable("away still"), index]

    def ask() -> Any:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    assert run_sink.open_index(ask, threading.Event(), said.append) is index
    assert said == ["away; trying again", "the index can be reached again"]
    stop = threading.Event()
    stop.set()
    assert run_sink.open_index(ask, stop, said.append) is None
    answers.append(IndexDamaged("of another version"))
    with pytest.raises(IndexDamaged):
        run_sink.open_index(ask, threading.Event(), said.append)


def test_incomplete_batch_is_sent_after_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """An incomplete batch is sent once its first record has waited long enough."""
    clock = [100.0]
    monkeypatch.setattr("streams.kafka.sink.buffer.time.monotonic", lambda: clock[0])
    part = buffer.Part(0)
    assert not part.ripe()
    part.take(READ)
    clock[0] = 100.05
    assert not part.ripe()
    clock[0] = 100.2
    assert part.ripe()
    part.batch()
    part.take(READ)
    assert not part.ripe()
    monkeypatch.setattr(buffer, "BATCH", 1)
    assert part.ripe()


def test_commit_waits_for_records_of_any_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit is of all partitions: it waits while any of them gets more, but no longer than the first record may wait."""
    clock = [100.0]
    monkeypatch.setattr("streams.kafka.sink.buffer.time.monotonic", lambda: clock[0])
    parts = quiet, busy = buffer.Part(0, whole=True), buffer.Part(0, whole=True)
    assert not buffer.is_commit_due(parts)
    quiet.take(READ)
    for tenth in range(1, 50):
        clock[0] = 100.0 + tenth / 10
        busy.take(READ)
        assert not buffer.is_commit_due(parts)
    clock[0] = 105.0
    assert buffer.is_commit_due(parts)
    quiet.batch()
    busy.batch()
    quiet.take(READ)
    clock[0] = 105.4
    assert not buffer.is_commit_due(parts)
    clock[0] = 105.6
    assert buffer.is_commit_due(parts)
    busy.take(READ)
    assert not buffer.is_commit_due(parts)
    with monkeypatch.context() as small:
        small.setattr(buffer, "HELD", 1)
        assert buffer.is_commit_due(parts)
    monkeypatch.setattr(buffer, "GATHERED", 1)
    assert buffer.is_commit_due(parts)


def test_remaining_records_start_new_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waiting time of records left over from a batch starts when that batch is sent, however old they are."""
    clock = [100.0]
    monkeypatch.setattr("streams.kafka.sink.buffer.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(buffer, "GATHERED", 2)
    part = buffer.Part(0, whole=True)
    part.take(READ)
    part.take(READ)
    clock[0] = 109.9
    part.take(READ)
    assert len(part.batch()) == 2
    assert not buffer.is_commit_due([part])
