"""Checks with a separate client whether an offset of a partition holds a record.

An offset may have no record: compaction removed it, it holds a transaction marker, or retention passed it. Faust's client skips
such offsets silently, and does not report a skipped record either.

Laws:
- Records of aborted and of open transactions do not count, as for Faust's consumer.
- Each check creates a new client: checks are rare, and no client lives through an absence of its broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streams.kafka.client.cluster import PROBE

if TYPE_CHECKING:
    from faust.types import TP

REACH = 10.0
"""Seconds in which a broker must answer."""


class ProbeResult(NamedTuple):
    """The first record at an offset or after it; without one (`there` is false), the end of the partition."""

    offset: int
    there: bool


Witness = Callable[["TP", int], ProbeResult | None]
"""Returns the first record at or after an offset of a partition; None if no broker answers."""


def make_probe(client: Mapping[str, Any]) -> Witness:
    """Return a blocking probe; `client`: settings of a confluent-kafka client."""
    reads = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    settings = {"group.id": PROBE, **client, **reads, "enable.auto.commit": False}

    def found(tp: TP, offset: int) -> ProbeResult | None:
        with closing(Consumer(settings)) as consumer:
            try:
                consumer.assign([TopicPartition(tp.topic, tp.partition, offset)])
                return _first(consumer)
            except KafkaException:
                return None

    return found


def _first(consumer: Consumer) -> ProbeResult | None:
    until = time.monotonic() + REACH
    while (left := until - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None:
            continue
        error = message.error()
        if error is None:
            return ProbeResult(message.offset() or 0, there=True)
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            return ProbeResult(message.offset() or 0, there=False)
    return None
