"""AsyncAPI 3 description of the public topics: key, schema, retention, compaction, ordering.

`python -m streams.topology.asyncapi` writes `schemas/asyncapi.json` from the topology, the schemas and the topic configuration of
`harvest topics apply`; a test fails while the file is stale. Sources: AsyncAPI 3.0.0; its Kafka bindings 0.5.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from schemas.codec import schema_text
from schemas.records import Record
from streams.config.settings import Settings
from streams.kafka.client.admin import TopicPlan, plan_topics
from streams.kafka.client.cluster import Cluster
from streams.topology.flow import Topic, Topology, TopologySettings, archive, topology

FILE = "asyncapi.json"
AVRO = "application/vnd.apache.avro;version=1.9.0"
"""AsyncAPI's name for Avro schemas; version 1.12 defines nothing beyond it that these schemas use."""
BINDING = "0.5.0"
KEYS = {
    "objects": "the object's URL",
    "files": "the object's URL",
    "summaries": "the OID: hex SHA-256 of gatherer name, newline, URL",
    "rejected": "the object's URL; empty for a record that was none",
}
"""What a key is, by topic; that of a Broker's archive is that of `summaries`."""
DESCRIPTION = """The public topics of Harvest. Names begin with the setting kafka.prefix, where it is set.

Values are Avro. Without a Schema Registry: single-object encoding (C3 01, the schema's Rabin fingerprint, the body). With one: \
the Confluent wire format; subject TOPIC-value, whose schema is the union of the topic's records where it carries several. Schemas \
evolve fully compatibly, and schemas/history has every published version. A null is a tombstone.

Delivery is at least once: a record may come again. A reader keeps, of each key, the record with the highest version (published, \
in a Broker's topic), and applies a Removed as a removal."""


def document(found: Topology) -> dict[str, Any]:
    """Return the description of the public topics of a topology."""
    settings = Settings.model_construct()
    cluster = Cluster.of(settings.kafka)
    plan = {topic.name: topic for topic in plan_topics(found, cluster, settings.retention, settings.sandbox.frame)}
    public = [topic for topic in found.topics if topic.public]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Harvest",
            "version": version("harvest"),
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/avro",
        "channels": {_id(topic.name): _channel(topic, plan[topic.name]) for topic in public},
        "operations": {f"send-{_id(topic.name)}": _operation(topic, found) for topic in public},
        "components": {"messages": {_name(topic, cls): _message(topic, cls) for topic in public for cls in topic.carries}},
    }


def _name(topic: Topic[Record], cls: type[Record]) -> str:
    return f"{_id(topic.name)}-{cls.__name__}"


def _key(topic: Topic[Record]) -> str:
    return KEYS["summaries" if topic.name.startswith(archive("").name) else topic.name]


def _id(name: str) -> str:
    """Return a name as a key of the document, without dots: readers differ on whether a key may contain one."""
    return name.replace(".", "-")


def _channel(topic: Topic[Record], plan: TopicPlan) -> dict[str, Any]:
    settings = dict(plan.settings)
    configuration: dict[str, Any] = {"cleanup.policy": [settings["cleanup.policy"]]}
    numbers = ("retention.ms", "retention.bytes", "delete.retention.ms", "max.message.bytes")
    configuration |= {name: int(settings[name]) for name in numbers if name in settings}
    binding = {"topic": topic.name, "partitions": plan.partitions, "replicas": plan.replication}
    return {
        "address": topic.name,
        "description": f"{_sentence(topic.says)} {' '.join(_promises(topic))}",
        "messages": {cls.__name__: {"$ref": f"#/components/messages/{_name(topic, cls)}"} for cls in topic.carries},
        "bindings": {"kafka": {**binding, "topicConfiguration": configuration, "bindingVersion": BINDING}},
    }


def _promises(topic: Topic[Record]) -> Iterator[str]:
    """Yield ordering, retention and compaction, in words."""
    yield f"Key: {_key(topic)}."
    yield "Partitioned by murmur2 of the key: records of one key are in one partition, in the order in which they were written."
    if topic.keep == "compact":
        yield "Compacted: the latest record of each key stays, so reading from offset 0 gives the whole; tombstones for 90 days."
    else:
        yield "Not compacted; kept for good." if topic.keep == "always" else "Not compacted; kept for the setting retention."


def _operation(topic: Topic[Record], drawn: Topology) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{_id(topic.name)}"},
        "summary": f"Written by {drawn.written_by(topic)}.",
    }


def _message(topic: Topic[Record], cls: type[Record]) -> dict[str, Any]:
    schema = schema_text(cls.__name__)
    return {
        "name": cls.__name__,
        "contentType": "application/avro",
        "summary": schema["doc"],
        "payload": {"schemaFormat": AVRO, "schema": schema},
        "bindings": {"kafka": {"key": {"type": "string", "description": _key(topic)}, "bindingVersion": BINDING}},
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def text() -> str:
    """Return the file: the topology without settings."""
    return json.dumps(document(topology(TopologySettings())), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(str(resources.files("schemas").joinpath(FILE))).write_text(text(), "utf-8")
