"""Schema Registry of a cluster: schema ids of its topics, and schemas by id.

Laws:
- A topic's subject is TOPIC-value, by its name on the cluster. Public compacted topics, which are read from the beginning for
  years, are set to FULL_TRANSITIVE before anything is registered.
- Where `kafka.register` is false, readers and writers register nothing: a missing schema is an error of one line. An operator then
  registers it with `harvest topics apply --register`.
- An unreachable registry is a ClusterError, never the fault of a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from schemas.codec import union_text
from schemas.wire import SINGLE, ConfluentWire, Wire
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.topology.flow import Topic

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

NOT_FOUND = 404


def wire(cluster: Cluster, topics: Iterable[Topic[Any]]) -> Wire:
    """How values stand in these topics of a cluster. Nothing is asked before the first value."""
    return Registry(cluster, topics).wire() if cluster.registry else SINGLE


def subject(cluster: Cluster, topic: str) -> str:
    """Return the subject of a topic's values."""
    return f"{cluster.topic(topic)}-value"


class Registry:
    """The registry of a cluster, for some topics; `client` may be given by those who have one."""

    def __init__(self, cluster: Cluster, topics: Iterable[Topic[Any]], client: SchemaRegistryClient | None = None) -> None:
        from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 - slow, and few have a registry

        self._cluster = cluster
        self._topics = {topic.name: topic for topic in topics}
        try:
            self._client: Any = client or SchemaRegistryClient.new_client(cluster.security.registry(cluster.registry))
        except ValueError as error:
            raise ClusterError(f"kafka.registry: {error}") from error

    def wire(self) -> Wire:
        """Return the Confluent wire format with the schema ids of this registry."""
        return ConfluentWire({name: topic.carries for name, topic in self._topics.items()}, self.number, self.text)

    def number(self, topic: str) -> int:
        """Return the schema id of a topic, registering it if missing and allowed. Raises ClusterError."""
        from confluent_kafka.schema_registry import Schema  # noqa: PLC0415

        name, drawn = subject(self._cluster, topic), self._topics[topic]
        if not self._cluster.register:
            if (found := self.known(topic)) is None:
                raise ClusterError(
                    f"{name}: its schema is not registered, and kafka.register is false (`harvest topics apply --register` does it)"
                )
            return found
        with self._told():
            self._allow(name, drawn)
            return int(self._client.register_schema(name, Schema(schema_text(drawn), "AVRO")))

    def known(self, topic: str) -> int | None:
        """Return the schema id of a topic; None where it is not registered. Raises ClusterError."""
        from confluent_kafka.schema_registry import Schema  # noqa: PLC0415

        schema = Schema(schema_text(self._topics[topic]), "AVRO")
        with self._told():
            try:
                return int(self._client.lookup_schema(subject(self._cluster, topic), schema).schema_id)
            except Exception as error:
                if getattr(error, "http_status_code", 0) == NOT_FOUND:
                    return None
                raise

    def apply(self) -> Iterator[str]:
        """Register the missing schemas of all topics, where allowed; yield a line for each. Raises ClusterError."""
        for topic in self._topics:
            if self.known(topic) is None:
                if self._cluster.register:
                    self.number(topic)
                said = "registered" if self._cluster.register else "its schema is not registered"
                yield f"{subject(self._cluster, topic)}: {said}"

    def _allow(self, name: str, topic: Topic[Any]) -> None:
        from confluent_kafka.schema_registry import ConfigCompatibilityLevel, ServerConfig  # noqa: PLC0415

        if topic.public and topic.keep == "compact":
            self._client.set_config(name, ServerConfig(compatibility=ConfigCompatibilityLevel.FULL_TRANSITIVE))

    def text(self, number: int) -> str | None:
        """Return the schema with an id; None where there is none. Raises ClusterError."""
        with self._told():
            try:
                return str(self._client.get_schema(number).schema_str)
            except Exception as error:
                if getattr(error, "http_status_code", 0) == NOT_FOUND:
                    return None
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Convert any exception of the client to a ClusterError: it also raises those of its HTTP client."""
        try:
            yield
        except ClusterError:
            raise
        except Exception as error:
            said = str(error).splitlines() or [type(error).__name__]
            raise ClusterError(f"{self._cluster.registry}: the Schema Registry: {said[0][:200]}") from error


def schema_text(topic: Topic[Any]) -> str:
    """Return the schema of a topic's values, as it is registered."""
    return json.dumps(union_text([cls.__name__ for cls in topic.carries]))
