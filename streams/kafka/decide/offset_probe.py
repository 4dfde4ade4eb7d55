"""What stands in a partition, as a client sees it that is not Faust's: whether a record that does not come is there at all.

An offset may have no record: compaction took it, a marker of a transaction stands there, retention has gone over it. Faust's client
passes over such offsets and says nothing; whether it left a record out, it does not say either. Who waits for an offset asks here.

Laws:
- What was taken back with its transaction is no record, and what may yet be is none yet: so does Faust's consumer see it.
- A client is made for each question: it asks seldom, and none is so old that the broker has been away in its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

if TYPE_CHECKING:
    from faust.types import TP

REACH = 10.0
"""Seconds in which a broker must answer."""


class Found(NamedTuple):
    """The first record at an offset or behind it; where there is none, the end of the partition."""

    offset: int
    there: bool


Witness = Callable[["TP", int], Found | None]
"""Asked for a partition and an offset. None: nobody answers."""


def witness(client: Mapping[str, Any]) -> Witness:
    """One that asks brokers; `client` are settings of a client of confluent-kafka. It blocks."""
    reads = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    settings = {**client, **reads, "group.id": "harvest-witness", "enable.auto.commit": False}

    def found(tp: TP, offset: int) -> Found | None:
        with closing(Consumer(settings)) as consumer:
            try:
                consumer.assign([TopicPartition(tp.topic, tp.partition, offset)])
                return _first(consumer)
            except KafkaException:
                return None

    return found


def _first(consumer: Consumer) -> Found | None:
    until = time.monotonic() + REACH
    while (left := until - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None:
            continue
        error = message.error()
        if error is None:
            return Found(message.offset() or 0, there=True)
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            return Found(message.offset() or 0, there=False)
    return None
