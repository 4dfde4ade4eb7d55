"""Faults of Faust and of the Kafka clients on a real broker, and the workarounds in streams/kafka for them.

Each pitfall is a pair of tests: the plain library fails, and with the workaround it does not. When the first half no longer fails,
the workaround can be removed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.consumer.fetcher import Fetcher  # type: ignore[import-untyped]
from aiokafka.errors import TopicAuthorizationFailedError  # type: ignore[import-untyped]
from confluent_kafka import Producer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import PARTITIONER, connected, flush, ordered_producer, worker_client
from streams.kafka.decide.client_workarounds import CLEAN, LATELY, ConsumerThread, tables, tolerate_refused_commits
from streams.store.murmur2 import partition as partition_of
from tests.bench.cpu import stat
from tests.bench.memory import family
from tests.servers import kafka
from tests.servers.fixtures import TIMEOUT, Topics
from tests.streams.kafka.conftest import Broker, Start
from tests.streams.kafka.own import Own

RECORDS = {b"k%d" % n: b"v%d" % n for n in range(20)}
ROUNDS = 4
"""Number of commits after the last processed record, within which all processed records must be committed."""
UNSENT = 30.0
"""Seconds for which a producer collects records, so that it sends nothing before the worker dies."""


@pytest.fixture
def killed(broker: Broker, start: Start) -> str:
    """A topic whose records a worker put into its table before it was killed; none of them has reached the changelog."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    assert start(topic, "die", len(RECORDS), linger=UNSENT, commit=UNSENT).died()
    assert broker.read(f"{broker.topics.prefix}-app-rows-changelog") == []
    assert broker.committed(f"{broker.topics.prefix}-app", topic) == 0
    return topic


def again(broker: Broker, start: Start, topic: str, **more: bool) -> dict[bytes, bytes | None]:
    """The changelog after a second worker has processed and committed the same records."""
    worker = start(topic, "put", len(RECORDS), **more)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == len(RECORDS)
    return dict(broker.read(f"{worker.task.id}-rows-changelog"))


def test_plain_rows_of_killed_worker_never_reach_changelog(killed: str, broker: Broker, start: Start) -> None:
    """Plain: rows that only RocksDB has are found at redelivery, never sent, and committed: the next failover loses them."""
    assert again(broker, start, killed) == {}


def test_rows_put_again_reach_changelog(killed: str, broker: Broker, start: Start) -> None:
    """With the workaround, a redelivery puts and sends the rows again; the changelog equals the committed input, row by row."""
    assert again(broker, start, killed, mended=True) == RECORDS


def test_tables_are_empty_after_kill(broker: Broker, start: Start) -> None:
    """With the workaround, tables of a killed worker start empty, so that a stage that puts only unknown rows loses none."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    assert start(topic, "die", len(RECORDS), linger=UNSENT, commit=UNSENT, fresh=True).died()
    assert again(broker, start, topic, fresh=True) == RECORDS


def test_tables_are_kept_after_orderly_stop(broker: Broker, start: Start, tmp_path: Path) -> None:
    """With the workaround, a worker stopped in order leaves its tables to the next one, with all that Faust has flushed."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "put", len(RECORDS), fresh=True)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    worker.stop()
    assert dict(broker.read(f"{worker.task.id}-rows-changelog")) == RECORDS
    with tables(tmp_path / "worker", time.time()):
        assert list((tmp_path / "worker").rglob("*.db"))


@pytest.mark.parametrize(("away", "kept"), [(0.0, True), (LATELY - 60, True), (LATELY + 60, False), (-60.0, False)])
def test_tables_are_kept_for_limited_time(tmp_path: Path, away: float, *, kept: bool) -> None:
    """A store unused for long may have missed removals, and one with a future time is not trusted: both start empty."""
    with tables(tmp_path / "store", time.time()):
        (tmp_path / "store" / "row").touch()
    with tables(tmp_path / "store", (tmp_path / "store" / CLEAN).stat().st_mtime + away):
        assert (tmp_path / "store" / "row").exists() == kept


@pytest.mark.parametrize(("now", "kept"), [("first", True), ("second", False)])
def test_tables_of_another_changelog_are_dropped(tmp_path: Path, now: str, *, kept: bool) -> None:
    """Tables that were made from a changelog with another topic id are not used: their rows are not in the present one."""
    with tables(tmp_path / "store", time.time(), "first"):
        (tmp_path / "store" / "row").touch()
    with tables(tmp_path / "store", time.time(), now):
        assert (tmp_path / "store" / "row").exists() == kept


def test_tables_are_empty_after_error(tmp_path: Path) -> None:
    """A worker that ends with an exception leaves no tables that the next one uses."""
    with suppress(ZeroDivisionError), tables(tmp_path / "store", time.time()):
        (tmp_path / "store" / "row").touch()
        raise ZeroDivisionError
    with tables(tmp_path / "store", time.time()):
        assert not (tmp_path / "store" / "row").exists()


def transactions(broker: Broker, topic: str, count: int) -> int:
    """Append records in one transaction each, whose markers are gaps to a reader; returns the offset behind the last record."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions(TIMEOUT)
    for n in range(count):
        producer.begin_transaction()
        producer.produce(topic, b"", b"k%d" % n)
        producer.commit_transaction(TIMEOUT)
    return 2 * count - 1


@pytest.mark.parametrize(("mended", "behind"), [(False, True), (True, False)], ids=["plain", "mended"])
def test_commits_keep_up_with_offset_gaps(broker: Broker, start: Start, *, mended: bool, behind: bool) -> None:
    """All processed records are committed in the next round, whatever the gaps; plain, each gap takes a round of its own."""
    topic = broker.topics.make("in")
    end = transactions(broker, topic, 60)
    worker = start(topic, "pass", 60, mended=mended)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    committed = broker.committed(worker.task.id, topic)
    assert (committed < end / 2) == behind
    assert (committed == end) != behind


@pytest.mark.parametrize("mended", [False, True], ids=["plain", "mended"])
def test_failed_commit_is_repeated(broker: Broker, start: Start, *, mended: bool) -> None:
    """A failed commit is repeated in a later round; plain, it counts as done until more records arrive."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "pass", len(RECORDS), mended=mended, refused=2, commit=1.0)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == (len(RECORDS) if mended else 0)


@pytest.mark.parametrize("mended", [False, True], ids=["plain", "mended"])
def test_seek_back_during_delivery_takes_effect(broker: Broker, start: Start, *, mended: bool) -> None:
    """A seek back during delivery takes effect; plain, records below the one in delivery are dropped silently."""
    topic = broker.topics.make("in")
    broker.fill(topic, {b"k%d" % n: b"v" for n in range(400)})
    worker = start(topic, "back", 400, mended=mended)
    assert worker.until("last", 2) == f"last {mended}\n"


@pytest.mark.parametrize("mended", [False, True], ids=["plain", "mended"])
def test_requests_on_idle_topic_are_answered_at_once(broker: Broker, start: Start, *, mended: bool) -> None:
    """Requests on an idle topic do not wait for the pending fetch; plain, each takes a second and a half."""
    topic = broker.topics.make("in")
    broker.fill(topic, {b"k": b"v"})
    assert start(topic, "ask", 1, mended=mended).until("asked") == f"asked {mended}\n"


def test_new_producer_sends_first_record_at_once(broker: Broker) -> None:
    """A new producer's first record overtakes one given earlier to a plain one, whose first search for a broker fails.

    A pause of the machine in between may reverse the order: one time of several is enough. If plain producers were fast, it would
    be none.
    """
    assert any(overtaken(broker, f"in-{number}") for number in range(5))


def overtaken(broker: Broker, name: str) -> bool:
    """Whether the first record of a producer with the workaround is stored before that of a plain one, which got it earlier."""
    topic = broker.topics.make(name)
    settings = {"bootstrap.servers": broker.address, "enable.idempotence": True}
    plain = Producer(settings)
    plain.produce(topic, b"plain")
    mended = connected(Producer(settings))
    mended.produce(topic, b"mended")
    assert mended.flush(TIMEOUT) == plain.flush(TIMEOUT) == 0
    return [value for _, value in broker.read(topic)] == [b"mended", b"plain"]


def test_producer_does_not_spin_while_broker_is_silent(tmp_path: Path) -> None:
    """While a broker does not answer, a plain producer polls without end whether it may send the records behind those in flight."""
    with closing(Own(partial(kafka.from_jars, tmp_path))) as own:
        topics = Topics(own.address)
        topic = topics.make("in")
        (process,) = (pid for pid in family(os.getpid()) if f"{tmp_path}/server.properties" in stat(pid).command)
        plain, mended = rounds(own.address, topic, process, held=False), rounds(own.address, topic, process, held=True)
        topics.close()
    assert plain > 50 * mended


def rounds(kafka: str, topic: str, process: int, *, held: bool) -> int:
    """The number of wakeups of a producer's broker thread while the broker's process was stopped for a second."""
    told: list[int] = []

    def stats(said: str) -> None:
        told.append(max(broker["wakeups"] for broker in json.loads(said)["brokers"].values()))

    more: dict[str, Any] = {"stats_cb": stats, "statistics.interval.ms": 100} | ({} if held else {"linger.ms": 5})
    producer = connected(ordered_producer({**worker_client(Cluster(kafka)), **more}))
    producer.produce(topic, b"first")
    assert producer.flush(TIMEOUT) == 0
    while not told:
        producer.poll(0.1)
    os.kill(process, signal.SIGSTOP)
    try:
        for number in range(200):
            producer.produce(topic, b"%d" % number)
            # Python pauses briefly: the first records are in flight before the last are produced.
            time.sleep(0.0005)
        before = told[-1]
        until = time.monotonic() + 1
        while time.monotonic() < until:
            if held:
                asyncio.run(flush(producer))
            else:
                producer.poll(0.1)
        assert told[-1] > before
        return told[-1] - before
    finally:
        os.kill(process, signal.SIGCONT)
        producer.flush(TIMEOUT)


@pytest.mark.parametrize(("mended", "handed"), [(False, len(RECORDS)), (True, 0)], ids=["plain", "mended"])
def test_deleted_table_is_restored_without_faust(
    broker: Broker, start: Start, tmp_path: Path, *, mended: bool, handed: int
) -> None:
    """A deleted table is complete when the first record is processed, and Faust handled no row; plain, it handles each."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "put", len(RECORDS))
    worker.until("seen")
    worker.until("commit", ROUNDS)
    worker.stop()
    shutil.rmtree(tmp_path / "worker")
    worker = start(topic, "count", 1, mended=mended)
    broker.fill(topic, {b"one": b"more"})
    assert worker.until("rows") == f"rows {len(RECORDS)} {handed}\n"


def test_plain_table_write_in_batch_fails_and_loses_batch(broker: Broker, start: Start) -> None:
    """Plain: a table write for an event of a batch raises TypeError, yet the whole batch is acknowledged, and its rows are lost."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "batch", len(RECORDS))
    assert "outside of stream iteration" in worker.until("error")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == len(RECORDS)
    assert broker.read(f"{worker.task.id}-rows-changelog") == []


def test_batch_rows_are_written_under_their_events(broker: Broker, start: Start) -> None:
    """With the workaround, each row of a batch is written under its own event, to the changelog too."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "batch", len(RECORDS), mended=True)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == len(RECORDS)
    assert dict(broker.read(f"{worker.task.id}-rows-changelog")) == RECORDS


def test_cancelled_fetch_is_raised_to_closing_thread() -> None:
    """Aiokafka's fetcher raises the cancellation of its own fetches, which ends the thread that closes it (`ConsumerThread`).

    `test_worker_leaves_in_order_without_broker` shows that the workaround works.
    """

    async def close() -> None:
        fetcher = Fetcher.__new__(Fetcher)
        fetcher._fetch_task = asyncio.create_task(asyncio.sleep(0))
        fetcher._fetch_waiters, fetcher._pending_tasks = set(), {asyncio.create_task(asyncio.sleep(TIMEOUT))}
        await asyncio.sleep(0)
        await fetcher.close()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(close())


@pytest.mark.parametrize(("kind", "errors"), [(AIOKafkaConsumerThread, 1), (ConsumerThread, 0)], ids=["plain", "mended"])
def test_first_record_after_long_time_is_no_error(kind: type[Any], errors: int) -> None:
    """A partition that gets its first record long after the start is no error; the plain library takes it for stuck."""
    tp, now, said = TP("in", 0), time.monotonic(), list[Any]()
    state = SimpleNamespace(highwater=5, position=4, timestamp=now * 1000)
    assignment = SimpleNamespace(active=True, state_value=lambda _: state)
    fetcher = SimpleNamespace(_subscriptions=SimpleNamespace(subscription=SimpleNamespace(assignment=assignment)))
    thread: Any = object.__new__(kind)
    app = SimpleNamespace(monitor=SimpleNamespace(stream_inbound_time={}), topics=SimpleNamespace(acks_enabled_for=lambda _: True))
    thread.consumer = SimpleNamespace(app=app)
    thread._consumer = SimpleNamespace(_fetcher=fetcher)
    thread.time_started, thread.tp_stream_timeout_secs, thread.tp_fetch_request_timeout_secs = now - 3600, 300.0, 300.0
    thread._log_slow_processing_stream = lambda *given: said.append(given)
    thread.verify_event_path(now, tp)
    assert len(said) == errors


@pytest.mark.parametrize(("kind", "crashes"), [(AIOKafkaConsumerThread, 1), (ConsumerThread, 0)], ids=["plain", "mended"])
def test_refused_commit_is_repeated(kind: type[Any], crashes: int) -> None:
    """A commit that the ACLs refuse has failed, and is repeated; the plain library crashes its thread, and commits no more."""
    said = list[Any]()

    async def refused(_: Any) -> None:
        raise TopicAuthorizationFailedError({"in"})

    async def crash(error: Any) -> None:
        said.append(error)

    client: Any = SimpleNamespace(commit=refused)
    if kind is ConsumerThread:
        tolerate_refused_commits(client)
    thread: Any = object.__new__(kind)
    thread._consumer, thread.crash, thread.assignment = client, crash, lambda: {TP("in", 0)}
    thread.tp_last_committed_at, thread.log = {}, SimpleNamespace(exception=lambda *_: None)
    assert not asyncio.run(thread._commit({TP("in", 0): 1}))
    assert len(said) == crashes


async def by_faust(kafka: str, topic: str, keys: list[bytes]) -> dict[bytes, int]:
    """The partition of each key according to Faust's producer, which is aiokafka's."""
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        return {key: (await producer.send_and_wait(topic, b"", key)).partition for key in keys}


def by_confluent(kafka: str, topic: str, keys: list[bytes], **settings: str) -> dict[bytes | None, int | None]:
    """The partition of each key according to confluent-kafka."""
    found: dict[bytes | None, int | None] = {}
    producer = Producer({"bootstrap.servers": kafka, **settings})
    for key in keys:
        producer.produce(topic, b"", key, on_delivery=lambda _, message: found.update({message.key(): message.partition()}))
    assert producer.flush(TIMEOUT) == 0
    return found


def test_clients_use_same_partition_as_embedded_store(kafka: str, topics: Topics) -> None:
    """Each client puts a key into the partition of the embedded store; plain, confluent-kafka does so only by chance."""
    topic = topics.make("in", partitions=4)
    keys = [b"https://www.example.org/%d" % n for n in range(400)]
    ours = {key: partition_of(key, 4) for key in keys}
    assert asyncio.run(by_faust(kafka, topic, keys)) == ours
    assert by_confluent(kafka, topic, keys, **PARTITIONER) == ours
    plain = by_confluent(kafka, topic, keys)
    assert sum(plain[key] == ours[key] for key in keys) < len(keys) / 2
