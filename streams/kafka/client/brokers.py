"""Checks before a worker starts: the brokers answer, and the topics of its stages exist."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from streams.kafka.client.cluster import Cluster, changelog_of
from streams.kafka.client.reach import Contact
from streams.topology.flow import Edge, Stage, Topology, outputs_of

TIMEOUT = 10.0
"""Seconds that a broker has to answer."""


PAUSE = 0.2
Answer = TypeVar("Answer")

_REACH = (
    *(KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE),  # noqa: SLF001 - codes of the client itself
    *(KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE),  # noqa: SLF001
    *(KafkaError.NETWORK_EXCEPTION, KafkaError.REQUEST_TIMED_OUT, KafkaError.THROTTLING_QUOTA_EXCEEDED),
)
_LEADERS = (
    *(KafkaError.BROKER_NOT_AVAILABLE, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION),
    *(KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.KAFKA_STORAGE_ERROR, KafkaError.OFFSET_NOT_AVAILABLE),
    *(KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH),
    *(KafkaError.FETCH_SESSION_ID_NOT_FOUND, KafkaError.INVALID_FETCH_SESSION_EPOCH),
)
_GROUPS = (
    *(KafkaError._WAIT_COORD, KafkaError._MAX_POLL_EXCEEDED),  # noqa: SLF001
    *(KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR),
    *(KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID),
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
PASSING = frozenset({*_REACH, *_LEADERS, *_GROUPS})
"""Errors that a consumer of confluent-kafka recovers from by itself: it retries, asks another broker, or rejoins its group.

`KafkaError.retriable` is false for all of them when they arrive among the messages.
"""


class BrokerError(Exception):
    """No broker answers, or topics are missing or have the wrong partition count; the text is one line."""


def written_topics(stage: Stage[Any, Any] | Edge[Any, Any]) -> list[str]:
    """Return the names of the topics that a stage writes."""
    ticks = stage.ticks if isinstance(stage, Stage) else None
    return [topic.name for topic in (*((ticks,) if ticks else ()), *outputs_of(stage))]


def stage_topics(stage: Stage[Any, Any] | Edge[Any, Any]) -> list[str]:
    """Return the topics of a stage, inputs first; its changelog last."""
    changelog = [changelog_of(stage.name)] if isinstance(stage, Stage) else []
    return list(dict.fromkeys([*(topic.name for topic in stage.inputs), *written_topics(stage), *changelog]))


def retry_coordinator(ask: Callable[[], Answer], stop: Callable[[], bool] = lambda: False) -> Answer:
    """Call `ask`, with retries while a coordinator moves or loads. Raises KafkaException after 30 s.

    Once `stop` returns true, an error is raised at once.
    """
    until = time.monotonic() + 3 * TIMEOUT
    while True:
        try:
            return ask()
        except KafkaException:
            if stop() or time.monotonic() > until:
                raise
            time.sleep(PAUSE)


def is_transient(error: KafkaError) -> bool:
    """Whether a consumer recovers by itself from an error that arrived among its messages."""
    return not error.fatal() and (error.retriable() or error.code() in PASSING)


def check(declared: Topology, stages: Iterable[str], cluster: Cluster) -> dict[str, int]:
    """Return the partition count of each of these stages. Raises as `partitions` does, unless all their topics exist."""
    return {name: partitions(cluster, declared.stage(name)) for name in stages}


def partitions(cluster: Cluster, stage: Stage[Any, Any] | Edge[Any, Any]) -> int:
    """Return the partition count that all topics of a stage share. Raises BrokerError, ClusterError, ClientSettingsError."""
    try:
        there = Contact(cluster).metadata(TIMEOUT).topics
    except KafkaException:
        raise BrokerError(f"kafka.brokers: none of {cluster.brokers} answers") from None
    wanted = [cluster.topic(name) for name in stage_topics(stage)]
    if missing := [name for name in wanted if name not in there]:
        hidden = f", unless ACLs hide them from {cluster.security.name}" if cluster.security.name else ""
        raise BrokerError(f"topics are missing: {', '.join(missing)} (`harvest topics apply` makes them{hidden})")
    counts = {name: len(there[name].partitions) for name in wanted}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise BrokerError(f"the topics of {stage.name} have different numbers of partitions: {told}")
    return counts[wanted[0]]
