"""What must be there before a worker can work: brokers that answer, and topics that were made."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streams.topology import REJECTED, Edge, Stage, Topology

TIMEOUT = 10.0
"""Seconds that a broker has to answer."""


PAUSE = 0.2
Answer = TypeVar("Answer")


class BrokerError(Exception):
    """No broker answers, or the topics are not as they must be: told in one line."""


def names(stage: Stage[Any, Any] | Edge[Any, Any]) -> list[str]:
    """The topics of a stage, inputs first."""
    ticks = stage.ticks if isinstance(stage, Stage) else None
    found = [*stage.inputs, *((ticks,) if ticks else ()), *stage.outputs, REJECTED]
    return list(dict.fromkeys(topic.name for topic in found))


def patient(ask: Callable[[], Answer]) -> Answer:
    """What a broker answers, in the end: a coordinator that moves, or loads, does not know for a while. Raises KafkaException."""
    until = time.monotonic() + 3 * TIMEOUT
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)


def check(declared: Topology, stages: Iterable[str], brokers: Sequence[str], prefix: str) -> None:
    """Raises BrokerError unless all that these stages need is there."""
    for stage in stages:
        partitions(brokers, prefix, declared.stage(stage))


def partitions(brokers: Sequence[str], prefix: str, stage: Stage[Any, Any] | Edge[Any, Any]) -> int:
    """How many partitions the topics of a stage have, each as many. Raises BrokerError."""
    asked = ",".join(brokers)
    if not asked:
        raise BrokerError("kafka.brokers: no broker is named (HARVEST_KAFKA_BROKERS=host:port)")
    client = AdminClient({"bootstrap.servers": asked, "log_level": 0})
    try:
        there = client.list_topics(timeout=TIMEOUT).topics
    except KafkaException:
        raise BrokerError(f"kafka.brokers: none of {asked} answers") from None
    wanted = [prefix + name for name in names(stage)]
    if missing := [name for name in wanted if name not in there]:
        raise BrokerError(f"topics are missing: {', '.join(missing)} (`harvest topics apply` makes them)")
    counts = {name: len(there[name].partitions) for name in wanted}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise BrokerError(f"the topics of {stage.name} have different numbers of partitions: {told}")
    return counts[wanted[0]]
