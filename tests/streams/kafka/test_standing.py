"""Messages of a flow about what is missing, and stack dumps of its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.records import Annotation, Complete
from tests.servers.fixtures import Topics
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import Flow
from tests.streams.kafka.own import broker_of_its_own
from tests.streams.kafka.standing import TOPOLOGY, Standing

PROGRAM = """
import asyncio
from tests.streams.kafka import stacks

async def main():
    stacks.told()
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
MADE = Complete(object_url="http://example.org/", version=1, time=1, attempt="a", count=0, reason="gone")


@pytest.fixture
def flow(broker: Broker, root: Path, tmp_path: Path) -> Iterator[Flow]:
    """Topics of one partition, and no worker."""
    flow = Flow(broker, root, tmp_path, 1, {}, ["catalog", "frontier"])
    yield flow
    flow.close()


def test_missing_workers_reads_and_commits_are_reported(flow: Flow) -> None:
    """A worker that has not begun, records not read, and records not committed are each reported by name, with offsets."""
    flow.expect("frontier", TOPOLOGY.stage("frontier"))
    flow.send("made", MADE)
    expected = [
        "frontier (process unknown) wrote nothing behind 0 in frontier.ticks",
        "made-0 was read here to 0 of 1",
        "catalog has committed 0 of 1 in made-0",
    ]
    assert list(flow.missing()) == expected
    assert not flow.still()
    told = flow.waits()
    assert all(sentence in told for sentence in expected)
    assert told.endswith("catalog DEAD (nobody), frontier DEAD (nobody)")


def test_wait_reports_missing_things_regularly(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wait for a flow prints what is missing at regular intervals, until nothing is."""
    monkeypatch.setattr("tests.streams.kafka.flows.SAYS", 0.0)
    monkeypatch.setattr("tests.streams.kafka.flows.QUIET", 0.0)
    rounds = iter([False, False, True])
    monkeypatch.setattr(flow, "still", lambda: next(rounds))
    flow.send("annotations", Annotation(url="u", object_url="u", time=1, attributes={}))
    flow.rest()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("catalog has committed 0 of 1 in annotations-0" in line for line in lines)


def test_stopped_reader_is_replaced(flow: Flow, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader that stops although there is more to read is reported and replaced; the new one goes on at its offsets."""
    flow.stages = []
    flow.send("made", MADE)
    flow.rest()
    flow.reader.unassign()
    flow.send("made", MADE)
    monkeypatch.setattr("tests.streams.kafka.flows.STUCK", 0.0)
    flow.rest()
    assert len(flow.records["made"]) == 2
    assert "the reader stopped, and gives way to a new one: made-0 was read here to 1 of 2" in capsys.readouterr().out


def test_wait_without_progress_fails_with_stacks(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing moves for long the wait fails, with what is missing and the workers' stacks."""
    for limit in ("SAYS", "STANDS"):
        monkeypatch.setattr(f"tests.streams.kafka.flows.{limit}", 0.0)
    flow.send("made", MADE)
    flow.reader.unassign()
    flow.workers["catalog"] = flow.run("-c", PROGRAM)
    while (flow.folder / "workers.out").read_text() != "ready\n":
        time.sleep(0.05)
    with pytest.raises(AssertionError, match=r"(?s)catalog has committed 0 of 1 in made-0.*main\(\) running"):
        flow.rest()


@pytest.mark.slow(40)
def test_groups_are_described_after_broker_restarts() -> None:
    """Groups are still described after several restarts of the broker."""
    with broker_of_its_own() as own:
        standing = Standing(Broker(own.address, Topics(own.address)), "", 1)
        before = list(standing.groups(["catalog"]))
        for _ in range(3):
            own.restart()
            assert list(standing.groups(["catalog"])) == before


def test_signal_dumps_stacks_of_worker() -> None:
    """On the signal a worker prints the stacks of its threads and tasks, and goes on."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stderr is not None
        assert worker.stdout.readline() == "ready\n"
        os.kill(worker.pid, signal.SIGUSR1)
        line = worker.stderr.readline()
        while "main() running" not in line:
            assert line
            line = worker.stderr.readline()
        assert worker.poll() is None
        worker.kill()
