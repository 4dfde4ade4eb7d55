"""Topics of a stage that are others than its offsets and rows were made from: finds them, and makes the stage start over on them.

Strategy: ids and first offsets are compared with the stored ones (`topic_identity.py`); committed offsets with the ends of the
topics; an empty changelog with what the stage has done. `reset_stage` sets the committed offsets of the topics concerned back to
their first records, and raises the base of their offsets in rows, so that a row of an old topic never looks newer than a new
record.

Laws:
- No worker of the stage runs meanwhile: Kafka refuses commits for a group that has members.
- Ids are stored last: a reset that was interrupted is found again, and repeating it is harmless.
- A changelog that lost rows makes the stage read all of its inputs again, as far as they are retained; its remaining rows are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streams.clock import now_ms
from streams.kafka.client.admin import EARLIEST, LATEST, Admin
from streams.kafka.client.brokers import TIMEOUT
from streams.kafka.client.cluster import Cluster, ClusterError, changelog_of, cluster_errors
from streams.kafka.client.producer import ordered_producer
from streams.kafka.client.topic_identity import (
    TopicChange,
    TopicIdentities,
    base_rows,
    change_line,
    origin_base,
    read_topics,
    remedy,
)
from streams.topology.flow import Edge, Stage, Topology

AnyStage = Stage[Any, Any] | Edge[Any, Any]
MEMBERS = {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
"""Answers to a commit without a member for a group that has members."""

EXPIRY = 15.0
"""Seconds that a worker which ended without leaving its group may still count as a member: longer than its session by default."""
PAUSE = 0.5


def check_topics(cluster: Cluster, drawn: Topology, stages: Iterable[str]) -> None:
    """Check that the topics of the stages are those of their offsets and rows, and store their ids. Raises ClusterError."""
    for name in stages:
        stage, identities = drawn.stage(name), TopicIdentities(cluster, drawn.stage(name))
        with cluster_errors(cluster):
            known, now = identities.stored(), identities.present()
        for change in identities.changes(known, now):
            raise ClusterError(change_line(cluster, stage, change))
        for change in _lost_positions(Admin(cluster), cluster, drawn, stage):
            raise ClusterError(f"{cluster.prefix}{change.topic}{change.what} ({remedy(stage)})")
        with cluster_errors(cluster):
            identities.store(now, known)


def reset_stage(cluster: Cluster, drawn: Topology, name: str) -> list[str]:
    """Make a stage start over on its changed topics; return a line for each of them. Raises ClusterError, KeyError."""
    stage, identities = drawn.stage(name), TopicIdentities(cluster, drawn.stage(name))
    with cluster_errors(cluster):
        known, now = identities.stored(), identities.present()
    changes = [*identities.changes(known, now), *_lost_positions(Admin(cluster), cluster, drawn, stage)]
    topics = list(dict.fromkeys(change.topic for change in changes))
    changelog = changelog_of(name)
    inputs = [topic for topic in read_topics(stage) if topic != changelog]
    again = inputs if changelog in topics else [topic for topic in inputs if topic in topics]
    if again:
        places = Admin(cluster).partitions()
        with cluster_errors(cluster):
            _set_back(cluster, stage, [(cluster.topic(topic), at) for topic in again for at in range(places[cluster.topic(topic)])])
            if isinstance(stage, Stage):
                _raise_base(cluster, stage, again, places[cluster.changelog(name)])
            identities.store(now, known)
    return [
        f"{cluster.topic(topic)}: {'its rows are made again' if topic == changelog else 'is read from its start'}"
        for topic in topics
    ]


def _lost_positions(admin: Admin, cluster: Cluster, drawn: Topology, stage: AnyStage) -> Iterator[TopicChange]:
    """Yield topics that end below what the stage has committed, and a changelog that is empty although the stage has worked."""
    for lag in admin.lags(drawn, [stage.name]):
        if lag.lag < 0:
            where = f", partition {lag.partition}: {lag.group} has read to {lag.committed:,}"
            yield TopicChange(lag.topic, f"{where}, and it ends at {lag.end:,}: it was made anew, or cut")
    if isinstance(stage, Stage) and _is_emptied(admin, cluster, stage):
        yield TopicChange(changelog_of(stage.name), f": {stage.name} has worked, and it is empty: it was made anew, or cut")


def _is_emptied(admin: Admin, cluster: Cluster, stage: Stage[Any, Any]) -> bool:
    """Whether a stage has read inputs and written outputs, but its changelog is empty. Rejecting a record writes no row."""
    counts = admin.partitions()

    def places(names: Iterable[str]) -> list[tuple[str, int]]:
        return [(name, partition) for name in names for partition in range(counts.get(name, 0))]

    def ends(*names: str) -> int:
        return sum(admin.offsets(places(names), LATEST).values())

    if ends(cluster.changelog(stage.name)):
        return False
    read = admin.committed(cluster.group(stage.name), places(cluster.topic(topic.name) for topic in stage.inputs))
    return max(read.values(), default=0) > 0 and ends(*(cluster.topic(topic.name) for topic in stage.outputs)) > 0


def _set_back(cluster: Cluster, stage: AnyStage, places: Sequence[tuple[str, int]]) -> None:
    """Commit the first offset of each partition. Raises ClusterError, KafkaException."""
    starts = Admin(cluster).offsets(places, EARLIEST)
    wanted = [TopicPartition(topic, partition, max(0, start)) for (topic, partition), start in starts.items()]
    with closing(Consumer(cluster.client(group__id=cluster.group(stage.name), enable__auto__commit=False))) as group:
        until = time.monotonic() + EXPIRY
        while True:
            try:
                group.commit(offsets=wanted, asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in MEMBERS:
                    raise
                if time.monotonic() > until:
                    raise ClusterError(f"{cluster.group(stage.name)}: workers of this stage run: stop them first") from error
                time.sleep(PAUSE)
            else:
                return


def _raise_base(cluster: Cluster, stage: Stage[Any, Any], topics: Sequence[str], partitions: int) -> None:
    """Write the rows with the new base of these topics to each partition of the changelog. Raises ClusterError, KafkaException."""
    producer = ordered_producer(cluster.client())
    failed: list[KafkaError] = []
    delivered: Callable[[KafkaError | None, Any], None] = lambda error, _: failed.append(error) if error else None  # noqa: E731
    for key, value in base_rows(topics, origin_base(now_ms() / 1000)).items():
        for partition in range(partitions):
            producer.produce(cluster.changelog(stage.name), value, key, partition, on_delivery=delivered)
    if producer.flush(TIMEOUT) or failed:
        raise ClusterError(f"{cluster.changelog(stage.name)}: {failed[0].str() if failed else 'no acknowledgement'}")
