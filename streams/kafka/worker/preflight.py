"""What is seen to before a worker begins: that all is there which its stages need, and is still what they know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from streams.kafka.client.admin import LATEST, Admin
from streams.kafka.client.brokers import check, written
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.client.registry import Registry
from streams.kafka.worker.telemetry import PartitionId
from streams.kafka.worker.worker import WorkerSettings, declared
from streams.topology.flow import Stage

ANEW = "take new topics, by kafka.prefix, or set the offsets of the group back"
"""What helps where a topic is another one."""


def prepare(settings: WorkerSettings, stages: Sequence[str]) -> None:
    """See that all is there that these stages need, before one begins: topics, their schemas, and the data folder, which is made.

    A topic that was made anew is none of theirs: what they know is of the old one, and they would pass over what comes as done. Nor
    is a changelog: without what a stage knew, nothing that is gone would be missed.
    Raises BrokerError, ClusterError, OSError.
    """
    drawn = declared(settings)
    counts = check(drawn, stages, settings.brokers, settings.prefix)
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
        for topic in dict.fromkeys(name for stage in stages for name in written(drawn.stage(stage))):
            registry.number(topic)
    settings.folder.mkdir(parents=True, exist_ok=True)


def _forgotten(admin: Admin, cluster: Cluster, stage: Stage[Any, Any], partitions: int) -> bool:
    """Whether a stage has read and given something, which it does by rows, and has none. What it rejects leaves no row."""

    def places(names: Iterable[str]) -> list[PartitionId]:
        return [(name, partition) for name in names for partition in range(partitions)]

    def ends(*names: str) -> int:
        return sum(admin.offsets(places(names), LATEST).values())

    if ends(cluster.changelog(stage.name)):
        return False
    read = admin.committed(cluster.group(stage.name), places(cluster.topic(topic.name) for topic in stage.inputs))
    return max(read.values(), default=0) > 0 and ends(*(cluster.topic(topic.name) for topic in stage.outputs)) > 0
