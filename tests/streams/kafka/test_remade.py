"""Topics that were deleted and made again, or that lost records, under a running worker and before its start, on a real Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from schemas.codec import decode, encode
from schemas.records import Complete, Summary
from streams.kafka.client import topic_reset
from streams.kafka.client.admin import Admin, TopicPlan
from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.client.topic_identity import BASE, KnownTopics, TopicIdentities, TopicWatch, origin_base
from streams.kafka.client.topic_reset import check_topics, reset_stage
from streams.sandbox.seal import die_with
from streams.topology.flow import TopologySettings, topology
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker, Run
from tests.streams.kafka.test_stages import summary

pytestmark = pytest.mark.servers
DRAWN = topology(TopologySettings())
STALL = "12"
"""Seconds: a worker then looks at its topics every two."""


def delete(cluster: Cluster, topic: str) -> None:
    """Delete a topic, and wait until no broker knows it."""
    client = AdminClient({"bootstrap.servers": cluster.brokers, "log_level": 0})
    for future in client.delete_topics([cluster.topic(topic)], operation_timeout=TIMEOUT).values():
        future.result(TIMEOUT)
    while cluster.topic(topic) in client.list_topics(timeout=TIMEOUT).topics:
        time.sleep(0.05)


@contextmanager
def worker(cluster: Cluster, stage: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a stage in a process of its own; killed at the end of the block."""
    environ = {**os.environ, "HARVEST_GATHERER": "test", "HARVEST_WORKER_STALL": STALL}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "streams.cli", "worker", stage, "--data", "data"],
            env=environ,
            stdout=out,
            stderr=out,
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def objects(*names: str) -> list[tuple[bytes, bytes]]:
    """What essence makes of some objects without members."""
    found = []
    for name in names:
        url = f"http://example.org/{name}"
        done = Complete(object_url=url, version=1, time=1, attempt="a1", count=1)
        found += [(url.encode(), encode(record)) for record in (summary(url, "", 1), done)]
    return found


def catalogued(broker: Broker, cluster: Cluster) -> set[str]:
    """The last parts of the URLs in `summaries`."""
    records = [decode(value) for _, value in broker.read(cluster.topic("summaries"), 2) if value]
    return {record.url.rpartition("/")[2] for record in records if isinstance(record, Summary)}


def await_catalogued(broker: Broker, cluster: Cluster, process: subprocess.Popen[bytes], log: Path, names: set[str]) -> None:
    """Wait until the worker has catalogued these objects, and committed that."""
    group, made = cluster.group("catalog"), cluster.topic("made")
    while catalogued(broker, cluster) != names or broker.lag(group, made, 2):
        assert process.poll() is None, log.read_text()
        time.sleep(0.2)


def test_topic_made_again_ends_worker_and_reset_loses_no_record(
    broker: Broker, cluster: Cluster, harvest: Run, tmp_path: Path
) -> None:
    """A worker ends when its input is made again; after `topics reset` it reads the new one from its first record.

    Until then it refuses to start, by the same line, which names the topic and the command.
    """
    harvest("topics", "apply")
    log = tmp_path / "worker.log"
    line = f"{cluster.topic('made')}: it was deleted and made again; catalog has to start over (harvest topics reset catalog)"
    broker.append(cluster.topic("made"), objects(*(f"old{n}" for n in range(8))))
    old = {f"old{n}" for n in range(8)}
    with worker(cluster, "catalog", log) as process:
        await_catalogued(broker, cluster, process, log, old)
        delete(cluster, "made")
        harvest("topics", "apply")
        broker.append(cluster.topic("made"), objects(*(f"new{n}" for n in range(20))))
        assert process.wait() == 1
    assert log.read_text().splitlines()[-1] == f"harvest: {line}"
    assert "Traceback" not in log.read_text()
    with worker(cluster, "catalog", log) as process:
        assert process.wait() == 1
    assert log.read_text() == f"harvest: {line}\n"
    assert harvest("topics", "reset", "catalog").stdout == f"catalog: {cluster.topic('made')}: is read from its start\n"
    with worker(cluster, "catalog", log) as process:
        await_catalogued(broker, cluster, process, log, old | {f"new{n}" for n in range(20)})
    assert "its topics are as it left them" in harvest("topics", "reset", "catalog").stderr


@pytest.mark.parametrize("stage", ["catalog", "fetch", "essence", "index.main"])
def test_each_topic_that_a_stage_reads_is_compared(stage: str, cluster: Cluster, harvest: Run) -> None:
    """No stage starts on an input or a changelog that was made again since; the line names topic and remedy."""
    harvest("topics", "apply")
    check_topics(cluster, DRAWN, [stage])
    check_topics(cluster, DRAWN, [stage])
    watch = TopicWatch(cluster, DRAWN.stage(stage))
    assert watch() == ""
    topics = {"catalog": "catalog-rows-changelog", "fetch": "fetches", "essence": "objects", "index.main": "broker.main"}
    delete(cluster, topics[stage])
    # A topic that is missing is not another one.
    assert watch() == ""
    harvest("topics", "apply")
    command = "index rebuild --broker main" if stage == "index.main" else f"topics reset {stage}"
    line = f"{cluster.topic(topics[stage])}: it was deleted and made again; {stage} has to start over (harvest {command})"
    assert watch() == line
    with pytest.raises(ClusterError) as refused:
        check_topics(cluster, DRAWN, [stage])
    assert str(refused.value) == line
    harvest(*command.split())
    check_topics(cluster, DRAWN, [stage])


def test_changelog_that_lost_first_records_prevents_start(broker: Broker, cluster: Cluster, harvest: Run) -> None:
    """A changelog whose first records were deleted ends a worker; after a reset its stage reads all inputs again."""
    harvest("topics", "apply")
    changelog, made = cluster.changelog("catalog"), cluster.topic("made")
    broker.append(made, objects("a", "b", "c"))
    with closing(broker.client(cluster.group("catalog"))) as group:
        ends = [group.get_watermark_offsets(TopicPartition(made, at), timeout=TIMEOUT)[1] for at in (0, 1)]
        group.commit(offsets=[TopicPartition(made, at, end) for at, end in enumerate(ends)], asynchronous=False)
    broker.append(changelog, [(b"row%d" % n, b"value") for n in range(5)], 1)
    check_topics(cluster, DRAWN, ["catalog"])
    client = AdminClient({"bootstrap.servers": cluster.brokers, "log_level": 0})
    # Kafka refuses to delete records of a topic that is only compacted; an operator may have changed that.
    list(Admin(cluster).apply([TopicPlan(changelog, 2, 1, {"cleanup.policy": "compact,delete"})]))
    for future in client.delete_records([TopicPartition(changelog, 1, 3)], request_timeout=TIMEOUT).values():
        future.result(TIMEOUT)
    with pytest.raises(ClusterError, match=r"it lost its first 3 offsets: records were deleted; catalog has to start over"):
        check_topics(cluster, DRAWN, ["catalog"])
    lines = reset_stage(cluster, DRAWN, "catalog")
    assert lines == [f"{changelog}: its rows are made again"]
    assert broker.lag(cluster.group("catalog"), made, 2) == 6
    check_topics(cluster, DRAWN, ["catalog"])
    # Of each input: rows of old records never look newer than records that are read now.
    bases = [value for key, value in broker.read(changelog) if key.startswith(BASE)]
    assert len(bases) == 2
    assert all(origin_base(time.time() - 600) < int(value or b"") <= origin_base(time.time()) for value in bases)


def test_changelog_that_lost_last_records_is_noticed_until_reset(cluster: Cluster, harvest: Run) -> None:
    """A changelog that ends below what it did is noticed, and still is after a restart, though more records were written."""
    harvest("topics", "apply")
    catalog = DRAWN.stage("catalog")
    ids = TopicIdentities(cluster, catalog)
    now = ids.present()
    ids.store(KnownTopics(now.ids, 0, 7))
    watch = TopicWatch(cluster, catalog)
    assert "catalog-rows-changelog: it lost its last 7 offsets; catalog has to start over" in watch()
    with pytest.raises(ClusterError, match="lost its last 7 offsets"):
        check_topics(cluster, DRAWN, ["catalog"])
    reset_stage(cluster, DRAWN, "catalog")
    check_topics(cluster, DRAWN, ["catalog"])


def test_reset_is_refused_while_workers_run(
    broker: Broker, cluster: Cluster, harvest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of a group with members are not set back: its workers would commit their own."""
    monkeypatch.setattr(topic_reset, "EXPIRY", 1.0)
    harvest("topics", "apply")
    check_topics(cluster, DRAWN, ["fetch"])
    delete(cluster, "fetches")
    harvest("topics", "apply")
    with closing(broker.client(cluster.group("fetch"))) as member:
        member.subscribe([cluster.topic("fetches")])
        while not member.assignment():
            member.poll(0.1)
        refused = harvest("topics", "reset", "fetch", code=1).stderr
    assert refused == f"harvest: {cluster.group('fetch')}: workers of this stage run: stop them first\n"
    harvest("topics", "reset", "fetch")


@pytest.mark.parametrize(("arguments", "line"), [(["none"], "none: no such stage"), (["index.main"], "harvest index rebuild")])
def test_stage_that_cannot_be_reset_is_usage_error(arguments: list[str], line: str, harvest: Run) -> None:
    """An unknown stage, and an index, which is rebuilt instead, are errors of one line."""
    refused = harvest("topics", "reset", *arguments, code=2).stderr
    assert line in refused
    assert refused.count("\n") == 1
