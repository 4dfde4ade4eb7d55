"""Values with a Schema Registry: subjects, schema numbers, compatibility, and missing schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from schemas.codec import decode, encode, schema_text
from schemas.ports import Logged
from schemas.records import Removed, Role
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.client.log import KafkaLog
from streams.kafka.client.registry import Registry as Ours
from streams.kafka.client.registry import wire
from streams.kafka.client.security import Security
from streams.topology.flow import TopologySettings, topology
from tests.servers.certificates import Authority
from tests.servers.fixtures import TIMEOUT, Topics
from tests.servers.nginx import proxy
from tests.servers.registry import Registry
from tests.streams.kafka.conftest import Broker, Run

TOPICS = topology(TopologySettings()).topics
SECRET = "correct-horse-9"
REMOVED = Removed(oid="o", url="u", object_url="u", version=1, time=2, reason="gone")


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A registry of the test's own."""
    with Registry() as running:
        yield running


@pytest.fixture
def cluster(kafka: str, topics: Topics, registry: Registry) -> Cluster:
    """The broker, with that registry."""
    return Cluster(kafka, f"{topics.prefix}-", registry=registry.url)


def test_schema_is_registered_once_and_number_is_in_value() -> None:
    """A topic's schema is registered once, under PREFIX + TOPIC-value, and its number is part of the value."""
    client: Any = SchemaRegistryClient.new_client({"url": "mock://"})
    cluster = Cluster("", "p-", registry="mock://")
    ours = Ours(cluster, TOPICS, client).wire()
    framed = ours.frame("summaries", encode(REMOVED))
    (subject,) = client.get_subjects()
    assert subject == "p-summaries-value"
    assert framed[1:5] == client.get_latest_version(subject).schema_id.to_bytes(4, "big")
    assert [branch["name"] for branch in json.loads(client.get_latest_version(subject).schema.schema_str)] == ["Summary", "Removed"]
    assert Ours(cluster, TOPICS, client).wire().frame("summaries", encode(REMOVED)) == framed
    role = Role(oid="o", version=1)
    assert decode(ours.plain(ours.frame("copies.main", encode(role)))) == role


def test_lasting_topics_are_fully_compatible(cluster: Cluster, registry: Registry) -> None:
    """Topics that are read for years are set to FULL_TRANSITIVE; the others keep the registry's default."""
    values = wire(cluster, TOPICS)
    values.frame("summaries", encode(REMOVED))
    values.frame("copies.main", encode(Role(oid="o", version=1)))
    assert registry.compatibility == {f"{cluster.prefix}summaries-value": "FULL_TRANSITIVE"}


def test_missing_schema_is_error_if_registration_is_off(cluster: Cluster, registry: Registry) -> None:
    """If `kafka.register` is false, a missing schema is an error of one line, and an existing one is used."""
    careful = cluster._replace(register=False)
    with pytest.raises(ClusterError, match="summaries-value: its schema is not registered"):
        wire(careful, TOPICS).frame("summaries", encode(REMOVED))
    assert not registry.subjects
    framed = wire(cluster, TOPICS).frame("summaries", encode(REMOVED))
    registry.compatibility.clear()
    assert wire(careful, TOPICS).frame("summaries", encode(REMOVED)) == framed
    assert not registry.compatibility


def test_apply_register_registers_all_schemas(
    harvest: Run, cluster: Cluster, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In production `topics apply --register` registers the schemas of all topics; other commands report the missing ones."""
    monkeypatch.setenv("HARVEST_KAFKA_REGISTRY", cluster.registry)
    monkeypatch.setenv("HARVEST_KAFKA_REGISTER", "false")
    assert f"{cluster.prefix}summaries-value: its schema is not registered" in harvest("topics", "apply", code=1).output
    assert not registry.subjects
    assert f"{cluster.prefix}summaries-value: registered" in harvest("topics", "apply", "--register").output
    assert set(registry.subjects) == {f"{cluster.prefix}{topic.name}-value" for topic in topology(TopologySettings()).topics}
    assert registry.compatibility[f"{cluster.prefix}summaries-value"] == "FULL_TRANSITIVE"
    assert harvest("topics", "apply").output.endswith("as they should be\n")
    wire(cluster._replace(register=False), TOPICS).frame("summaries", encode(REMOVED))


def test_unreachable_registry_is_error_of_one_line(cluster: Cluster) -> None:
    """A registry that does not answer is an error of one line, and no record is rejected for it."""
    for url, said in (("http://127.0.0.1:1", "the Schema Registry"), ("nonsense", "kafka.registry")):
        with pytest.raises(ClusterError, match=said) as raised:
            wire(cluster._replace(registry=url), TOPICS).plain(b"\0\0\0\0\1x")
        assert "\n" not in str(raised.value)


def test_confluent_deserializer_reads_harvest_values(cluster: Cluster, topics: Topics, broker: Broker) -> None:
    """Confluent's own deserializer reads Harvest's values with only the registry; Harvest reads both formats from one topic."""
    name = topics.make("summaries")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.append("summaries", [(b"o", REMOVED), (b"x", None)])
        broker.append(name, [(b"o", encode(REMOVED)), (b"j", b"junk"), (b"k", b"\0\0\0\0\x63junk")])
        read = log.read("summaries", 0, 0, 10)
    ((_, value), (_, none), *_) = broker.read(name)
    assert none is None
    client = SchemaRegistryClient({"url": cluster.registry})
    plain: Any = AvroDeserializer(client)(value or b"", SerializationContext(name, MessageField.VALUE))
    assert (plain["oid"], plain["removed"], plain["reason"]) == ("o", True, "gone")
    assert [logged.value for logged in read] == [encode(REMOVED), None, encode(REMOVED), b"junk", b"\0\0\0\0\x63junk"]


def test_value_of_other_schema_version_is_read(cluster: Cluster, topics: Topics, registry: Registry) -> None:
    """A value written with another version of a schema is read with the writer's schema, and converted to Harvest's."""
    name = topics.make("copies.main")
    other = {**schema_text("Role"), "fields": [{"name": n, "type": t} for n, t in (("oid", "string"), ("version", "int"))]}
    registry.post(f"/subjects/{name}-value/versions", {"schema": json.dumps(other)})
    producer = Producer({"bootstrap.servers": cluster.brokers})
    producer.produce(name, b"\0\0\0\0\1" + b"\2o" + b"\x06", b"o")
    assert producer.flush(TIMEOUT) == 0
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        (logged,) = log.read("copies.main", 0, 0, 10)
        assert decode(logged.value or b"") == Role(oid="o", version=3)
        log.write([Logged("copies.main", 0, -1, 5, b"r", b"raw")], raw=True)
        assert log.read("copies.main", 0, 1, 10) == [Logged("copies.main", 0, 1, 5, b"r", b"raw")]


def test_registry_behind_tls_and_a_login(cluster: Cluster, registry: Registry, tmp_path: Path) -> None:
    """A registry with TLS and a login gets schemas; a wrong password or CA is one line that does not show it."""
    authority = Authority(tmp_path)
    login = {"registry_user": "me", "registry_password": SECRET, "registry_ca": str(authority.path)}
    (folder := tmp_path / "nginx").mkdir()
    with proxy(folder, registry.url, {"me": SECRET}, authority.sign("registry")) as front:
        behind = cluster._replace(registry=front.url, security=Security(**login))  # type: ignore[arg-type] # texts only
        assert wire(behind, TOPICS).plain(wire(behind, TOPICS).frame("summaries", encode(REMOVED))) == encode(REMOVED)
        assert list(registry.subjects) == [f"{cluster.prefix}summaries-value"]
        other = str(Authority(tmp_path, "other").path)
        for wrong, line in (({"registry_password": "odd"}, "401"), ({"registry_ca": other}, "the Schema Registry")):
            security = Security(**login | wrong)  # type: ignore[arg-type] # texts only
            refused = Ours(behind._replace(security=security), TOPICS)
            refused._client._rest_client.max_retries = 0
            with pytest.raises(ClusterError, match=line) as raised:
                refused.known("summaries")
            assert "\n" not in str(raised.value)
            assert SECRET not in str(raised.value)
