"""Forces the compaction of a topic."""

from __future__ import annotations

import time

from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from schemas.ports import Logged
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.topology.flow import TopologySettings, topology
from tests.servers.fixtures import TIMEOUT

AT_ONCE = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.0", "max.compaction.lag.ms": "1"}


def compact(cluster: Cluster, topic: str) -> tuple[int, int]:
    """Compact a topic and wait until each key has one record; returns the number of records before and after.

    The last record of each partition is written once more: Kafka does not compact the active segment, and only a write begins a new
    one. The key of that record may therefore have two records.
    """
    client = AdminClient(cluster.client())
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in AT_ONCE.items()]
    asked = client.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, cluster.topic(topic), incremental_configs=entries)]
    )
    for future in asked.values():
        future.result(TIMEOUT)
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        before = _read(log, topic)
        log.write((part[-1] for part in before if part), raw=True)
        after = _read(log, topic)
        while any(len(part) > len({logged.key for logged in part}) + 1 for part in after):
            time.sleep(0.2)
            after = _read(log, topic)
    return sum(map(len, before)), sum(map(len, after))


def _read(log: KafkaLog, topic: str) -> list[list[Logged]]:
    """All records of a topic, one list for each partition."""
    return [list(log.read(topic, partition, 0, 1 << 40)) for partition in range(log.topics()[topic])]
