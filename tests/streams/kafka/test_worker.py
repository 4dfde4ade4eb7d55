"""`harvest worker`: the supervisor, the checks before the start, and the end of stages, on a real Kafka."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from schemas.ports import BrokerIndex
from sinks.index.errors import IndexUnreachable
from streams.cli.app import app
from streams.kafka.client.cluster import ClusterError
from streams.kafka.sink import run_sink
from streams.kafka.worker import supervisor
from streams.kafka.worker.preflight import prepare
from streams.kafka.worker.supervisor import ENDS, supervise
from streams.kafka.worker.worker import WorkerSettings, runnable_stages
from streams.topology.flow import TopologySettings, topology
from tests.servers.fixtures import TIMEOUT
from tests.servers.process import free_port
from tests.servers.sharing import SESSION
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.own import Own, broker_of_its_own


def test_supervisor_gives_up_stage_that_keeps_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that keeps ending is restarted each time until the supervisor gives up; then it ends all others."""
    # Five restarts take a while on a busy machine.
    monkeypatch.setattr(supervisor, "WITHIN", 3600.0)
    said: list[str] = []
    commands = {"good": "import time; time.sleep(600)", "bad": "raise SystemExit(3)"}
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert supervise(list(commands), lambda stage: [sys.executable, "-c", commands[stage]], said.append) == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert said[-1] == f"bad: ended {ENDS} times within 3600 s"
    assert [line for line in said[:-1] if line.startswith("bad: ended with 3; started again")] == said[:-1]
    assert len(said) == ENDS


@pytest.mark.timeout(60)
def test_sigterm_stops_program_at_any_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor, and a sink that waits for its index, stop at SIGTERM whatever line they are at."""
    monkeypatch.setattr(supervisor, "LOOK", 0.001)
    monkeypatch.setattr(run_sink, "LOOK", 0.001)
    stop = threading.Event()

    def away() -> BrokerIndex:
        raise IndexUnreachable("away")

    def waits() -> int:
        stop.clear()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        assert run_sink.open_index(away, stop, lambda _: None) is None
        return 0

    def supervises() -> int:
        return supervise([], lambda _: [], print)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for line, program in itertools.product(range(50), (waits, supervises)):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with signalled(line):
                assert program() == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signalled(line: int) -> Iterator[None]:
    """Raise SIGTERM at the line of that number, counted where a handler is installed."""
    left = line

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line" and callable(signal.getsignal(signal.SIGTERM)):
            left -= 1
            if left == -1:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return traced

    sys.settrace(traced)
    try:
        yield
    finally:
        sys.settrace(None)


def test_each_stage_has_a_runner() -> None:
    """Each stage has a runner."""
    assert list(runnable_stages(topology(TopologySettings()))) == [stage.name for stage in topology(TopologySettings()).stages]


@pytest.mark.parametrize(
    ("words", "environ", "code", "line"),
    [
        ([], {}, 2, "gatherer: every OID is made of it"),
        (["colour"], {}, 2, "colour: no such stage (there are frontier, fetch,"),
        (["dedup"], {"HARVEST_GATHERER": "x"}, 2, "kafka.brokers is not set"),
        (["dedup"], {"HARVEST_GATHERER": "x", "HARVEST_KAFKA_BROKERS": "127.0.0.1:1"}, 1, "none of 127.0.0.1:1 answers"),
    ],
)
def test_wrong_settings_are_errors_of_one_line(
    words: Sequence[str], environ: dict[str, str], code: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing or wrong setting of a worker is an error of one line."""
    monkeypatch.setattr("streams.kafka.client.brokers.TIMEOUT", 1.0)
    result = CliRunner().invoke(app, ["worker", *words], env={SESSION: None, **environ})
    assert result.exit_code == code
    assert line in result.stderr
    assert result.stderr.count("\n") == 1


def environment(broker: Broker | Own, prefix: str = "", **more: str) -> dict[str, str]:
    """Environment variables of a worker for a broker."""
    return {"HARVEST_GATHERER": "x", "HARVEST_KAFKA_BROKERS": broker.address, "HARVEST_KAFKA_PREFIX": prefix, **more}


@pytest.mark.parametrize("stages", [[], ["catalog"]], ids=["all", "one"])
@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"HARVEST_KAFKA_REGISTRY": "http://127.0.0.1:1"}, "http://127.0.0.1:1: the Schema Registry: "),
        ({"HARVEST_DATA": "/proc/none"}, "/proc/none: "),
    ],
    ids=["registry", "folder"],
)
def test_missing_registry_or_folder_is_error_before_start(
    broker: Broker, stages: Sequence[str], more: dict[str, str], line: str
) -> None:
    """A registry without an answer, and a data folder that cannot be created, are errors of one line before a stage begins."""
    environ = environment(broker, f"{broker.topics.prefix}-")
    applied = CliRunner().invoke(app, ["topics", "apply"], env={SESSION: None, **environ})
    assert applied.exit_code == 0, applied.stderr
    environ |= more
    result = CliRunner().invoke(app, ["worker", *stages], env={SESSION: None, **environ})
    assert result.exit_code == 1
    assert result.stderr.startswith(f"harvest: {line}")
    assert result.stderr.count("\n") == 1


@pytest.mark.slow(25)
@pytest.mark.parametrize("stage", ["catalog", "fetch"])
def test_worker_leaves_in_order_without_broker(stage: str, tmp_path: Path) -> None:
    """A stage leaves in order, without a wait, although no broker answers any more, and logs only a few lines about it.

    Until then it listens only on loopback, at its configured port: Faust's own server would listen on all addresses.
    """
    with broker_of_its_own() as broker:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_")}
        environ = plain | environment(broker, HARVEST_KAFKA_PARTITIONS="2", HARVEST_WORKER_PORT=str(port := free_port()))
        command = [sys.executable, "-m", "streams.cli"]
        subprocess.run([*command, "topics", "apply"], env=environ, check=True, capture_output=True)
        with (tmp_path / "log").open("w") as log:
            worker = subprocess.Popen([*command, "worker", stage, "--data", str(tmp_path / "data")], env=environ, stderr=log)
        try:
            ready(worker, port)
            assert listening(worker.pid) == {("0100007F", port)}
            broker.close()
            worker.send_signal(signal.SIGTERM)
            # Less than the time for which Faust waits for an ended thread.
            assert worker.wait(timeout=50) == 0
        finally:
            worker.kill()
            worker.wait()
    said = (tmp_path / "log").read_text()
    assert said.startswith(f"harvest: {stage}, http://127.0.0.1:{port}/metrics; stop with Ctrl-C\n")
    assert "Traceback" not in said
    assert len(said.splitlines()) < 25


def listening(pid: int) -> set[tuple[str, int]]:
    """The listening sockets of a process: hexadecimal addresses, as in /proc, and ports."""
    links = (str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())
    own = {link[8:-1] for link in links if link.startswith("socket:[")}
    found = set()
    for table in "tcp", "tcp6":
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and inode in own:
                address, _, port = local.partition(":")
                found.add((address, int(port, 16)))
    return found


def ready(worker: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a worker reports that it is ready."""
    while worker.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    pytest.fail("the worker has ended")


def test_missing_topics_are_named_with_remedy(broker: Broker) -> None:
    """Missing topics are named, with the command that creates them; the broker creates none by itself."""
    environ = {"HARVEST_GATHERER": "x", "HARVEST_KAFKA_BROKERS": broker.address, "HARVEST_KAFKA_PREFIX": f"{broker.topics.prefix}-"}
    result = CliRunner().invoke(app, ["worker", "catalog"], env={SESSION: None, **environ})
    assert result.exit_code == 1
    wanted = ", ".join(
        f"{broker.topics.prefix}-{name}" for name in ("made", "annotations", "summaries", "rejected", "catalog-rows-changelog")
    )
    assert result.stderr == f"harvest: topics are missing: {wanted} (`harvest topics apply` makes them)\n"


def test_offset_beyond_end_of_topic_prevents_start(broker: Broker) -> None:
    """No stage starts if its group's offset is beyond the end of a topic: new records would silently count as processed."""
    environ = environment(broker, prefix := f"{broker.topics.prefix}-", HARVEST_KAFKA_PARTITIONS="2")
    assert CliRunner().invoke(app, ["topics", "apply"], env={SESSION: None, **environ}).exit_code == 0
    with closing(Consumer({"bootstrap.servers": broker.address, "group.id": f"{prefix}catalog"})) as group:
        group.commit(offsets=[TopicPartition(f"{prefix}made", 1, 7)], asynchronous=False)
    result = CliRunner().invoke(app, ["worker", "catalog"], env={SESSION: None, **environ})
    assert result.exit_code == 1
    told = f"harvest: {prefix}made, partition 1: {prefix}catalog has read to 7, and it ends at 0: it was made anew"
    assert result.stderr.startswith(told)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("given", [False, True])
def test_empty_changelog_with_outputs_prevents_start(given: bool, broker: Broker, tmp_path: Path) -> None:
    """No stage starts that has outputs but an empty changelog: what vanished with its rows would never be removed."""
    environ = environment(broker, prefix := f"{broker.topics.prefix}-", HARVEST_KAFKA_PARTITIONS="2")
    assert CliRunner().invoke(app, ["topics", "apply"], env={SESSION: None, **environ}).exit_code == 0
    broker.append(f"{prefix}made", [(b"key", b"no record")])
    with closing(Consumer({"bootstrap.servers": broker.address, "group.id": f"{prefix}catalog"})) as group:
        ends = [group.get_watermark_offsets(TopicPartition(f"{prefix}made", at), timeout=TIMEOUT)[1] for at in (0, 1)]
        group.commit(offsets=[TopicPartition(f"{prefix}made", at, end) for at, end in enumerate(ends)], asynchronous=False)
    if given:
        broker.append(f"{prefix}summaries", [(b"key", b"some record")])
    settings = WorkerSettings(brokers=(broker.address,), prefix=prefix, folder=tmp_path)
    try:
        prepare(settings, ["catalog"])
        told = ""
    except ClusterError as error:
        told = str(error)
    assert told.startswith(
        f"{prefix}catalog-rows-changelog: catalog has worked, and it is empty: it was made anew" if given else ""
    )
    assert bool(told) is given


def test_applications_run_on_uvloop(tmp_path: Path) -> None:
    """Applications run on uvloop: their own loop, and those of their threads."""
    code = """import asyncio, sys
from streams.kafka.client.cluster import Cluster
from streams.kafka.decide.apps import application, runner
app = application("group", Cluster("127.0.0.1:1"), sys.argv[1], 1)
loops = runner(app).loop, app.loop, asyncio.new_event_loop()
print({type(loop).__module__ for loop in loops})"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True)
    assert done.stdout == "{'uvloop'}\n"
