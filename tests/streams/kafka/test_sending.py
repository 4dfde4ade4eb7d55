"""`Sender` on a real Kafka: the order, the positions and the acknowledgment of a stage's records."""

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
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import OVERHEAD, ordered_producer, worker_client
from streams.kafka.decide import sending
from streams.kafka.decide.sending import ANY, Outgoing, RecordPosition, Sender
from streams.kafka.edge.outbox import Outbox
from streams.store.murmur2 import partition as partition_of
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker

PARTITIONS = 3


def sent(broker: Broker, records: Sequence[Outgoing], settings: Mapping[str, Any] = MappingProxyType({})) -> list[RecordPosition]:
    """Send records with a new sender, in two calls; returns their positions."""
    sender = Sender(Cluster(broker.address), lambda: TIMEOUT)
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
    """Key, value and headers of all records, by position."""
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
def test_records_are_at_returned_positions_in_order(broker: Broker, topic: str, room: int) -> None:
    """Each record is in the partition of its key, or in the requested one, at the returned position and in order."""
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
def test_headers_of_each_form_are_sent(broker: Broker, topic: str, headers: Any) -> None:
    """Headers are sent in each form that clients have; Faust's messages have a tuple of tuples."""
    (place,) = sent(broker, [Outgoing(topic, b"k", b"v", headers=headers)])
    told = list(headers.items()) if isinstance(headers, dict) else list(headers or ())
    assert found(broker, topic)[place] == (b"k", b"v", told or None)


def test_oversized_record_raises_after_all_acknowledgments(broker: Broker) -> None:
    """A record that is too large raises an error, once all other records have been acknowledged."""
    small = broker.topics.make("small", PARTITIONS, {"max.message.bytes": "1000"})
    records = [Outgoing(small, b"k", b"x" * size) for size in (10, 5_000)]
    with pytest.raises(KafkaException, match="too large"):
        sent(broker, records)
    assert [value for _, value, _ in found(broker, small).values()] == [b"x" * 10]


def test_silent_broker_is_given_up_after_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not answer is given up after about a session, but not before there was time for a restart."""
    monkeypatch.setattr(sending, "PATIENCE", 0.5)
    sender = Sender(Cluster("127.0.0.1:1"), lambda: 1.0)
    with pytest.raises(KafkaException, match="timed out"):
        asyncio.run(sender.send([Outgoing("t", b"k", b"v")]))


def test_timed_out_records_are_sent_again_in_order(broker: Broker, topic: str) -> None:
    """A record that timed out in the client is sent again, with all behind it, in order, as long as the process is awake."""
    asked = iter([True, True])
    sender = Sender(Cluster("127.0.0.1:1"), lambda: 0.5)
    records = [Outgoing(topic, b"k", b"v%d" % number, 0) for number in range(3)]

    def awake() -> None:
        next(asked)
        if sender._producer is not None:
            # From now on the broker can be reached.
            client = worker_client(Cluster(broker.address))
            sender._producer = ordered_producer({**client, "delivery.timeout.ms": int(TIMEOUT * 1_000)})

    sender._awake = awake
    assert asyncio.run(sender.send(records)) == [RecordPosition(0, 0), RecordPosition(0, 1), RecordPosition(0, 2)]


def test_many_records_are_sent_in_parts(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many records are sent in parts, one after the other; before each, the sender checks that the process is awake."""
    monkeypatch.setattr(producers, "MAX_SEND", 3 * (OVERHEAD + 3))
    asked: list[bool] = []
    sender = Sender(Cluster(broker.address), lambda: TIMEOUT, lambda: asked.append(True))
    records = [Outgoing(topic, b"k", b"v%d" % number, 0) for number in range(10)]
    assert asyncio.run(sender.send(records)) == [RecordPosition(0, number) for number in range(10)]
    assert len(asked) == 4


def test_failed_part_stops_later_parts(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in one part is raised before anything else is sent."""
    monkeypatch.setattr(producers, "MAX_SEND", 1)
    small = broker.topics.make("small", PARTITIONS, {"max.message.bytes": "1000"})
    sender = Sender(Cluster(broker.address), lambda: TIMEOUT)
    with pytest.raises(KafkaException, match="too large"):
        asyncio.run(sender.send([Outgoing(small, b"k", b"x" * size) for size in (10, 5_000, 20)]))
    assert [value for _, value, _ in found(broker, small).values()] == [b"x" * 10]


def test_only_bytes_in_flight_count_toward_part(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edge's output is split by the bytes in flight at a time, not by those sent since the start."""
    monkeypatch.setattr(producers, "MAX_SEND", 10_000)
    broker.topics.make("made", partitions=1)
    outbox, waits = Outbox(Cluster(broker.address, broker.topics.prefix + "-"), {}), [0]
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


def test_send_without_records_contacts_no_broker() -> None:
    """Without records the sender returns at once, and contacts no broker."""
    assert asyncio.run(Sender(Cluster("127.0.0.1:1"), lambda: 1.0).send([])) == []


def test_left_counts_records_given_up() -> None:
    """After a timeout, `left` is the number of records that the broker may never get."""
    sender = Sender(Cluster("127.0.0.1:1"), lambda: TIMEOUT)

    async def give_up() -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(sender.send([Outgoing("out", b"k", b"v")] * 3), 0.1)

    asyncio.run(give_up())
    assert sender.left == 3
