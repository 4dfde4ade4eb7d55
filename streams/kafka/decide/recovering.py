"""Recovery of tables from their changelogs by confluent-kafka, in batches, before Faust's own recovery.

Cause: Faust passes each row of a changelog from queue to queue, which takes 0.5 ms; a worker with a million rows would be
unavailable for ten minutes. Rows are written to the store as Faust itself would write them, with the offset in the same batch;
Faust reads whatever is left out here, for whatever reason.

Laws:
- A batch of rows and the offset after it are one write: a worker that is killed during recovery resumes there, or from the start.
- Nothing is decided meanwhile (`partition_ownership.py`), and recovery ends with the group generation in which it began.
- Recovery runs in its own thread and does not block the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from rocksdict import WriteBatch

from streams.kafka.client.cluster import REACH, RECOVERY
from streams.kafka.decide.rows import of_store

if TYPE_CHECKING:
    from faust.types import TP

ROWS = 500
"""Rows per poll; some are as large as a record may be."""
AHEAD = 16_384
"""kB of rows that the client reads ahead."""
PartitionId = tuple[str, int]
"""A changelog and one of its partitions."""
PATIENCE = 30.0
"""Seconds without a row before the rest is left to Faust."""


def _end(why: str) -> None:
    """Log the reason, and end the process. Faust creates `Filled` without a `WorkerTelemetry`, so the line goes to Faust's log."""
    logging.getLogger("harvest").error(why)
    os._exit(1)


class Filling:
    """Fills the stores of some partitions from their changelogs.

    `stores` are RocksDB's, by partition of the changelog; `offsets` has the offset of the last row that each store holds, None for
    none, and is updated; `own` is the key of that offset in a store.
    """

    def __init__(self, client: Mapping[str, Any], stores: Mapping[TP, Any], offsets: MutableMapping[TP, Any], own: bytes) -> None:
        self._client = dict(client)
        self._stores = {(tp.topic, tp.partition): (tp, store) for tp, store in stores.items()}
        self._offsets = offsets
        self._own = own
        self._lacking: set[PartitionId] = set()
        self.stopped = threading.Event()
        """Makes `run` return early once set."""

    def run(self) -> None:
        """Fill the stores up to the present ends of their changelogs. Also returns early if no broker answers."""
        reads = {"isolation.level": "read_committed", "enable.partition.eof": True, "queued.max.messages.kbytes": AHEAD}
        consumer = Consumer({"group.id": RECOVERY, **self._client, "enable.auto.commit": False, **reads})
        with closing(consumer):
            try:
                consumer.assign(self._begun(consumer))
                self._read(consumer)
            except KafkaException:
                return

    def _begun(self, consumer: Consumer) -> list[TopicPartition]:
        """Return the start offset of each changelog that is ahead of its store."""
        found = []
        for (topic, partition), (tp, _) in self._stores.items():
            held = self._offsets.get(tp)
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=REACH)
            start = first if held is None else max(first, held + 1)
            if start < end:
                self._lacking.add((topic, partition))
                found.append(TopicPartition(topic, partition, start))
        return found

    def _read(self, consumer: Consumer) -> None:
        waited = 0.0
        while self._lacking and waited < PATIENCE and not self.stopped.is_set():
            messages = consumer.consume(ROWS, 1.0)
            waited = 0.0 if messages else waited + 1.0
            by_place: dict[PartitionId, list[Message]] = {}
            for message in messages:
                place = message.topic() or "", message.partition() or 0
                error = message.error()
                if error is None:
                    by_place.setdefault(place, []).append(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    # The end also covers offsets after the last row that were compacted away.
                    self._lacking.discard(place)
                else:
                    raise KafkaException(error)
            for place, rows in by_place.items():
                self._write(place, rows)

    def _write(self, place: PartitionId, rows: list[Message]) -> None:
        tp, store = self._stores[place]
        batch = WriteBatch(raw_mode=True)
        for row in rows:
            key, value = row.key() or b"", row.value()
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        last = rows[-1].offset() or 0
        batch.put(self._own, b"%d" % last)
        store.write(batch)
        self._offsets[tp] = last


class Filled(Recovery):
    """Faust's recovery, after most of the rows were read in batches."""

    def __init__(self, client: Mapping[str, Any], *given: Any, **named: Any) -> None:
        """`client`: settings of a confluent-kafka client; the other arguments are Faust's."""
        super().__init__(*given, **named)
        self._client = client
        self._end: Callable[[str], None] = _end
        self._one = asyncio.Lock()

    async def _build_highwaters(self, consumer: Any, tps: Any, destination: Any, title: str) -> None:
        """Fill the tables first: this is Faust's first request of a recovery."""
        if title == "active":
            try:
                await self._fill(tps)
            except Exception as error:
                if not of_store(error):
                    raise
                # The disk is full or fails: Faust would print a hundred lines.
                self._end(f"the tables cannot be filled: {error}")
        await super()._build_highwaters(consumer, tps, destination, title)

    async def _wait(self, coro: Any, timeout: Any = None) -> None:  # noqa: ASYNC109 - as Faust's
        """Wait without a time limit: duration depends on the number of rows, and the clients detect silent brokers themselves."""
        await super()._wait(coro)

    async def _fill(self, tps: set[TP]) -> None:
        tables: dict[TP, Any] = {tp: self.tp_to_table[tp] for tp in tps}
        # One at a time: a recovery that another one interrupted first ends its thread.
        async with self._one:
            for table in set(tables.values()):
                own = [tp for tp, owner in tables.items() if owner is table and tp in tps]
                stores = {tp: table.data._db_for_partition(tp.partition) for tp in own}  # noqa: SLF001 - one store, in order
                filling = Filling(self._client, stores, self.active_offsets, table.data.offset_key)
                running = asyncio.ensure_future(asyncio.to_thread(filling.run))
                try:
                    await asyncio.shield(running)
                finally:
                    filling.stopped.set()
                    await asyncio.wait([running])


def manager(client: Mapping[str, Any]) -> type[TableManager]:
    """Return the table manager class of an application (`faust.App(TableManager=...)`) that uses this recovery."""

    class Tables(TableManager):
        @property
        def recovery(self) -> Recovery:
            if self._recovery is None:
                self._recovery = Filled(client, self.app, self, beacon=self.beacon, loop=self.loop)
            return self._recovery

    return Tables
