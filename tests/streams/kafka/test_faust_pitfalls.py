"""What Faust and the Kafka clients do wrong for us on a real broker, and that each mend of streams/kafka is needed and mends.

Each pitfall comes as a pair: the plain library fails, with the mend it does not. Where the first half no longer fails, the mend has
had its day.
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
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.consumer.fetcher import Fetcher  # type: ignore[import-untyped]
from confluent_kafka import Producer

from streams.kafka.client.producer import PARTITIONER, connected, flush, ordered_producer, worker_client
from streams.kafka.decide.client_workarounds import CLEAN, LATELY, tables
from streams.store.murmur2 import partition as partition_of
from tests.bench.cpu import stat
from tests.bench.memory import family
from tests.servers import kafka
from tests.servers.fixtures import TIMEOUT, Topics
from tests.streams.kafka.conftest import Broker, Start
from tests.streams.kafka.own import Own

RECORDS = {b"k%d" % n: b"v%d" % n for n in range(20)}
ROUNDS = 4
"""Commits after the last record was done, in which all that is done must have been committed."""
UNSENT = 30.0
"""Seconds that a producer waits for more, so that nothing is sent before the worker dies."""


@pytest.fixture
def killed(broker: Broker, start: Start) -> str:
    """A topic whose records a worker has put into its table, and was killed before the changelog had any of them."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    assert start(topic, "die", len(RECORDS), linger=UNSENT, commit=UNSENT).died()
    assert broker.read(f"{broker.topics.prefix}-app-rows-changelog") == []
    assert broker.committed(f"{broker.topics.prefix}-app", topic) == 0
    return topic


def again(broker: Broker, start: Start, topic: str, **more: bool) -> dict[bytes, bytes | None]:
    """The changelog once a second worker has had the same records, and has committed them."""
    worker = start(topic, "put", len(RECORDS), **more)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == len(RECORDS)
    return dict(broker.read(f"{worker.task.id}-rows-changelog"))


def test_rows_of_a_killed_worker_stay_out_of_the_changelog(killed: str, broker: Broker, start: Start) -> None:
    """Plain: rows that only RocksDB has are found by the redelivery, never sent, and committed: lost with the next failover."""
    assert again(broker, start, killed) == {}


def test_rows_that_are_put_again_reach_the_changelog(killed: str, broker: Broker, start: Start) -> None:
    """Mended: a redelivery that puts again sends what the killed worker did not; changelog and committed input agree row by row."""
    assert again(broker, start, killed, mended=True) == RECORDS


def test_tables_are_empty_after_a_kill(broker: Broker, start: Start) -> None:
    """Mended: tables that were not left in order begin empty, so that a stage that puts only what it does not know loses none."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    assert start(topic, "die", len(RECORDS), linger=UNSENT, commit=UNSENT, fresh=True).died()
    assert again(broker, start, topic, fresh=True) == RECORDS


def test_tables_are_kept_after_a_stop_in_order(broker: Broker, start: Start, tmp_path: Path) -> None:
    """Mended: a worker that was stopped leaves its tables for the next one, and what Faust has flushed with them."""
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
def test_tables_are_kept_for_a_while(tmp_path: Path, away: float, *, kept: bool) -> None:
    """A store that was away for long may miss removals, and one from the future is not believed: both begin empty."""
    with tables(tmp_path / "store", time.time()):
        (tmp_path / "store" / "row").touch()
    with tables(tmp_path / "store", (tmp_path / "store" / CLEAN).stat().st_mtime + away):
        assert (tmp_path / "store" / "row").exists() == kept


def test_tables_are_empty_after_an_error(tmp_path: Path) -> None:
    """A worker that ends with an exception leaves nothing that the next one believes."""
    with suppress(ZeroDivisionError), tables(tmp_path / "store", time.time()):
        (tmp_path / "store" / "row").touch()
        raise ZeroDivisionError
    with tables(tmp_path / "store", time.time()):
        assert not (tmp_path / "store" / "row").exists()


def transactions(broker: Broker, topic: str, count: int) -> int:
    """Append records in a transaction each, whose markers are gaps for a reader; gives the offset behind the last record."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions(TIMEOUT)
    for n in range(count):
        producer.begin_transaction()
        producer.produce(topic, b"", b"k%d" % n)
        producer.commit_transaction(TIMEOUT)
    return 2 * count - 1


@pytest.mark.parametrize(("mended", "behind"), [(False, True), (True, False)], ids=["plain", "mended"])
def test_commits_keep_up_with_gaps(broker: Broker, start: Start, *, mended: bool, behind: bool) -> None:
    """All that is done is committed at the next round, whatever gaps lie between; plain, each gap costs a round of its own."""
    topic = broker.topics.make("in")
    end = transactions(broker, topic, 60)
    worker = start(topic, "pass", 60, mended=mended)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    committed = broker.committed(worker.task.id, topic)
    assert (committed < end / 2) == behind
    assert (committed == end) != behind


@pytest.mark.parametrize("mended", [False, True], ids=["plain", "mended"])
def test_a_commit_that_failed_is_made_again(broker: Broker, start: Start, *, mended: bool) -> None:
    """What the broker did not take is committed at a later round; plain, it counts as committed until more comes."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "pass", len(RECORDS), mended=mended, refused=2, commit=1.0)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == (len(RECORDS) if mended else 0)


@pytest.mark.parametrize("mended", [False, True], ids=["plain", "mended"])
def test_what_is_asked_for_again_comes(broker: Broker, start: Start, *, mended: bool) -> None:
    """A seek while records are being delivered has its effect; plain, what lies below the one on its way is dropped in silence."""
    topic = broker.topics.make("in")
    broker.fill(topic, {b"k%d" % n: b"v" for n in range(400)})
    worker = start(topic, "back", 400, mended=mended)
    assert worker.until("last", 2) == f"last {mended}\n"


@pytest.mark.parametrize("mended", [False, True], ids=["plain", "mended"])
def test_an_idle_broker_answers(broker: Broker, start: Start, *, mended: bool) -> None:
    """What is asked while nothing comes waits for no fetch that the broker keeps; plain, for a second and a half each time."""
    topic = broker.topics.make("in")
    broker.fill(topic, {b"k": b"v"})
    assert start(topic, "ask", 1, mended=mended).until("asked") == f"asked {mended}\n"


def test_a_new_producer_finds_a_broker(broker: Broker) -> None:
    """What it is given at once is there before what a plain one was given earlier, which looked for a broker in vain at first.

    A machine that stands still in between may turn it round: one time of several is enough. Were plain ones quick it would be none.
    """
    assert any(overtaken(broker, f"in-{number}") for number in range(5))


def overtaken(broker: Broker, name: str) -> bool:
    """Whether a mended producer's first record is taken before that of a plain one, which got it earlier."""
    topic = broker.topics.make(name)
    settings = {"bootstrap.servers": broker.address, "enable.idempotence": True}
    plain = Producer(settings)
    plain.produce(topic, b"plain")
    mended = connected(Producer(settings))
    mended.produce(topic, b"mended")
    assert mended.flush(TIMEOUT) == plain.flush(TIMEOUT) == 0
    return [value for _, value in broker.read(topic)] == [b"mended", b"plain"]


def test_a_producer_that_is_held_does_not_spin(tmp_path: Path) -> None:
    """While a broker does not answer, a plain one asks for ever whether it may send the records behind those under way."""
    with closing(Own(partial(kafka.from_jars, tmp_path))) as own:
        topics = Topics(own.address)
        topic = topics.make("in")
        (process,) = (pid for pid in family(os.getpid()) if f"{tmp_path}/server.properties" in stat(pid).command)
        plain, mended = rounds(own.address, topic, process, held=False), rounds(own.address, topic, process, held=True)
        topics.close()
    assert plain > 50 * mended


def rounds(kafka: str, topic: str, process: int, *, held: bool) -> int:
    """How often the thread of a producer has asked what there is to do, while the process of the broker stood for a second."""
    told: list[int] = []

    def stats(said: str) -> None:
        told.append(max(broker["wakeups"] for broker in json.loads(said)["brokers"].values()))

    more: dict[str, Any] = {"stats_cb": stats, "statistics.interval.ms": 100} | ({} if held else {"linger.ms": 5})
    producer = connected(ordered_producer({**worker_client(kafka), **more}))
    producer.produce(topic, b"first")
    assert producer.flush(TIMEOUT) == 0
    while not told:
        producer.poll(0.1)
    os.kill(process, signal.SIGSTOP)
    try:
        for number in range(200):
            producer.produce(topic, b"%d" % number)
            # The first of them are under way before the last are there: Python takes its time.
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
def test_tables_are_filled(broker: Broker, start: Start, tmp_path: Path, *, mended: bool, handed: int) -> None:
    """A table that is not there any more has its rows when the first record is decided; plain, each of them went through Faust."""
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


def test_a_batch_has_no_current_event(broker: Broker, start: Start) -> None:
    """Plain: a table write for an event of a batch raises TypeError, and the whole batch is acknowledged: lost."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "batch", len(RECORDS))
    assert "outside of stream iteration" in worker.until("error")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == len(RECORDS)
    assert broker.read(f"{worker.task.id}-rows-changelog") == []


def test_a_batch_is_written_event_by_event(broker: Broker, start: Start) -> None:
    """Mended: under the event that it belongs to, each row of a batch is written, to the changelog too."""
    topic = broker.topics.make("in")
    broker.fill(topic, RECORDS)
    worker = start(topic, "batch", len(RECORDS), mended=True)
    worker.until("seen")
    worker.until("commit", ROUNDS)
    assert broker.committed(worker.task.id, topic) == len(RECORDS)
    assert dict(broker.read(f"{worker.task.id}-rows-changelog")) == RECORDS


def test_a_cancelled_fetch_ends_who_closes_it() -> None:
    """Aiokafka's fetcher raises the cancellation of its own fetches: the thread that closes it is gone by that (`ConsumerThread`).

    That the mend mends is shown by `test_a_broker_that_is_gone`.
    """

    async def close() -> None:
        fetcher = Fetcher.__new__(Fetcher)
        fetcher._fetch_task = asyncio.create_task(asyncio.sleep(0))
        fetcher._fetch_waiters, fetcher._pending_tasks = set(), {asyncio.create_task(asyncio.sleep(TIMEOUT))}
        await asyncio.sleep(0)
        await fetcher.close()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(close())


async def by_faust(kafka: str, topic: str, keys: list[bytes]) -> dict[bytes, int]:
    """The partition of each key as Faust's producer has it, which is aiokafka's."""
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        return {key: (await producer.send_and_wait(topic, b"", key)).partition for key in keys}


def by_confluent(kafka: str, topic: str, keys: list[bytes], **settings: str) -> dict[bytes | None, int | None]:
    """The partition of each key as confluent-kafka has it."""
    found: dict[bytes | None, int | None] = {}
    producer = Producer({"bootstrap.servers": kafka, **settings})
    for key in keys:
        producer.produce(topic, b"", key, on_delivery=lambda _, message: found.update({message.key(): message.partition()}))
    assert producer.flush(TIMEOUT) == 0
    return found


def test_partitioners_agree(kafka: str, topics: Topics) -> None:
    """Each client puts a key where the embedded store has it; plain, confluent-kafka does so by chance only."""
    topic = topics.make("in", partitions=4)
    keys = [b"https://www.example.org/%d" % n for n in range(400)]
    ours = {key: partition_of(key, 4) for key in keys}
    assert asyncio.run(by_faust(kafka, topic, keys)) == ours
    assert by_confluent(kafka, topic, keys, **PARTITIONER) == ours
    plain = by_confluent(kafka, topic, keys)
    assert sum(plain[key] == ours[key] for key in keys) < len(keys) / 2
