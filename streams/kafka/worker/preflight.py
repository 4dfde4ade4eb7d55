"""Checks before a worker starts: its topics and schemas exist, and were not recreated since."""

from __future__ import annotations

from collections.abc import Sequence

from streams.kafka.client.brokers import check, written_topics
from streams.kafka.client.registry import Registry
from streams.kafka.client.topic_reset import check_topics
from streams.kafka.worker.worker import WorkerSettings, worker_topology
from streams.store.object_storage import ObjectStorage


def prepare(settings: WorkerSettings, stages: Sequence[str]) -> None:
    """Check the topics and schemas that these stages need, and create the data folder.

    A recreated topic is refused: committed offsets belong to the old one, and new records below them would be skipped as done. So
    is a changelog that was recreated or cut: without the rows, the stage would not notice what is gone. Raises BrokerError,
    ClusterError, OSError.
    """
    drawn = worker_topology(settings)
    check(drawn, stages, settings.cluster)
    check_topics(settings.cluster, drawn, stages)
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
