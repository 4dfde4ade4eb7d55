"""The runner of an edge without a broker: pauses, commits, client errors, and records too large for the log.

The consumer and the outbox are replaced by ones that record their calls: a real broker cannot be made to cause these situations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from schemas.codec import decode, encode
from schemas.records import FetchedObject, Rejected
from streams.edges.base import EdgeBase, Finished
from streams.edges.parse_job import Frame
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.edge import edges
from streams.kafka.edge.edges import EdgeRunner
from streams.kafka.edge.source import Buffer, Headers
from streams.kafka.sink.index_sink import IndexSink

TOPIC = "objects"
PARTITIONS = 3


class Client:
    """A consumer; `assigned` has the partitions of the group, `answer` makes the result of a commit."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.calls: dict[str, Callable[..., None]] = {}
        self.assigned: list[TopicPartition] = []
        self.paused: set[int] = set()
        self.coming: list[Any] = []
        self.told: list[dict[int, int]] = []
        self.answer: Callable[[Sequence[TopicPartition]], Sequence[TopicPartition]] = list

    def subscribe(self, topics: Sequence[str], **calls: Callable[..., None]) -> None:
        self.calls = calls

    def assignment(self) -> list[TopicPartition]:
        return self.assigned

    def incremental_assign(self, places: Iterable[TopicPartition]) -> None:
        self.assigned += places

    def pause(self, places: Iterable[TopicPartition]) -> None:
        self.paused |= {place.partition for place in places}

    def resume(self, places: Iterable[TopicPartition]) -> None:
        self.paused -= {place.partition for place in places}

    def committed(self, places: Iterable[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(place.topic, place.partition, -1001) for place in places]

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, 10

    def consume(self, limit: int, seconds: float) -> list[Any]:
        found, self.coming = self.coming, []
        return found

    def commit(self, *, offsets: Sequence[TopicPartition], asynchronous: bool) -> Sequence[TopicPartition]:
        self.told.append({place.partition: place.offset for place in offsets})
        return self.answer(offsets)


class Message:
    """A record, or an error in its place."""

    def __init__(self, partition: int, offset: int, value: bytes = b"", error: KafkaError | None = None) -> None:
        self._place, self._value, self._error = (partition, offset), value, error

    def error(self) -> KafkaError | None:
        return self._error

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def value(self) -> bytes:
        return self._value

    def key(self) -> bytes:
        return b"key"

    def timestamp(self) -> tuple[int, int]:
        return 1, 5

    def headers(self) -> Headers:
        return []


class Letterbox:
    """An outbox for a log whose topics take records of up to `limits` bytes."""

    def __init__(self, largest: int) -> None:
        self.limits = {"made": largest, "rejected": largest}
        self.refused: set[tuple[int, int]] = set()
        self.sent: list[Frame] = []

    async def put(self, frames: Iterable[Frame], cause: tuple[int, int], headers: Headers) -> None:
        for frame in frames:
            if len(frame.value) > self.limits[frame.topic]:
                self.refused.add(cause)
            else:
                self.sent.append(frame)

    async def send(self, finished: Iterable[tuple[Finished, Headers]]) -> None:
        for one, headers in finished:
            await self.put(one.frames, (one.partition, one.offset), headers)


class Echo(EdgeBase):
    """An edge that outputs its input, or a dead letter for an undecodable record."""

    def __init__(self, buffer: Buffer) -> None:
        super().__init__("echo", TOPIC, buffer, PARTITIONS, ordered=False)

    def launch(self, ready: int = 0) -> None:
        for logged in self.take(100):
            if self.decoded(logged, FetchedObject) is not None:
                frame = Frame("made", 0, logged.key, logged.value or b"")
                self.done(Finished(self.name, self.topic, logged.partition, logged.offset, [frame]))


class World:
    """A runner around the edge `Echo`, with partitions 0 and 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, largest: int = 1 << 30) -> None:
        monkeypatch.setattr(edges, "Consumer", Client)
        self.buffer = Buffer(TOPIC, PARTITIONS)
        self.edge, self.outbox = Echo(self.buffer), Letterbox(largest)
        outbox: Any = self.outbox
        self.runner = EdgeRunner(self.edge, self.buffer, outbox, {}, TOPIC, 0.0)
        self.client: Any = self.runner._consumer
        self.assign(0, 1)

    def assign(self, *partitions: int) -> None:
        """Assign more partitions."""
        self.runner._on_assign(self.client, self.places(*partitions))

    def places(self, *partitions: int) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition) for partition in partitions]

    def comes(self, *messages: Message) -> None:
        """Deliver records, process them, and send the results until none is left."""
        self.client.coming = list(messages)
        self.runner._read()
        self.edge.launch()
        while self.edge.finished:
            asyncio.run(self.runner._settle())

    def commit(self, *, asynchronous: bool = True) -> None:
        self.runner._commit(asynchronous=asynchronous)


def test_paused_partitions_resume_after_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions paused because the buffer was full are resumed once it has room, even if others were assigned meanwhile."""
    world = World(monkeypatch)
    full = [True]
    monkeypatch.setattr(Buffer, "full", property(lambda _: full[0]))
    world.runner._read()
    assert world.client.paused == {0, 1}
    world.assign(2)
    world.runner._read()
    assert world.client.paused == {0, 1, 2}
    world.assign(2)
    full[0] = False
    world.runner._read()
    assert world.client.paused == set()


def test_partitions_that_come_while_leaving_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions that are assigned after the signal to stop are not opened, and the broker is asked nothing about them."""
    world = World(monkeypatch)
    world.client.committed = None
    world.runner._stop = lambda: True
    world.assign(2)
    assert world.runner.places() == [(TOPIC, 0), (TOPIC, 1)]


def test_partitions_are_opened_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the start of one new partition cannot be learned, none is assigned or opened; the error is raised outside of the callback.

    A client with only some of its partitions never closes; and it crashes if an error is raised in its callback.
    """
    world = World(monkeypatch)

    def ends(place: TopicPartition, timeout: float) -> tuple[int, int]:
        if place.partition == 1:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return 0, 10

    monkeypatch.setattr(edges, "retry_coordinator", lambda ask, _: ask())
    world.client.get_watermark_offsets = ends
    world.runner._on_lost(world.client, world.places(0, 1))
    world.client.assigned = []
    world.assign(0, 1)
    assert (world.client.assigned, world.runner.places()) == ([], [])
    with pytest.raises(KafkaException):
        world.runner._read()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_failed_commit_is_repeated(monkeypatch: pytest.MonkeyPatch, asynchronous: bool) -> None:
    """Offsets whose commit raised an error, or was refused for one partition, are in the next commit."""
    world = World(monkeypatch)
    world.comes(*(Message(partition, 0) for partition in (0, 1)))

    def raises(offsets: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))

    world.client.answer = raises
    with pytest.raises(KafkaException):
        world.commit(asynchronous=asynchronous)
    fenced: Any = SimpleNamespace(partition=1, error=KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
    world.client.answer = lambda offsets: [offsets[0], fenced]
    world.commit(asynchronous=False)
    world.client.answer = list
    world.commit(asynchronous=asynchronous)
    world.commit(asynchronous=asynchronous)
    assert world.client.told == [{0: 1, 1: 1}, {0: 1, 1: 1}, {1: 1}]


def test_remaining_partitions_are_committed_after_failed_revocation_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed commit at a revocation, offsets of remaining partitions are committed later, those of revoked ones dropped."""
    world = World(monkeypatch)
    world.comes(*(Message(partition, 0) for partition in (0, 1)))

    def raises(offsets: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION))

    world.client.answer = raises
    world.runner._on_revoke(world.client, world.places(1))
    world.client.answer = list
    world.commit()
    assert world.client.told[1:] == [{0: 1}]


LARGE, JUNK = encode(FetchedObject(url="u", version=3, time=1, outcome="fetched", body=b"x" * 2_000)), b"no record" * 200


def letters(world: World) -> list[Rejected]:
    """The dead letters that were sent."""
    found = [decode(frame.value) for frame in world.outbox.sent if frame.topic == "rejected"]
    return [letter for letter in found if isinstance(letter, Rejected)]


@pytest.mark.parametrize(
    ("value", "why"),
    [(LARGE, ("too large for the log", "u")), (JUNK, ("not a record: not a Harvest record", ""))],
    ids=["large", "junk"],
)
@pytest.mark.parametrize("whole", [True, False])
def test_oversized_dead_letter_goes_without_bytes(
    monkeypatch: pytest.MonkeyPatch, value: bytes, why: tuple[str, str], whole: bool
) -> None:
    """A dead letter too large for the topic goes without the bytes, with the same reason; the edge goes on after it."""
    world = World(monkeypatch, largest=10_000 if whole else 1_000)
    world.outbox.limits["made"] = 1_000
    world.comes(Message(0, 0, value), Message(0, 1, b"short"))
    first, second = sorted(letters(world), key=lambda letter: letter.offset)
    assert (first.reason[: len(why[0])], first.url) == why
    assert (first.topic, first.partition, first.offset, first.key) == (TOPIC, 0, 0, b"key")
    assert (first.value, second.value) == (value if whole else None, b"short")
    world.commit()
    assert world.client.told == [{0: 2}]


def test_edge_ends_if_bare_dead_letter_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """If even the dead letter without bytes is too large, the edge ends, and no record is skipped."""
    world = World(monkeypatch, largest=10)
    with pytest.raises(ClusterError, match="objects, partition 0: the dead letter of 0 is too large"):
        world.comes(Message(0, 0, JUNK))
    world.commit()
    assert not world.client.told


def test_refused_records_of_lost_partition_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records noted as too large are forgotten when their partition is lost: after a new assignment they are tried again."""
    world = World(monkeypatch)
    for place in ((0, 0), (1, 0)):
        world.outbox.refused.add(place)
        world.runner._bare.add(place)
    world.runner._on_lost(world.client, world.places(0))
    assert (world.outbox.refused, world.runner._bare) == ({(1, 0)}, {(1, 0)})
    world.assign(0)
    world.comes(Message(0, 0, LARGE))
    assert [frame.topic for frame in world.outbox.sent] == ["made"]


PASSING = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.NOT_COORDINATOR)
LASTING = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTO_OFFSET_RESET, KafkaError.UNKNOWN_TOPIC_OR_PART)


@pytest.mark.parametrize("code", PASSING)
def test_transient_client_error_ends_nothing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """An error that the client retries by itself ends neither an edge nor a sink, although `retriable` is false."""
    error = KafkaError(code)
    assert not error.retriable()
    World(monkeypatch).comes(Message(0, 0, error=error))
    IndexSink(Cluster("127.0.0.1:1"), "main", cast("Any", None))._take([cast("Any", Message(0, 0, error=error))])


@pytest.mark.parametrize("error", [*map(KafkaError, LASTING), KafkaError(KafkaError._TRANSPORT, "fenced", True)])
def test_permanent_client_error_ends_edge_and_sink(monkeypatch: pytest.MonkeyPatch, error: KafkaError) -> None:
    """An error that no retry resolves, or that the client calls fatal, ends both an edge and a sink."""
    with pytest.raises(KafkaException):
        World(monkeypatch).comes(Message(0, 0, error=error))
    with pytest.raises(ClusterError):
        IndexSink(Cluster("127.0.0.1:1"), "main", cast("Any", None))._take([cast("Any", Message(0, 0, error=error))])
