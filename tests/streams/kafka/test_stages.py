"""Stages of the topology on a real Kafka give what the simulator gives."""

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
    """What essence gives of some objects over three versions: members come, change and go; one object is gone at last."""
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
    """Words of people about some of the objects."""
    urls = [f"http://example.org/{number}" for number in range(0, OBJECTS, 3)]
    return [Annotation(url=url, object_url=url, time=1, attributes={"reviewed": ("yes",)}) for url in urls]


def simulated(records: Sequence[Record], partitions: int) -> dict[bytes, Record]:
    """The summaries that the simulator ends with, crashes included."""
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
        """Append records in a stranger's transaction."""
        with self.broker.transaction(keep=keep) as producer:
            for record in records:
                topic = ANNOTATIONS if isinstance(record, Annotation) else MADE
                producer.produce(self.prefix + topic.name, encode(record), topic.key(record).encode())

    def start(self, cut: str = ":0") -> subprocess.Popen[str]:
        """Start a worker that may be cut."""
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
        """Wait until all inputs are committed to their ends; how long that takes is the machine's business."""
        topics = [self.prefix + topic.name for topic in (MADE, ANNOTATIONS)]
        while any(self.broker.lag(f"{self.prefix}catalog", topic, self.partitions) for topic in topics):
            if self.workers[-1].poll() is not None:
                self.again()
            time.sleep(0.2)

    def again(self) -> None:
        """Start the worker again, as an operator's supervisor would, where it has ended itself."""
        assert self.workers[-1].returncode == 1
        self.start()

    def asleep(self, cut: str) -> subprocess.Popen[str]:
        """A worker that has stopped at an agreed place; one that the machine had sleep before that has ended itself."""
        worker = self.start(cut)
        while True:
            if (code := worker.poll()) is not None:
                assert code == 1
                worker = self.start(cut)
            elif Path(f"/proc/{worker.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "T":
                return worker
            time.sleep(0.05)

    def cut(self, where: str) -> None:
        """A worker that is killed at an agreed place."""
        while (code := self.start(where).wait()) == 1:
            pass
        assert code == -signal.SIGKILL

    def records(self, topic: str) -> list[tuple[bytes, Record]]:
        """The records of an output topic."""
        found = self.broker.read(self.prefix + topic, self.partitions)
        return [(key, decode(value)) for key, value in found if value is not None]


@pytest.fixture
def cluster(broker: Broker, root: Path, tmp_path: Path, partitions: int) -> Iterator[Cluster]:
    """Topics for a test."""
    cluster = Cluster(broker, root, tmp_path, partitions)
    yield cluster
    for worker in cluster.workers:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("partitions", [1, 4])
def test_catalog_gives_what_the_simulator_gives(cluster: Cluster, partitions: int) -> None:
    """The catalogue on Kafka ends as in the simulator, summaries and removals; what is no record is a dead letter."""
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
    """Killed between rows and outputs, or between outputs and offset, it ends as if it had not been."""
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
def test_who_was_asleep_writes_nothing(cluster: Cluster, partitions: int) -> None:
    """Workers that were stopped in a batch until another one had done all end when they go on, and add no row and no output.

    So it is where they had decided, and where what they sent was in their clients still.
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
def test_what_stands_between_records_is_passed_over(cluster: Cluster, partitions: int) -> None:
    """Markers of a stranger's transactions are waited for by nobody, between records and behind the last: all is committed.

    What such a transaction has taken back is decided by nobody.
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
