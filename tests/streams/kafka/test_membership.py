"""Workers with static group membership, on a real Kafka."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.admin import AdminClient

from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import Flow
from tests.streams.kafka.station import Station

PARTITIONS = 4
SESSION = 20.0
"""Seconds of a session; longer than the restart of a worker takes."""
PATIENCE = 180.0


@pytest.fixture
def flow(broker: Broker, root: Path, tmp_path: Path) -> Iterator[Flow]:
    """Topics, without workers."""
    flow = Flow(broker, root, tmp_path, PARTITIONS, {}, [])
    yield flow
    flow.close()


class Group:
    """The group of a stage, and its workers by name."""

    def __init__(self, flow: Flow, stage: str) -> None:
        self._flow, self._stage = flow, stage

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start a worker of that name."""
        station = Station(
            self._flow.broker.address, self._flow.prefix, str(self._flow.folder / "data"), session=SESSION, instance=name
        )
        worker = self._flow.run("-m", "tests.streams.kafka.station", self._stage, msgspec.json.encode(station).decode())
        self._flow.workers[f"{self._stage} {name}"] = worker
        return worker

    def members(self) -> dict[str, tuple[str, frozenset[int]]]:
        """The member id of each worker's process and its partitions, by worker name."""
        admin = AdminClient({"bootstrap.servers": self._flow.broker.address, "log_level": 0})
        (asked,) = admin.describe_consumer_groups([self._flow.prefix + self._stage]).values()
        found = {}
        for member in asked.result(60).members or []:
            has = member.assignment.topic_partitions if member.assignment else []
            found[member.group_instance_id] = member.member_id, frozenset(at.partition for at in has)
        return found

    def settled(self, *names: str) -> dict[str, tuple[str, frozenset[int]]]:
        """Wait until exactly these members share all partitions; returns them. Raises AssertionError."""
        until = time.monotonic() + PATIENCE
        while True:
            found = self.members()
            shares = [has for _, has in found.values()]
            if set(found) == set(names) and all(shares) and frozenset().union(*shares) == frozenset(range(PARTITIONS)):
                return found
            assert time.monotonic() < until, found
            time.sleep(0.2)


@pytest.mark.slow(25)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("stage", ["dedup.main", "fetch", "index.main"])
def test_restarted_worker_keeps_its_partitions(flow: Flow, stage: str) -> None:
    """A worker that stops and starts again under its name keeps its partitions, and those of the others do not move."""
    group = Group(flow, stage)
    first = group.start("first")
    group.settled("first")
    # An index in a folder has one writer.
    others = () if stage == "index.main" else ("second",)
    for name in others:
        group.start(name)
    before = group.settled("first", *others)
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE) == 0
    assert group.members() == before
    group.start("first")
    until = time.monotonic() + PATIENCE
    while (now := group.members()) == before:
        assert time.monotonic() < until, now
        time.sleep(0.2)
    now = group.settled("first", *others)
    assert {name: has for name, (_, has) in now.items()} == {name: has for name, (_, has) in before.items()}
    assert now["first"][0] != before["first"][0]
    assert all(now[name] == before[name] for name in others)


@pytest.mark.slow(25)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("stage", ["dedup.main", "fetch"])
def test_later_worker_takes_over_name(flow: Flow, stage: str) -> None:
    """If two workers have one name, the later one takes it over; the earlier one ends with a message that names the setting."""
    group = Group(flow, stage)
    earlier = group.start("first")
    group.settled("first")
    group.start("first")
    assert earlier.wait(PATIENCE) == 1
    group.settled("first")
    said = (flow.folder / "workers.log").read_text()
    assert "another worker has taken the name of this one (worker.instance)" in said
