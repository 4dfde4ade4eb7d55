"""Producers of confluent-kafka: their common settings, the size of what they buffer, and waiting for acknowledgements.

Strategy: records that are due together are buffered and sent together (`BUFFERED`, `SendSplitter`), then flushed. All producers of
a program have the same partitioner, since the partition of a key must be the same whoever writes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from streams.kafka.client.cluster import Cluster

PARTITIONER = {"partitioner": "murmur2_random"}
"""Setting of every confluent-kafka producer (law 7).

Its default, CRC32, sends most keys to other partitions than Kafka's Java client, Faust and the embedded store do, which would
separate the records of a key from its rows.
"""
BUFFERED = {"linger.ms": 200, "batch.size": 512 << 10}
"""Settings of a producer that is flushed explicitly and buffers its records until then.

A broker rejects a batch that is too large as a whole: topics must accept batches of this size; a larger record is sent alone.
"""
MAX_MESSAGE = 64 << 20
"""Bytes of a message that the client accepts; the topic's limit is enforced by the broker."""
ORDERED = {"enable.idempotence": True, "acks": "all", "message.max.bytes": MAX_MESSAGE}
"""Settings of a producer that keeps the order of its records in each partition, also when it retries."""
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.RECORD_LIST_TOO_LARGE})
"""Error codes for a record or a batch above a limit of the client or of the topic."""

CONNECT = 1.0
"""Seconds that a new producer waits at most for a connection to a broker."""
MAX_SEND = BUFFERED["batch.size"]
"""Bytes given to a buffering producer at most before it is flushed."""
OVERHEAD = 100
"""Bytes of a record beside its key and value."""
FLUSH = 0.25
"""Seconds that one call of `flush` waits at most."""


def ordered_producer(client: Mapping[str, Any]) -> Producer:
    """Return a producer that buffers and keeps the order of its records; `client`: settings of the connection, or more."""
    # Not compressed: Faust's client crashes at codecs whose library is not installed.
    return Producer({**ORDERED, **BUFFERED, **PARTITIONER, **client})


class _Useful(logging.Filter):
    """Drops warnings of librdkafka that a setting of `kafka.client` is one for another kind of client: all kinds get them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is to be logged."""
        return not ("CONFWARN" in record.getMessage() and "will be ignored by this" in record.getMessage())


_USEFUL = _Useful()


def worker_client(cluster: Cluster) -> dict[str, Any]:
    """Return the connection settings of a worker's client, which logs to the worker's log."""
    logger = logging.getLogger("harvest.kafka")
    logger.addFilter(_USEFUL)  # once, however often it is added
    return {**cluster.connection(), "logger": logger}


def connected(producer: Producer) -> Producer:
    """Return a new producer once it knows a broker. If no broker answers, the first send reports it.

    Cause: an idempotent producer needs an id from a broker. Without a connection it retries only every half second, even if records
    arrive meanwhile; a record produced right after creation would always wait for the second attempt (librdkafka,
    src/rdkafka_idempotence.c, `rd_kafka_idemp_pid_fsm`).
    """
    with suppress(KafkaException):
        # Without a topic name: a named topic would be created on brokers with automatic creation.
        producer.list_topics(timeout=CONNECT)
    return producer


class SendSplitter:
    """Splits the records for a buffering producer into sends of at most MAX_SEND bytes."""

    def __init__(self) -> None:
        self._bytes = 0

    def begins_send(self, key: bytes, value: bytes | None) -> bool:
        """Count the next record; True: it begins a new send, so the producer must be flushed first."""
        size = OVERHEAD + len(key) + len(value or b"")
        begins = self._bytes > 0 and self._bytes + size > MAX_SEND
        self._bytes = size if begins else self._bytes + size
        return begins


_waiting = ThreadPoolExecutor(4, "acknowledgements")


async def flush(producer: Producer) -> None:
    """Flush a buffering producer, and wait up to FLUSH seconds for acknowledgements.

    Delivery callbacks run in another thread; nothing may be produced meanwhile.

    Cause: an idempotent producer starts no new request for a partition that has five in flight. While more records are due, its
    thread polls without pause until the broker answers. Where broker and workers share cores, this delays the broker further with
    each polling worker, until it hardly answers at all. So records that are due together must be sent together
    (librdkafka, src/rdkafka_broker.c, `rd_kafka_toppar_producer_serve`).
    """
    await asyncio.get_running_loop().run_in_executor(_waiting, producer.flush, FLUSH)
