"""What a stage gives, on its way to a real Kafka: in order, where it is told, and known to be there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition

from streams.edges.base import Finished
from streams.edges.parse_job import Frame
from streams.kafka.client import producer as producers
from streams.kafka.client.producer import OVERHEAD, ordered_producer, worker_client
from streams.kafka.decide import sending
from streams.kafka.decide.sending import ANY, Outgoing, RecordPosition, Sender
from streams.kafka.edge.outbox import Outbox
from streams.store.murmur2 import partition as partition_of
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker

PARTITIONS = 3


def sent(broker: Broker, records: Sequence[Outgoing], settings: Mapping[str, Any] = MappingProxyType({})) -> list[RecordPosition]:
    """Where records stand that a new sender has sent, by two calls."""
    sender = Sender(broker.address, lambda: TIMEOUT)
    sender._settings |= settings

    async def send() -> list[RecordPosition]:
        half = len(records) // 2
        return [*await sender.send(records[:half]), *await sender.send(records[half:])]

    return asyncio.run(send())


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of three partitions."""
    return broker.topics.make("out", partitions=PARTITIONS)


def found(broker: Broker, topic: str) -> dict[RecordPosition, tuple[bytes | None, bytes | None, Any]]:
    """All records by where they stand: key, value, headers."""
    client, made = broker.client("reader"), {}
    try:
        for partition in range(PARTITIONS):
            client.assign([TopicPartition(topic, partition, 0)])
            while (message := client.poll(TIMEOUT)) is not None and message.error() is None:
                made[RecordPosition(partition, message.offset() or 0)] = message.key(), message.value(), message.headers()
    finally:
        client.close()
    return made


@pytest.mark.parametrize("room", [100_000, 7], ids=["room", "a queue that is full all the time"])
def test_records_stand_where_it_says(broker: Broker, topic: str, room: int) -> None:
    """Each in the partition of its key, or in the one that was asked for, in the order in which they were sent."""
    keys = [b"k%d" % (number % 50) for number in range(400)]
    records = [Outgoing(topic, key, b"v%d" % number) for number, key in enumerate(keys)]
    records += [Outgoing(topic, key, None, 1) for key in keys[:9]]
    places = sent(broker, records, {"queue.buffering.max.messages": room})
    held = found(broker, topic)
    assert sorted(places) == sorted(held)
    assert [held[place][:2] for place in places] == [(record.key, record.value) for record in records]
    asked = [record.partition if record.partition != ANY else partition_of(record.key, PARTITIONS) for record in records]
    assert [place.partition for place in places] == asked
    for partition in range(PARTITIONS):
        offsets = [place.offset for place in places if place.partition == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("headers", [None, (), [("a", b"1"), ("a", b"2")], (("a", b"1"), ("a", b"2")), {"a": b"1"}])
def test_headers_go_along(broker: Broker, topic: str, headers: Any) -> None:
    """However a client has told of them: Faust's messages have a tuple of tuples."""
    (place,) = sent(broker, [Outgoing(topic, b"k", b"v", headers=headers)])
    told = list(headers.items()) if isinstance(headers, dict) else list(headers or ())
    assert found(broker, topic)[place] == (b"k", b"v", told or None)


def test_what_the_broker_does_not_take_is_told(broker: Broker) -> None:
    """Whoever waits is told of a record that is too large, once all others have been answered."""
    small = broker.topics.make("small", PARTITIONS, {"max.message.bytes": "1000"})
    records = [Outgoing(small, b"k", b"x" * size) for size in (10, 5_000)]
    with pytest.raises(KafkaException, match="too large"):
        sent(broker, records)
    assert [value for _, value, _ in found(broker, small).values()] == [b"x" * 10]


def test_a_broker_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up after about a session, and not before there was time to start anew."""
    monkeypatch.setattr(sending, "PATIENCE", 0.5)
    sender = Sender("127.0.0.1:1", lambda: 1.0)
    with pytest.raises(KafkaException, match="timed out"):
        asyncio.run(sender.send([Outgoing("t", b"k", b"v")]))


def test_what_the_client_has_let_go_is_sent_again(broker: Broker, topic: str) -> None:
    """A record waits in the client no longer than it may; whoever is awake sends it again, with all behind it, in order."""
    asked = iter([True, True])
    sender = Sender("127.0.0.1:1", lambda: 0.5)
    records = [Outgoing(topic, b"k", b"v%d" % number, 0) for number in range(3)]

    def awake() -> None:
        next(asked)
        if sender._producer is not None:
            # The broker is to be had now.
            sender._producer = ordered_producer({**worker_client(broker.address), "delivery.timeout.ms": int(TIMEOUT * 1_000)})

    sender._awake = awake
    assert asyncio.run(sender.send(records)) == [RecordPosition(0, 0), RecordPosition(0, 1), RecordPosition(0, 2)]


def test_much_goes_in_parts(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One behind the other; before each it is asked whether the process is awake."""
    monkeypatch.setattr(producers, "MAX_SEND", 3 * (OVERHEAD + 3))
    asked: list[bool] = []
    sender = Sender(broker.address, lambda: TIMEOUT, lambda: asked.append(True))
    records = [Outgoing(topic, b"k", b"v%d" % number, 0) for number in range(10)]
    assert asyncio.run(sender.send(records)) == [RecordPosition(0, number) for number in range(10)]
    assert len(asked) == 4


def test_no_part_goes_behind_one_that_failed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the broker has not taken is told before anything else is sent."""
    monkeypatch.setattr(producers, "MAX_SEND", 1)
    small = broker.topics.make("small", PARTITIONS, {"max.message.bytes": "1000"})
    with pytest.raises(KafkaException, match="too large"):
        asyncio.run(Sender(broker.address, lambda: TIMEOUT).send([Outgoing(small, b"k", b"x" * size) for size in (10, 5_000, 20)]))
    assert [value for _, value, _ in found(broker, small).values()] == [b"x" * 10]


def test_what_was_acknowledged_fills_no_part(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an edge sends is cut where it is too much at a time, and not where it was much by now."""
    monkeypatch.setattr(producers, "MAX_SEND", 10_000)
    broker.topics.make("made", partitions=1)
    outbox, waits = Outbox(broker.address, broker.topics.prefix + "-", {}), [0]
    acknowledged = outbox.acknowledged

    async def counted() -> None:
        waits[0] += 1
        await acknowledged()

    monkeypatch.setattr(outbox, "acknowledged", counted)

    async def send(sizes: Sequence[int]) -> int:
        waits[0] = 0
        frames = [Frame("made", 0, b"k", bytes(size)) for size in sizes]
        await outbox.send([(Finished("essence", "objects", 0, 0, frames), [])])
        return waits[0]

    async def play() -> list[int]:
        return [await send(sizes) for sizes in ([4_000, 4_000], [4_000, 4_000], [4_000, 4_000, 4_000], [9_000])]

    assert asyncio.run(play()) == [1, 1, 2, 1]


def test_nothing_is_sent_at_once() -> None:
    """Where there is nothing to send, no broker is asked."""
    assert asyncio.run(Sender("127.0.0.1:1", lambda: 1.0).send([])) == []


def test_what_is_given_up_is_left() -> None:
    """Whoever gives up waiting for a broker is told how many records it may never have."""
    sender = Sender("127.0.0.1:1", lambda: TIMEOUT)

    async def give_up() -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(sender.send([Outgoing("out", b"k", b"v")] * 3), 0.1)

    asyncio.run(give_up())
    assert sender.left == 3
