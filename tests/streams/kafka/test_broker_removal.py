"""`harvest broker remove --forget` on a real Kafka and OpenSearch."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from sinks.index.opensearch.index import OpenSearchIndex
from streams.kafka.client.admin import Admin
from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.cluster import Cluster
from tests.servers.fixtures import TIMEOUT, Topics
from tests.streams.kafka.conftest import Run

NAME = "pages"


def test_forgotten_broker_leaves_no_topic_group_or_index(
    harvest: Run, cluster: Cluster, topics: Topics, opensearch: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--forget` deletes topics, changelogs, groups and index of a Broker, those of others stay; with a worker it is refused."""
    monkeypatch.setenv("HARVEST_INDEX_URL", opensearch)
    monkeypatch.setenv("HARVEST_INDEX_NAME", index)
    harvest("topics", "apply")
    before = own(cluster)
    harvest("broker", "create", NAME)
    harvest("topics", "apply")
    assert cluster.changelog(f"register.{NAME}") in own(cluster) - before
    for alias in (f"{index}-{NAME}", f"{index}-main"):
        OpenSearchIndex(opensearch, alias).close()
    group = cluster.group(f"register.{NAME}")
    with closing(member(cluster, group)):
        assert "workers of the Broker run" in harvest("broker", "remove", NAME, "--forget", code=1).stderr
        assert Path("harvest-data", "brokers", f"{NAME}.toml").exists()
    said = harvest("broker", "remove", NAME, "--forget").stdout
    assert "8 topics: deleted" in said
    assert "1 group: deleted" in said
    assert "its index: deleted" in said
    until = time.monotonic() + TIMEOUT
    while own(cluster) != before:
        assert time.monotonic() < until
    assert group not in {one.group_id for one in topics.client.list_consumer_groups().result(TIMEOUT).valid}
    with closing(OpenSearchIndex(opensearch, f"{index}-main", writable=False)):
        assert "nothing is left" in harvest("broker", "remove", NAME, "--forget", code=2).stderr


def own(cluster: Cluster) -> set[str]:
    """Return the topics of the test."""
    return {name for name in Admin(cluster).partitions() if name.startswith(cluster.prefix)}


def member(cluster: Cluster, group: str) -> Consumer:
    """Return a member of a group, which has committed an offset."""
    topic = cluster.topic("summaries")
    consumer = Consumer(cluster.client(group__id=group, enable__auto__commit=False))
    consumer.subscribe([topic])
    until = time.monotonic() + TIMEOUT
    while not consumer.assignment():
        consumer.poll(0.1)
        assert time.monotonic() < until
    retry_coordinator(lambda: consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False))
    return consumer
