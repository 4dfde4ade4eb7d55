"""The programs that `stage` measures, each in its own process: python -m tests.bench.contenders NAME JSON (the fields of `Task`).

All of them read the same records and write each one again, in batches, and commit an offset every second, once the broker has
acknowledged everything below it: at-least-once, acks=all. Harvest's stage also decodes and encodes the record, as all stages do.
`rows` puts a row for each record first. Harvest's row is in the changelog before the output is sent; that of bare Faust may still
be in flight, since Faust's tables do not report acknowledgment.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from schemas.ports import Origin, Rows
from schemas.records import Holder
from streams.topology.flow import Stage, Topic

COMMIT = 1.0
"""Seconds between two commits."""
BATCH = 2_000
"""Batch size, in records, of the clients without an agent."""
LINGER = 5
"""Milliseconds that their producers wait for more records."""
WITHIN = 0.06
"""Seconds that the batch of an agent waits for more records."""


class Task(msgspec.Struct, frozen=True):
    """The input of a contender. Topic and group names begin with `prefix`."""

    broker: str
    prefix: str
    folder: str
    partitions: int
    rows: bool = False

    @property
    def source(self) -> str:
        """The input topic."""
        return f"{self.prefix}in"

    @property
    def target(self) -> str:
        """The output topic."""
        return f"{self.prefix}out"

    @property
    def group(self) -> str:
        """The consumer group."""
        return f"{self.prefix}stage"


def same(rows: Rows, record: Holder, origin: Origin) -> Iterator[Holder]:
    """A stage that yields its input."""
    yield record


def kept(rows: Rows, record: Holder, origin: Origin) -> Iterator[Holder]:
    """A stage that puts a row and yields its input."""
    rows.put(b"h|" + record.oid.encode(), record.content.encode())
    yield record


def stage(*, rows: bool) -> Stage[Holder, Holder]:
    """The stage that is measured."""
    topics = [Topic(name, (Holder,), lambda r: r.content, "delete", "what is measured") for name in ("in", "out")]
    return Stage("stage", (topics[0],), (topics[1],), kept if rows else same, "what came")


def harvest(task: Task) -> None:
    """Run Harvest's agent."""
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.decide.agents import Decider

    app = _application(task)
    Decider(app, stage(rows=task.rows), Cluster(task.broker, task.prefix))
    _serve(app)


def faust(task: Task) -> None:
    """Run bare Faust, with the same settings."""
    from faust.transport.drivers import aiokafka

    from streams.kafka.decide.agents import BATCH, RAW
    from streams.kafka.decide.apps import STORE
    from streams.kafka.decide.client_workarounds import current

    app = _application(task)
    app.transport = aiokafka.Transport(app.conf.broker, app)
    target = app.topic(task.target, **RAW)
    more: Any = {"key_type": bytes, "value_type": bytes, "options": dict(STORE)}
    table = app.Table("rows", partitions=task.partitions, **more) if task.rows else None

    async def agent(stream: Any) -> None:
        async for events in stream.take_events(BATCH, within=WITHIN):
            if table is not None:
                for event in events:
                    # Without this a batch cannot write at all.
                    with current(event):
                        table[event.key] = event.value
            sent = [await target.send(key=event.key, value=event.value) for event in events]
            await asyncio.gather(*sent)

    app.agent(app.topic(task.source, **RAW))(agent)
    _serve(app)


def _application(task: Task) -> Any:
    from streams.kafka.client.cluster import Cluster
    from streams.kafka.decide.apps import application

    return application(task.group, Cluster(task.broker), task.folder, task.partitions, broker_commit_interval=COMMIT)


def _serve(app: Any) -> None:
    from streams.kafka.decide.apps import runner

    runner(app).execute_from_commandline()


def aiokafka(task: Task) -> None:
    """Run aiokafka, the client below Faust, alone."""
    import uvloop
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]

    async def run() -> None:
        client = {"bootstrap_servers": task.broker}
        consumer = AIOKafkaConsumer(
            task.source, **client, group_id=task.group, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        producer = AIOKafkaProducer(**client, acks="all", linger_ms=LINGER, max_batch_size=256 << 10)
        await consumer.start()
        await producer.start()
        due = time.monotonic() + COMMIT
        while True:
            found = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            sent = [await producer.send(task.target, r.value, key=r.key) for records in found.values() for r in records]
            await asyncio.gather(*sent)
            if time.monotonic() >= due:
                await consumer.commit()
                due = time.monotonic() + COMMIT

    uvloop.run(run())


def confluent(task: Task) -> None:
    """Run confluent-kafka, the client based on the C library, alone."""
    from confluent_kafka import Consumer, Producer

    from streams.kafka.client.producer import PARTITIONER

    client: dict[str, Any] = {"bootstrap.servers": task.broker}
    consumer = Consumer({**client, "group.id": task.group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    producer = Producer({**client, "acks": "all", "linger.ms": LINGER, "batch.size": 256 << 10, **PARTITIONER})
    consumer.subscribe([task.source])
    due = time.monotonic() + COMMIT
    moved = False
    while True:
        for message in consumer.consume(BATCH, 0.2):
            if message.error() is None:
                producer.produce(task.target, message.value(), message.key())
                moved = True
        producer.flush()
        if moved and time.monotonic() >= due:
            consumer.commit(asynchronous=True)
            due, moved = time.monotonic() + COMMIT, False


WHO: Mapping[str, Callable[[Task], None]] = {"harvest": harvest, "faust": faust, "aiokafka": aiokafka, "confluent": confluent}

if __name__ == "__main__":
    WHO[sys.argv[1]](msgspec.json.decode(sys.argv[2], type=Task))
