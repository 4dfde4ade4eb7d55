"""`harvest topics` on a real Kafka: creation, repair and listing of topics, and the lag of their readers."""

from __future__ import annotations

import json
import os
import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from schemas.records import Removed
from streams.cli.app import app
from streams.kafka.client.admin import LATEST, Admin, plan_topics
from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.cluster import Cluster, ClusterError, member_name, membership
from streams.kafka.client.log import KafkaLog
from streams.topology.flow import Stage, TopologySettings, topology
from tests.servers.fixtures import TIMEOUT, Topics
from tests.servers.process import free_port
from tests.streams.kafka.conftest import Run

RETENTION = 3_600.0


def removed(oid: str) -> Removed:
    """A small record."""
    return Removed(oid=oid, url="u", object_url="u", version=1, time=2, reason="gone")


def test_apply_creates_all_topics_once(harvest: Run, cluster: Cluster) -> None:
    """`apply` creates all topics and changelogs with their retention or compaction; a second run changes nothing."""
    assert "missing, 2 partitions" in harvest("topics", "apply", "--check", code=1).stdout
    assert f"{cluster.prefix}crawl: made, 2 partitions" in harvest("topics", "apply").stdout
    # Topics of other tests come and go meanwhile.
    found = Admin(cluster).found(name for name in Admin(cluster).partitions() if name.startswith(cluster.prefix))
    for topic in topology(TopologySettings()).topics:
        made = found[cluster.topic(topic.name)]
        assert (made.partitions, made.settings["cleanup.policy"]) == (2, "compact" if topic.keep == "compact" else "delete")
    assert found[cluster.topic("rejected")].settings["retention.ms"] == "-1"
    assert found[cluster.topic("crawl")].settings["retention.ms"] == str(7 * 86_400_000)
    changelogs = {cluster.changelog(stage.name) for stage in topology(TopologySettings()).stages if isinstance(stage, Stage)}
    assert {found[name].settings["cleanup.policy"] for name in changelogs} == {"compact"}
    plan = plan_topics(topology(TopologySettings()), cluster, RETENTION, 1)
    again = harvest("topics", "apply")
    assert (again.stdout, again.stderr) == ("", f"harvest: {len(plan)} topics, as they should be\n")


def test_apply_corrects_differing_settings(harvest: Run, cluster: Cluster, topics: Topics) -> None:
    """`apply` reports and corrects each differing setting of a topic; settings that the topology does not have stay."""
    topics.make("crawl", 2, {"retention.ms": "1000", "segment.ms": "12345"})
    said = harvest("topics", "apply").stdout.splitlines()
    assert f"{cluster.prefix}crawl: retention.ms was 1000, now 604800000" in said
    found = Admin(cluster).found([cluster.topic("crawl")])[cluster.topic("crawl")]
    assert (found.settings["retention.ms"], found.settings["segment.ms"]) == ("604800000", "12345")
    assert not harvest("topics", "apply", "--check").stdout


def test_apply_never_changes_partition_count(harvest: Run, cluster: Cluster, topics: Topics) -> None:
    """A differing number of partitions is an error of one line, and nothing else is created or changed."""
    name = topics.make("made", 3, {"retention.ms": "1000"})
    result = harvest("topics", "apply", code=1)
    assert result.stderr == f"harvest: {name} has 3 partitions, not 2: the number is fixed (take new topics, by kafka.prefix)\n"
    admin = Admin(cluster)
    assert [one for one in admin.partitions() if one.startswith(cluster.prefix)] == [name]
    assert admin.found([name])[name].settings["retention.ms"] == "1000"
    topics.make("crawl", 3)
    assert f"{cluster.prefix}crawl (and 1 other topic) have 3 partitions" in harvest("topics", "apply", code=1).stderr


@pytest.mark.parametrize("words", ["topics lag", "rejected list", "why http://h/", "cat crawl", "roots list", "export crawl x"])
def test_commands_report_that_no_topics_exist(words: str, harvest: Run) -> None:
    """If no topic exists, or none with this prefix, commands report that, not an empty result."""
    result = harvest(*words.split(), code=1)
    assert (result.stdout, result.stderr) == ("", "harvest: none of the topics is there (harvest topics apply)\n")


def test_too_few_replicas_are_reported(cluster: Cluster, topics: Topics) -> None:
    """Too few replicas are reported, and left to the operator to reassign."""
    name = topics.make("crawl", 2)
    (plan,) = [one for one in plan_topics(topology(TopologySettings()), cluster, RETENTION, 1) if one.name == name]
    said = list(Admin(cluster).apply([plan._replace(replication=3, settings={})]))
    assert said == [f"{name}: 1 replica, not 3: reassign its partitions"]


def test_concurrent_applies_both_succeed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two concurrent runs of `apply` do not fail because of each other."""
    (plan, *_) = plan_topics(topology(TopologySettings()), cluster, RETENTION, 1)
    admin = Admin(cluster)
    assert list(admin.apply([plan]))
    monkeypatch.setattr(admin, "found", lambda _: {})
    assert list(admin.apply([plan]))


def test_list_prints_offsets_and_lag_prints_uncommitted(harvest: Run, cluster: Cluster, topics: Topics) -> None:
    """`list` prints offsets; `lag` prints what a group has not committed; missing topics are reported, with exit code 1."""
    topics.make("crawl", 2)
    for command in ("list", "lag"):
        assert "summaries: not there (harvest topics apply)\n" in harvest("topics", command, code=1).stderr
    harvest("topics", "apply")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.append("summaries", [(b"a", removed("a")), (b"b", removed("b"))], partition=1)
    listed = {line["topic"]: line for line in map(json.loads, harvest("topics", "list", "--json").stdout.splitlines())}
    assert (listed["summaries"]["partitions"], listed["summaries"]["ends"]) == (2, [0, 2])
    assert " 2 partitions             2 records written  compact" in harvest("topics", "list").stdout

    def behind() -> int:
        lines = map(json.loads, harvest("topics", "lag", "--json").stdout.splitlines())
        (line,) = [one for one in lines if one["topic"] == "summaries" and one["partition"] == 1]
        assert line["group"] == cluster.group("register.main")
        return int(line["lag"])

    assert behind() == 2
    consumer = Consumer(cluster.client(group__id=cluster.group("register.main")))
    retry_coordinator(lambda: consumer.commit(offsets=[TopicPartition(cluster.topic("summaries"), 1, 1)], asynchronous=False))
    consumer.close()
    assert behind() == 1
    assert "           1 to read  (partition 1: 1)" in harvest("topics", "lag").stdout


def test_members_are_named_with_partitions_and_lag(harvest: Run, cluster: Cluster) -> None:
    """`members` names each worker by its instance or by machine and process, and the stages that have none."""
    harvest("topics", "apply")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.append("made", [(b"a", removed("a")), (b"b", removed("b"))], partition=1)
    assert "without a worker: " in harvest("topics", "members").stderr
    group = cluster.group("catalog")
    settings = cluster.client(group__id=group) | membership(6.0) | cluster.named("worker-7")
    consumer = Consumer(settings)
    consumer.subscribe([cluster.topic("made")])
    try:
        until = time.monotonic() + 200
        while len(consumer.assignment()) < 2:
            consumer.poll(0.1)
            assert time.monotonic() < until
        (line,) = map(json.loads, harvest("topics", "members", "--json").stdout.splitlines())
        shown = harvest("topics", "members")
    finally:
        consumer.close()
    assert (line["group"], line["name"], line["partitions"], line["lag"]) == (group, "worker-7", [0, 1], 2)
    assert shown.stdout.split() == [group, "worker-7", line["host"], "2", "partitions", "2", "to", "read"]
    assert group not in shown.stderr
    assert member_name().endswith(f"-{os.getpid()}")


def test_offsets_of_new_topic_are_awaited(cluster: Cluster, topics: Topics) -> None:
    """A broker knows a new topic before its leaders do: a request for its offsets waits for them."""
    names = [cluster.topic(f"new-{number}") for number in range(10)]
    for made in topics.client.create_topics([NewTopic(name, 4, 1) for name in names]).values():
        made.result(TIMEOUT)
    admin = Admin(cluster)
    while not set(names) <= admin.partitions().keys():
        pass
    places = [(name, number) for name in names for number in range(4)]
    assert admin.offsets(places, LATEST) == dict.fromkeys(places, 0)


def test_unreachable_cluster_is_error_of_one_line(harvest: Run, monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    """Without brokers, or without an answer of one, the error has one line."""
    monkeypatch.setattr("streams.kafka.client.cluster.REACH", 0.5)
    monkeypatch.setattr("streams.kafka.client.admin.REACH", 0.5)
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "127.0.0.1:1")
    assert harvest("topics", "apply", code=1).stderr == "harvest: 127.0.0.1:1: no broker of Kafka answers\n"
    monkeypatch.delenv("HARVEST_KAFKA_BROKERS")
    assert "kafka.brokers is not set" in harvest("topics", "apply", code=2).stderr


def test_refused_topic_has_message_of_broker(cluster: Cluster) -> None:
    """A topic that cannot be created is reported with the broker's message."""
    plan = plan_topics(topology(TopologySettings()), cluster._replace(replication=5), RETENTION, 1)
    with pytest.raises(ClusterError, match="replication factor"):
        list(Admin(cluster).apply(plan))


def test_foreign_topics_are_not_listed(cluster: Cluster, topics: Topics) -> None:
    """Topics outside of the topology are not listed, whatever their names."""
    topics.client.create_topics([NewTopic(f"{cluster.prefix}foreign", 1, 1)], operation_timeout=TIMEOUT)[
        f"{cluster.prefix}foreign"
    ].result(TIMEOUT)
    topics.make("crawl", 2)
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        assert dict(log.topics()) == {"crawl": 2}


def test_doctor_checks_configured_servers(harvest: Run, topics: Topics, opensearch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the settings have a Kafka and an OpenSearch, the doctor reports whether they answer, and what they lack."""

    def told() -> dict[str, tuple[bool, str]]:
        # Its exit code depends on the machine too.
        lines = map(json.loads, CliRunner().invoke(app, ["doctor", "--json"]).stdout.splitlines())
        return {line["check"]: (line["ok"], line["detail"]) for line in lines if line["check"] in ("kafka", "index server")}

    monkeypatch.setenv("HARVEST_INDEX_URL", opensearch)
    monkeypatch.setenv("HARVEST_INDEX_NAME", topics.prefix)
    topics.make("crawl", 2)
    ok, said = told()["kafka"]
    assert not ok
    assert said.endswith("frontier.ticks and 13 more are not there (harvest topics apply)")
    harvest("topics", "apply")
    ok, said = told()["kafka"]
    assert ok
    assert "15 topics of 2 partitions, speaks protocols of Kafka 4" in said
    assert told()["index server"] == (True, "answers, no index yet")
    nobody = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("HARVEST_INDEX_URL", f"http://{nobody}")
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", nobody)
    monkeypatch.setattr("streams.kafka.client.admin.REACH", 1.0)  # the test's longer timeout is for an existing broker
    found = told()
    assert found["kafka"] == (False, f"{nobody}: no broker of Kafka answers")
    ok, said = found["index server"]
    assert not ok
    assert nobody in said
