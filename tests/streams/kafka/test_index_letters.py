"""Dead letters of the index sink on a real Kafka: undecodable records, and records too large for `rejected`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Producer

from schemas.codec import decode, encode
from schemas.ports import BrokerIndex, Logged, Refused
from schemas.query import Every
from schemas.records import Rejected, Removed, Summary
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import MAX_MESSAGE, ORDERED
from streams.kafka.client.registry import wire
from streams.kafka.sink import position
from streams.kafka.sink.batch_applier import Applier
from streams.kafka.sink.buffer import Read
from streams.kafka.sink.dead_letter_producer import DeadLetterProducer, Letter
from streams.topology.flow import REJECTED
from tests.servers.fixtures import TIMEOUT, Topics
from tests.servers.registry import Registry
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.test_index_sink import World, headers, summary

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

UNKNOWN = b"\0\0\0\0\x63junk"
"""The Confluent wire format, with a schema number that no registry has."""
SMALL = range(1, 41)
"""Sizes (bytes) of letters that a topic takes, but not all in one batch."""


@pytest.fixture(params=["", "registry"], ids=["no registry", "a registry"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a registry of the test's own, or "" for none."""
    if not request.param:
        yield ""
        return
    with Registry() as running:
        yield running.url


def letter(size: int) -> Rejected:
    """A dead letter whose record has this many bytes."""
    about = {"stage": "index", "reason": "not a record", "topic": "broker.main", "partition": 0, "offset": 7}
    return Rejected(**about, time=1, key=b"key", value=b"x" * size)  # type: ignore[arg-type]


def test_wrongly_framed_record_is_dead_letter(broker: Broker, opensearch: str, index: str, url: str) -> None:
    """A record that only starts like the Confluent wire format is a dead letter with its bytes; all others are indexed."""
    world = World(broker, opensearch, index)
    world.cluster = world.cluster._replace(registry=url)
    plain = [summary(number) for number in (0, 3)]
    broker.append(world.topic, [(b"before", encode(plain[0])), (b"bad", UNKNOWN), (b"short", b"\0"), (b"x", encode(plain[1]))], 1)
    with world.sink():
        world.until_read()
    with closing(world.open()) as made:
        made.refresh()
        assert [hit.url for hit in made.search(Every()).hits] == ["http://a/0", "http://a/3"]
    found = world.letters()
    assert sorted((one.offset, one.key, one.value) for one in found) == [(1, b"bad", UNKNOWN), (2, b"short", b"\0")]
    assert all(one.reason.startswith("not a record") and one.topic == "broker.main" for one in found)


def test_dead_letters_have_format_of_cluster(kafka: str, topics: Topics, broker: Broker, url: str) -> None:
    """Dead letters are written in the cluster's format: framed for the registry, if there is one."""
    cluster = Cluster(kafka, f"{topics.prefix}-", registry=url)
    name = topics.make("rejected")
    DeadLetterProducer(cluster).send([(letter(5), [("from", b"a stranger")])])
    ((_, value),) = broker.read(name)
    assert value == wire(cluster, (REJECTED,)).frame("rejected", encode(letter(5)))
    assert (value[:1] == b"\0") is bool(url)


@pytest.mark.parametrize(
    ("taken", "given", "whole"),
    [(4 << 20, MAX_MESSAGE, True), (2_000, MAX_MESSAGE, False), (4 << 20, 2_000, False)],
    ids=["room", "too large for the topic", "too large for the client"],
)
def test_oversized_letter_goes_without_bytes(
    broker: Broker, topics: Topics, monkeypatch: pytest.MonkeyPatch, taken: int, given: int, whole: bool
) -> None:
    """A letter of more than a MB is sent whole if the topic takes it, else without its bytes; others are not affected."""
    monkeypatch.setitem(ORDERED, "message.max.bytes", given)
    topics.make("rejected", 1, {"max.message.bytes": str(taken)})
    cluster = Cluster(broker.address, f"{topics.prefix}-")
    sender = DeadLetterProducer(cluster)
    for sizes in [5], [1_500_000], [6], [*SMALL, 1_400_000]:
        sender.send([(letter(size), [("n", b"%d" % size)]) for size in sizes])
    every = [decode(value or b"") for _, value in broker.read(cluster.topic("rejected"))]
    together = sorted(len(one.value or b"") for one in every[3:] if isinstance(one, Rejected))
    assert together == ([*SMALL, 1_400_000] if whole else [0, *SMALL])
    found = every[:3]
    assert [one.value for one in found if isinstance(one, Rejected)] == [b"x" * 5, b"x" * 1_500_000 if whole else None, b"x" * 6]
    assert all((one.key, one.offset) == (b"key", 7) for one in found if isinstance(one, Rejected))


class Narrow(DeadLetterProducer):
    """A topic that takes a batch of at most two letters with at most 10 bytes of records."""

    def __init__(self) -> None:
        self.taken: list[Letter] = []

    def _sent(self, letters: Iterable[Letter]) -> list[Letter]:
        batch = list(letters)
        if len(batch) > 2 or sum(len(one.value or b"") for one, _ in batch) > 10:
            return batch
        self.taken += batch
        return []


def test_letters_of_refused_batch_are_sent_alone() -> None:
    """If the topic refuses a batch of letters without bytes, each of them is sent alone."""
    narrow = Narrow()
    narrow.send([(letter(size), []) for size in (5, 20, 30, 40)])
    assert sorted(len(one.value or b"") for one, _ in narrow.taken) == [0, 0, 0, 5]


class Refusing:
    """An index that refuses all changes."""

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> list[Refused]:
        return [Refused(change, "odd") for change in changes]


class Told:
    """Records the dead letters that it gets."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.times = 0

    def send(self, letters: Iterable[Letter]) -> None:
        self.letters += letters
        self.times += 1


def test_dead_letter_has_bytes_of_refused_record() -> None:
    """If the index refuses a newer record that precedes an older one, the dead letter has the newer record's bytes."""
    told = Told()
    values = [encode(summary(0, published)) for published in (4, 6, 5)]
    reads = [Read(Logged("broker.main", 1, at, 1, b"k", value), [("n", b"%d" % at)]) for at, value in enumerate(values)]
    Applier(cast("BrokerIndex", Refusing()), cast("DeadLetterProducer", told), whole=False, plain=bytes).apply({1: reads})
    ((refused, with_it),) = told.letters
    assert (refused.partition, refused.offset, refused.value, with_it) == (1, 1, values[1], [("n", b"1")])


def test_letters_of_batch_are_sent_together() -> None:
    """The undecodable records of a batch are sent together, the refused ones too; without any, nothing is sent."""
    told, values = Told(), [b"x", b"y", encode(summary(0)), encode(summary(1))]
    reads = [Read(Logged("broker.main", 0, at, 1, b"k", value), []) for at, value in enumerate(values)]
    applier = Applier(cast("BrokerIndex", Refusing()), cast("DeadLetterProducer", told), whole=False, plain=bytes)
    applier.apply({0: reads})
    assert ([letter.offset for letter, _ in told.letters], told.times) == ([0, 1, 2, 3], 2)
    applier.apply({0: [Read(Logged("broker.main", 0, 4, 1, b"k", None), [])]})
    assert told.times == 2


def test_oversized_record_does_not_stop_sink(broker: Broker, opensearch: str, index: str) -> None:
    """An undecodable record too large for a dead letter becomes one without bytes, and the sink goes on behind it."""
    world = World(broker, opensearch, index, {"max.message.bytes": str(2 << 20)})
    producer = Producer({"bootstrap.servers": broker.address, "message.max.bytes": 4 << 20, "log_level": 0})
    producer.produce(world.topic, b"x" * 1_500_000, b"bad", partition=1, headers=[("n", b"1")])
    assert producer.flush(TIMEOUT) == 0
    world.send([summary(0)])
    with world.sink():
        world.until_read()
    (one,) = world.letters()
    assert (one.key, one.value, one.offset, one.reason[:12]) == (b"bad", None, 0, "not a record")
    assert headers(world) == [(("n", b"1"),)]


def test_closed_index_pauses_sink(
    broker: Broker, opensearch: str, index: str, search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the index is closed nothing is committed or rejected, which is reported once; after it opens, all is applied."""
    monkeypatch.setattr(position, "LONGEST", 0.5)
    world, told = World(broker, opensearch, index), list[str]()
    world.send([summary(0)])
    with world.sink(None, told):
        world.until_read()
        search_client.indices.close(index=world.alias)
        world.send([summary(1), summary(2), summary(3)])
        world.until(lambda: told)
        assert world.lag() == 3
        search_client.indices.open(index=world.alias)
        world.until_read()
    with closing(world.open()) as made:
        made.refresh()
        assert made.count(Every()) == 4
    assert ["closed" in line for line in told] == [True, False]
    assert told[1] == "the index is written again"
    assert not world.letters()
