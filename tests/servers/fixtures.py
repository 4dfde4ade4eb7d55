"""Fixtures: the servers of a test session, and the topics, indexes and buckets of a single test. Imported by tests/conftest.py.

Law: topics, indexes and buckets belong to one test, have names that no other test uses, and are deleted after it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers import sharing
from tests.servers.object_store import Buckets, ObjectStore

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from tests.servers.operators_cluster import OperatorsCluster

TIMEOUT = 120.0
"""Seconds that a client waits for a response: long enough that only a hang exceeds it, even on a slow machine."""


class Topics:
    """Topics of one test: `topics.make("in", 4)` returns the name of the topic on the server."""

    def __init__(self, kafka: str) -> None:
        from confluent_kafka.admin import AdminClient

        self.prefix = f"t{uuid.uuid4().hex[:10]}"
        self.client = AdminClient({"bootstrap.servers": kafka, "log_level": 0})

    def make(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """Create a topic and wait until the broker knows it and leads all its partitions. Returns its full name."""
        from confluent_kafka.cimpl import NewTopic

        full = f"{self.prefix}-{name}"
        new = NewTopic(full, partitions, 1, config=dict(settings or {}))
        for future in self.client.create_topics([new], operation_timeout=TIMEOUT).values():
            future.result(TIMEOUT)
        # The controller answers before the broker knows the topic.
        while not self._led(full, partitions):
            time.sleep(0.05)
        return full

    def _led(self, full: str, partitions: int) -> bool:
        """Whether the broker knows a topic and leads all its partitions."""
        topic = self.client.list_topics(timeout=TIMEOUT).topics.get(full)
        led = [p for p in topic.partitions.values() if p.leader >= 0 and p.error is None] if topic else []
        return len(led) == partitions

    def close(self) -> None:
        """Delete all topics with the prefix of the test, including those that the tested program created."""
        mine = [name for name in self.client.list_topics(timeout=TIMEOUT).topics if name.startswith(self.prefix)]
        for future in (self.client.delete_topics(mine, operation_timeout=TIMEOUT) if mine else {}).values():
            future.result(TIMEOUT)


@pytest.fixture(scope="session", autouse=True)
def shared_forkservers() -> Iterator[None]:
    """Let the runs of this process share forkservers."""
    from tests.servers import forkservers

    with forkservers.shared():
        yield


@pytest.fixture(scope="session")
def kafka() -> str:
    """The address of a real Kafka broker (bootstrap.servers), one for the whole test session."""
    return sharing.address("kafka")


@pytest.fixture(scope="session")
def opensearch() -> str:
    """The URL of a real OpenSearch node, one for the whole test session."""
    return sharing.address("opensearch")


@pytest.fixture(scope="session")
def tika() -> str:
    """The URL of a real tika-server, one for the whole test session."""
    return sharing.address("tika")


@pytest.fixture(scope="session")
def object_store() -> ObjectStore:
    """A real S3 server, with and without TLS, one for the whole test session."""
    return ObjectStore.decode(sharing.address("object_store"))


@pytest.fixture(scope="session")
def operators_cluster(
    opensearch: str, object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorsCluster]:
    """A cluster with TLS, logins and rights everywhere; each process of a test session that asks for it has its own."""
    from tests.servers import operators_cluster

    with operators_cluster.running(tmp_path_factory.mktemp("cluster"), opensearch, object_store) as cluster:
        yield cluster


@pytest.fixture
def buckets(object_store: ObjectStore) -> Iterator[Buckets]:
    """Buckets that belong to the test alone."""
    buckets = Buckets(object_store)
    yield buckets
    buckets.close()


@pytest.fixture
def topics(kafka: str) -> Iterator[Topics]:
    """Topics that belong to the test alone."""
    topics = Topics(kafka)
    yield topics
    topics.close()


@pytest.fixture
def search_client(opensearch: str) -> Iterator[OpenSearch]:
    """A client of the OpenSearch node."""
    from opensearchpy import OpenSearch

    with OpenSearch(opensearch, timeout=TIMEOUT) as client:
        yield client


@pytest.fixture
def index(search_client: OpenSearch) -> Iterator[str]:
    """The name of an index that does not exist yet; the index and aliases that begin with the name are deleted after the test."""
    name = f"t{uuid.uuid4().hex[:10]}"
    yield name
    search_client.indices.delete(index=f"{name}*", ignore_unavailable=True)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make indexes created from now on reject documents whose `published` is above 127."""
    from sinks.index.opensearch import aliases, schema

    whole = schema.definition

    def definition(*given: Any, **more: Any) -> dict[str, Any]:
        made = whole(*given, **more)
        made["mappings"]["properties"]["published"] = {"type": "byte"}
        return made

    monkeypatch.setattr(aliases, "definition", definition)
