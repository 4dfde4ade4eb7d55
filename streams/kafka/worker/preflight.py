"""Checks before a worker starts: its topics and schemas exist, and were not recreated since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from streams.kafka.client.admin import LATEST, Admin
from streams.kafka.client.brokers import check, written_topics
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.client.registry import Registry
from streams.kafka.worker.telemetry import PartitionId
from streams.kafka.worker.worker import WorkerSettings, worker_topology
from streams.store.object_storage import ObjectStorage
from streams.topology.flow import Stage

ANEW = "take new topics, by kafka.prefix, or set the offsets of the group back"
"""Remedy for a recreated topic."""


def prepare(settings: WorkerSettings, stages: Sequence[str]) -> None:
    """Check the topics and schemas that these stages need, and create the data folder.

    A recreated topic is refused: committed offsets belong to the old one, and new records below them would be skipped as done. So
    is a recreated changelog: without the rows, the stage would not notice what is gone. Raises BrokerError, ClusterError, OSError.
    """
    drawn = worker_topology(settings)
    counts = check(drawn, stages, settings.cluster)
    admin = Admin(settings.cluster)
    for lag in admin.lags(drawn, stages):
        if lag.lag < 0:
            where = f"{settings.prefix}{lag.topic}, partition {lag.partition}: {lag.group} has read to {lag.committed:,}"
            raise ClusterError(f"{where}, and it ends at {lag.end:,}: it was made anew, or cut ({ANEW})")
    for name in stages:
        stage = drawn.stage(name)
        if isinstance(stage, Stage) and _forgotten(admin, settings.cluster, stage, counts[name]):
            changelog = settings.cluster.changelog(name)
            raise ClusterError(f"{changelog}: {name} has worked, and it is empty: it was made anew, or cut ({ANEW})")
    if settings.registry:
        registry = Registry(settings.cluster, drawn.topics)
        for topic in dict.fromkeys(name for stage in stages for name in written_topics(drawn.stage(stage))):
            registry.number(topic)
    settings.folder.mkdir(parents=True, exist_ok=True)
    _check_bodies(settings, stages)


def _check_bodies(settings: WorkerSettings, stages: Sequence[str]) -> None:
    """Check the object storage: fetch writes bodies, essence reads them. Raises StorageError."""
    if settings.blobs.url and {"fetch", "essence"} & set(stages):
        ObjectStorage(settings.blobs).check(write="fetch" in stages)


def _forgotten(admin: Admin, cluster: Cluster, stage: Stage[Any, Any], partitions: int) -> bool:
    """Whether a stage has read inputs and written outputs, but its changelog is empty. Rejecting a record writes no row."""

    def places(names: Iterable[str]) -> list[PartitionId]:
        return [(name, partition) for name in names for partition in range(partitions)]

    def ends(*names: str) -> int:
        return sum(admin.offsets(places(names), LATEST).values())

    if ends(cluster.changelog(stage.name)):
        return False
    read = admin.committed(cluster.group(stage.name), places(cluster.topic(topic.name) for topic in stage.inputs))
    return max(read.values(), default=0) > 0 and ends(*(cluster.topic(topic.name) for topic in stage.outputs)) > 0
