"""Stages of the topology on a real Kafka have the same output as in the simulator."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from processors.identity import member_url, oid
from schemas.codec import decode, encode
from schemas.records import Annotation, Complete, Record, Rejected, Removed, Summary
from streams.kafka.client.cluster import changelog_of
from streams.sandbox.seal import die_with
from streams.simulator import Simulator
from streams.topology.flow import ANNOTATIONS, MADE, SUMMARIES, Topology, TopologySettings, topology
from tests.streams.kafka.conftest import Broker

OBJECTS = 40
JUNK = b"\xff no record"


def made(seed: int) -> Iterator[Record]:
    """The output of essence for some objects over three versions: members come, change and go; one object is gone at last."""
    choose = random.Random(seed)
    for version in (1000, 2000, 3000):
        for number in range(OBJECTS):
            url = f"http://example.org/{number}"
            members = ["", *(f"m{n}" for n in range(6) if choose.random() < 0.6)]
            if version == 3000 and number % 5 == 0:
                yield Complete(object_url=url, version=version, time=version, attempt="", count=0, reason="gone")
                continue
            for path in members:
                yield summary(url, path, version)
            yield Complete(object_url=url, version=version, time=version, attempt=f"a{version}", count=len(members))


def summary(url: str, path: str, version: int) -> Summary:
    """A member's summary."""
    whole = member_url(url, path) if path else url
    return Summary(
        oid=oid("test", whole),
        url=whole,
        object_url=url,
        path=path,
        gatherer="test",
        version=version,
        time=version,
        type="RawText",
        size=version,
        md5=f"{version:032x}",
        sha256=f"{version:064x}",
        attempt=f"a{version}",
        attributes={"title": (f"{path} of {version}",)},
    )


def annotated() -> list[Annotation]:
    """Annotations of some of the objects."""
    urls = [f"http://example.org/{number}" for number in range(0, OBJECTS, 3)]
    return [Annotation(url=url, object_url=url, time=1, attributes={"reviewed": ("yes",)}) for url in urls]


def simulated(records: Sequence[Record], partitions: int) -> dict[bytes, Record]:
    """The final summaries in the simulator, with crashes."""
    catalog = topology(TopologySettings()).stage("catalog")
    simulator = Simulator(Topology((catalog,)), partitions, random.Random(1).randrange, lambda *_: [], lambda _: [])
    for record in records:
        simulator.send("annotations" if isinstance(record, Annotation) else "made", record)
    simulator.run(crashes=5)
    return simulator.compacted("summaries")


class Cluster:
    """The topics of one test, and a worker of the stage catalog at a time."""

    def __init__(self, broker: Broker, root: Path, folder: Path, partitions: int) -> None:
        self.broker, self.root, self.folder, self.partitions = broker, root, folder, partitions
        for topic in (MADE, ANNOTATIONS, SUMMARIES):
            broker.topics.make(topic.name, partitions)
        broker.topics.make("rejected", partitions)
        broker.topics.make(changelog_of("catalog"), partitions, {"cleanup.policy": "compact"})
        self.prefix = f"{broker.topics.prefix}-"
        self.workers: list[subprocess.Popen[str]] = []

    def send(self, records: Sequence[Record]) -> None:
        """Append records to their topics."""
        for topic in (MADE, ANNOTATIONS):
            mine = [record for record in records if isinstance(record, topic.carries)]
            self.broker.append(self.prefix + topic.name, [(topic.key(r).encode(), encode(r)) for r in mine])

    def transact(self, records: Sequence[Record], *, keep: bool = True) -> None:
        """Append records in a foreign transaction."""
        with self.broker.transaction(keep=keep) as producer:
            for record in records:
                topic = ANNOTATIONS if isinstance(record, Annotation) else MADE
                producer.produce(self.prefix + topic.name, encode(record), topic.key(record).encode())

    def start(self, cut: str = ":0") -> subprocess.Popen[str]:
        """Start a worker, to be killed or stopped at `cut`."""
        words = ["catalog", self.broker.address, self.prefix, str(self.partitions), str(self.folder / "worker"), cut]
        command = [sys.executable, "-m", "tests.streams.kafka.stage", *words]
        with (self.folder / "worker.log").open("ab") as log:
            self.workers.append(
                subprocess.Popen(
                    command,
                    cwd=self.root,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    text=True,
                    preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
                )
            )
        return self.workers[-1]

    def drain(self) -> None:
        """Wait until all inputs are committed to their ends, however long the machine takes."""
        topics = [self.prefix + topic.name for topic in (MADE, ANNOTATIONS)]
        while any(self.broker.lag(f"{self.prefix}catalog", topic, self.partitions) for topic in topics):
            if self.workers[-1].poll() is not None:
                self.again()
            time.sleep(0.2)

    def again(self) -> None:
        """Restart the worker if it has ended itself, as an operator's supervisor would."""
        assert self.workers[-1].returncode == 1
        self.start()

    def asleep(self, cut: str) -> subprocess.Popen[str]:
        """A worker stopped at a given place; one that ended itself before that, after a sleep of the machine, is replaced."""
        worker = self.start(cut)
        while True:
            if (code := worker.poll()) is not None:
                assert code == 1
                worker = self.start(cut)
            elif Path(f"/proc/{worker.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "T":
                return worker
            time.sleep(0.05)

    def cut(self, where: str) -> None:
        """Run a worker until it is killed at a given place."""
        while (code := self.start(where).wait()) == 1:
            pass
        assert code == -signal.SIGKILL

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """The records of an output topic."""
        found = self.broker.read(self.prefix + topic, self.partitions)
        return [(key, decode(value)) for key, value in found if value is not None]


@pytest.fixture
def cluster(broker: Broker, root: Path, tmp_path: Path, partitions: int) -> Iterator[Cluster]:
    """The topics for a test."""
    cluster = Cluster(broker, root, tmp_path, partitions)
    yield cluster
    for worker in cluster.workers:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("partitions", [1, 4])
def test_catalog_has_same_output_as_simulator(cluster: Cluster, partitions: int) -> None:
    """The catalogue on Kafka ends with the simulator's summaries and removals; an undecodable record is a dead letter."""
    records = [*made(1), *annotated()]
    cluster.send(records)
    cluster.broker.append(cluster.prefix + "made", [(b"http://example.org/0", JUNK)])
    cluster.start()
    cluster.drain()
    assert dict(cluster.records("summaries")) == simulated(records, partitions)
    rejected, *repeated = [record for _, record in cluster.records("rejected")]
    assert isinstance(rejected, Rejected)
    assert all(record == rejected for record in repeated)
    assert (rejected.stage, rejected.topic, rejected.key, rejected.value) == ("catalog", "made", b"http://example.org/0", JUNK)


@pytest.mark.parametrize("partitions", [1])
@pytest.mark.parametrize("where", ["rows", "outputs"])
def test_catalog_survives_kills(cluster: Cluster, where: str, partitions: int) -> None:
    """Killed between rows and outputs, or between outputs and offset, it ends as if it had not been killed."""
    records = [*made(2), *annotated()]
    expected = simulated(records, partitions)
    assert any(isinstance(record, Removed) for record in expected.values())
    half = len(records) // 2
    cluster.send(records[:half])
    cluster.cut(f"{where}:1")
    cluster.send(records[half:])
    cluster.cut(f"{where}:2")
    cluster.start()
    cluster.drain()
    assert dict(cluster.records("summaries")) == expected


@pytest.mark.parametrize("partitions", [1])
def test_resumed_workers_write_nothing_and_end(cluster: Cluster, partitions: int) -> None:
    """Workers stopped during a batch, until another one has finished all work, end when resumed, and write no row or output.

    This holds both after processing, before the send, and with records still waiting in their clients.
    """
    records = [*made(5), *annotated()]
    cluster.send(records)
    sleepers = [cluster.asleep(f"{where}:1:stop") for where in ("decided", "queued")]
    cluster.start()
    cluster.drain()
    names = ["summaries", "rejected", "catalog-rows-changelog"]
    before = [cluster.broker.read(cluster.prefix + name, partitions) for name in names]
    for sleeper in sleepers:
        sleeper.send_signal(signal.SIGCONT)
    assert [sleeper.wait() for sleeper in sleepers] == [1, 1]
    assert [cluster.broker.read(cluster.prefix + name, partitions) for name in names] == before
    cluster.drain()
    assert dict(cluster.records("summaries")) == simulated(records, partitions)


@pytest.mark.parametrize("partitions", [1])
def test_transaction_markers_do_not_delay_stage(cluster: Cluster, partitions: int) -> None:
    """Markers of foreign transactions, between records and behind the last, do not delay a stage: all is committed.

    Records of an aborted transaction are not processed.
    """
    records = [*made(3), *annotated()]
    never = [summary(f"http://example.org/{number}", "", 9000) for number in range(OBJECTS)]
    for at in range(0, len(records), 150):
        cluster.transact(records[at : at + 150])
        cluster.transact(never, keep=False)
    worker = cluster.start()
    cluster.drain()
    assert worker.poll() is None
    assert dict(cluster.records("summaries")) == simulated(records, partitions)
