"""The index sink, from a real Kafka into a real OpenSearch."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from processors.identity import oid
from processors.query import parse
from schemas.codec import decode, encode
from schemas.ports import BrokerIndex, Refused
from schemas.query import Every
from schemas.records import Rejected, Removed, Summary
from sinks.index.errors import IndexDamaged
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import PARTITIONER
from streams.kafka.client.registry import wire
from streams.kafka.sink import buffer, position
from streams.kafka.sink.index_sink import fill_index, sink_options
from streams.topology.flow import TopologySettings, topology
from tests.servers import opensearch as server
from tests.servers.fixtures import TIMEOUT
from tests.servers.process import free_port
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.threads import beside

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

PARTITIONS = 4
SESSION = 120.0
"""Seconds of a sink's session: no pause of the machine ends it. A sink that is to be killed has a short one."""
QUERIES = ("*", "whale", "title:whale", "whale OR squid", '"white whale"', "number:3", "type:text", "squid -whale", "remark:*")

CHILD = """
import sys, threading
from sinks.index.opensearch.index import OpenSearchIndex
from streams.kafka.client.cluster import Cluster
from streams.kafka.sink import buffer
from streams.kafka.sink.index_sink import fill_index, sink_options
buffer.BATCH = 30
_, kafka, prefix, url, alias = sys.argv
fill_index(Cluster(kafka, prefix), "main", OpenSearchIndex(url, alias, fresh=False), threading.Event(), session=2.0)
"""


def summary(number: int, published: int = 1, **more: Any) -> Summary:
    """The summary of one of many objects."""
    url = f"http://a/{number}"
    words = ("white whale", "squid", "whale", "a white squid and a whale")
    given: dict[str, tuple[str | bytes, ...]] = {"title": (words[(number + published) % 4],), "number": (f"{number % 7}",)}
    if number % 5 == 0:
        given["remark"] = (words[number % 4],)
    about: dict[str, Any] = {"oid": oid("g", url), "url": url, "object_url": url, "gatherer": "g", "version": 1, "time": 1}
    return Summary(**about, type="Text", attributes=given, published=published, **more)


def removal(number: int, published: int) -> Removed:
    """The removal of the object of that number."""
    url = f"http://a/{number}"
    about: dict[str, Any] = {"oid": oid("g", url), "url": url, "object_url": url, "version": 1, "time": 1}
    return Removed(**about, reason="gone", published=published)


def stream(count: int = 300) -> list[Summary | Removed]:
    """Summaries, then changes, copies, removals, and some that come back."""
    made: list[Summary | Removed] = [summary(number) for number in range(count)]
    made += [summary(number, 2) for number in range(0, count, 3)]
    made += [summary(number, 3, copy_of="first") for number in range(0, count, 10)]
    made += [removal(number, 4) for number in range(0, count, 4)]
    made += [summary(number, 5) for number in range(0, count, 8)]
    return made


class World:
    """A Broker's topic, `rejected`, and an index of the test's own."""

    def __init__(self, broker: Broker, url: str, alias: str, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are those of the Broker's topic."""
        self.broker = broker
        self.url = url
        self.alias = alias
        self.cluster = Cluster(broker.address, f"{broker.topics.prefix}-")
        self.topic = broker.topics.make("broker.main", PARTITIONS, settings)
        self.rejected = broker.topics.make("rejected", 1)
        self.group = self.cluster.group("index.main")
        self.errors: list[BaseException] = []

    def open(self) -> OpenSearchIndex:
        return OpenSearchIndex(self.url, self.alias, fresh=False)

    def send(self, changes: Sequence[Summary | Removed]) -> None:
        self.broker.append(self.topic, [(change.oid.encode(), encode(change)) for change in changes])

    def sink(self, index: BrokerIndex | None = None, told: list[str] | None = None) -> AbstractContextManager[None]:
        """Run a member of the group in a thread; an error that ends it early is raised."""
        # A given index is one in a folder.
        how = sink_options(not index)
        how |= {"plain": wire(self.cluster, topology(TopologySettings()).topics).plain}
        more: Mapping[str, Any] = {"session": SESSION, "note": (told if told is not None else []).append, **how}
        return beside(lambda stop: fill_index(self.cluster, "main", index or self.open(), stop, **more), self.errors)

    def child(self, fault: str = "") -> subprocess.Popen[bytes]:
        """Start a member of the group as a process."""
        command = [sys.executable, "-c", CHILD, self.broker.address, self.cluster.prefix, self.url, self.alias]
        return subprocess.Popen(command, env={**os.environ, "HARVEST_FAULT": fault})

    def until_read(self) -> None:
        """Wait until the group has committed all records."""
        self.until(lambda: self.lag() == 0)

    def lag(self) -> int:
        """The records that the group has yet to commit; all of them while it has no coordinator yet."""
        try:
            return self.broker.lag(self.group, self.topic, PARTITIONS)
        except KafkaException:
            return 1 << 30

    def until(self, true: Callable[[], object]) -> None:
        """Wait until a condition holds; only the test's time limit ends the wait. Raises an error that ended a sink."""
        while not true():
            time.sleep(0.05)
            for error in self.errors:
                raise error

    def letters(self) -> list[Rejected]:
        plain = wire(self.cluster, topology(TopologySettings()).topics).plain
        found = [decode(plain(value)) for _, value in self.broker.read(self.rejected) if value is not None]
        return [letter for letter in found if isinstance(letter, Rejected)]


def answers(index: BrokerIndex) -> Mapping[str, object]:
    """Counts and hits of an index, the hits without their scores."""
    found: dict[str, object] = {}
    for query in QUERIES:
        page = index.search(parse(query), limit=1_000)
        hits = sorted(hit._replace(score=0) for hit in page.hits)
        found[query] = (index.count(parse(query)), page.total, hits, list(index.scroll(parse(query))))
    return found


@pytest.fixture
def expected(tmp_path: Path) -> Mapping[str, object]:
    """The answers of an embedded index for the stream."""
    with closing(TantivyIndex(tmp_path / "expected", heap=15_000_000)) as index:
        index.apply(stream(), {})
        return answers(index)


@pytest.fixture
def world(broker: Broker, opensearch: str, index: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Topics and an index, with small batches."""
    monkeypatch.setattr(buffer, "BATCH", 30)
    monkeypatch.setattr(buffer, "GATHERED", 30)
    return World(broker, opensearch, index)


def test_both_engines_answer_like_embedded_index(world: World, tmp_path: Path, expected: Mapping[str, object]) -> None:
    """Both engines answer like the embedded index for one stream; the group has committed all, and nothing was rejected."""
    world.send(stream())
    with world.sink():
        world.until_read()
    with closing(world.open()) as index:
        index.refresh()
        assert answers(index) == expected
        assert sum(index.offsets().values()) == len(stream())
    tantivy = TantivyIndex(tmp_path / "embedded", heap=15_000_000)
    with world.sink(tantivy):
        world.until(lambda: sum(tantivy.offsets().values()) == len(stream()))
    with closing(TantivyIndex(tmp_path / "embedded", writable=False)) as reader:
        assert answers(reader) == expected
    assert not world.letters()


def test_aborted_records_are_not_indexed_and_markers_leave_no_lag(world: World, expected: Mapping[str, object]) -> None:
    """Records of committed foreign transactions are indexed, aborted ones are not, and markers leave no lag, even at the end."""
    made = stream()
    never: list[Summary | Removed] = [summary(number, 9) for number in range(40)]
    parts: list[list[Summary | Removed]] = [made[:300], never, made[300:], [summary(999)]]
    for at, part in enumerate(parts):
        with world.broker.transaction(keep=at % 2 == 0) as producer:
            for change in part:
                producer.produce(world.topic, encode(change), change.oid.encode())
    with world.sink():
        world.until_read()
    with closing(world.open()) as index:
        index.refresh()
        assert answers(index) == expected


class Counted(TantivyIndex):
    """An index in a folder that records its calls: the number of changes, and the offsets behind them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, heap=15_000_000)
        self.given: list[tuple[int, Mapping[int, int]]] = []

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        self.given.append((len(changes), dict(offsets)))
        return super().apply(changes, offsets)


def test_folder_index_commits_offsets_with_their_batch(world: World, tmp_path: Path) -> None:
    """Each commit of an index in a folder is a batch together with its offsets; no commit has offsets alone."""
    index = Counted(tmp_path / "embedded")
    world.send(stream())
    with world.sink(index):
        world.until(lambda: sum(index.offsets().values()) == len(stream()))
    assert len(index.given) > 1
    assert all(changes and offsets for changes, offsets in index.given)
    ends = {partition: offset for _, offsets in index.given for partition, offset in offsets.items()}
    assert sum(ends.values()) == len(stream())


def test_killed_sinks_lose_nothing(world: World, expected: Mapping[str, object]) -> None:
    """Sinks killed before a bulk request, between it and its offset, and before the commit lose nothing."""
    world.send(stream())
    for point in ("index.apply:3", "index.applied:3", "index.passed:2"):
        assert world.child(f"{point}:kill").wait() == -signal.SIGKILL
    with world.sink():
        world.until_read()
    with closing(world.open()) as index:
        index.refresh()
        assert answers(index) == expected


@pytest.mark.usefixtures("narrow")
def test_undecodable_and_refused_records_are_rejected(world: World, broker: Broker) -> None:
    """Undecodable and refused records go to `rejected` with bytes, headers and place; all others are indexed."""
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", **PARTITIONER})
    wide, other = summary(2, 1_000), Rejected(stage="a", reason="b", time=1)
    values = [encode(summary(0)), b"no record", encode(other), encode(wide), None, encode(summary(3))]
    for number, value in enumerate(values):
        key = summary(number).oid.encode() if value != encode(wide) else wide.oid.encode()
        producer.produce(world.topic, value, key, partition=1, headers=[("n", b"%d" % number)])
    assert producer.flush(TIMEOUT) == 0
    with world.sink():
        world.until_read()
    with closing(world.open()) as index:
        index.refresh()
        assert [hit.url for hit in index.search(Every()).hits] == ["http://a/0", "http://a/3"]
    letters = world.letters()
    assert sorted((letter.offset, letter.reason) for letter in letters) == [
        (1, "not a record: not a Harvest record: the header is 6e6f207265636f7264"),
        (2, "not a record: a Rejected"),
        (3, "refused by the index"),
    ]
    assert all(letter.value == values[letter.offset] and letter.key and letter.topic == "broker.main" for letter in letters)
    assert all((letter.stage, letter.partition) == ("index", 1) for letter in letters)
    assert headers(world) == [(("n", b"%d" % number),) for number in (1, 2, 3)]


def headers(world: World) -> list[tuple[Any, ...]]:
    """The headers of all dead letters."""
    with closing(world.broker.client(f"{world.rejected}-headers")) as client:
        client.assign([TopicPartition(world.rejected, 0, 0)])
        _, end = client.get_watermark_offsets(TopicPartition(world.rejected, 0), timeout=TIMEOUT)
        messages = iter(lambda: client.poll(TIMEOUT), None)
        found = itertools.islice((message for message in messages if message.error() is None), end)
        return sorted(tuple(message.headers() or ()) for message in found)


def test_members_joining_and_leaving_lose_nothing(world: World, expected: Mapping[str, object]) -> None:
    """While members join, leave and are killed, each record is applied by the owner of its partition: none is lost."""
    made = stream()
    killed = world.child()
    with world.sink():
        for part in (made[:200], made[200:400]):
            world.send(part)
            world.until(lambda: world.lag() < 200)
        with world.sink():
            killed.kill()
            killed.wait()
            world.send(made[400:])
            world.until_read()
    with closing(world.open()) as index:
        index.refresh()
        assert answers(index) == expected


def test_deleted_index_is_filled_again(world: World, search_client: OpenSearch, expected: Mapping[str, object]) -> None:
    """A deleted index is created again and filled from the beginning, whatever the group has committed."""
    world.send(stream())
    with world.sink():
        world.until_read()
        search_client.indices.delete(index=f"{world.alias}-0")
        world.send([summary(1, 1)])
        world.until(lambda: search_client.indices.get(index=f"{world.alias}*"))
        with closing(world.open()) as index:
            world.until(lambda: sum(index.offsets().values()) == len(stream()) + 1)
            index.refresh()
            assert answers(index) == expected


def test_index_of_another_topic_is_refused(world: World) -> None:
    """A sink refuses an index with more records than its topic: it ends with that message, and writes nothing."""
    with closing(world.open()) as index:
        index.apply([summary(1)], {2: 1_000})
    with pytest.raises(IndexDamaged, match=r"holds more than its topic .*1,000 of 0"):
        fill_index(world.cluster, "main", world.open(), threading.Event())


@pytest.mark.slow(30)
def test_sink_survives_server_restart(broker: Broker, monkeypatch: pytest.MonkeyPatch, expected: Mapping[str, object]) -> None:
    """While the server is down nothing is committed or rejected, which is reported once; after its start, all is applied."""
    monkeypatch.setattr(buffer, "BATCH", 30)
    monkeypatch.setattr(position, "LONGEST", 0.5)
    port, told, made = free_port(), list[str](), stream()
    world = World(broker, f"http://127.0.0.1:{port}", "harvest-main")
    # Not below pytest's own folder: the user that the server runs as cannot enter it.
    with TemporaryDirectory(prefix="harvest-node-") as name, ExitStack() as running:
        folder = Path(name)
        folder.chmod(0o755)
        with server.from_jars(folder, port):
            world.send(made[:200])
            running.enter_context(world.sink(None, told))
            world.until_read()
        world.send(made[200:])
        world.until(lambda: told)
        assert world.lag() == len(made) - 200
        with server.from_jars(folder, port):
            world.until_read()
            with closing(world.open()) as index:
                index.refresh()
                assert answers(index) == expected
            running.close()
    assert told == [f"the index cannot be reached: {world.url}; trying again", "the index is written again"]
    assert not world.letters()
