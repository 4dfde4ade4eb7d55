"""`harvest worker`: the whole topology on a real Kafka, and what its supervisor does."""

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


def test_a_stage_that_cannot_stay_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that ends again and again is started again each time, and then the supervisor gives up, and leaves nobody behind."""
    # Five ends take a while on a busy machine.
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
def test_a_signal_is_heard_whenever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that is told to stop does, whichever line it is at; and so does a sink that waits for its index."""
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
    """Have SIGTERM come at the line of that number, of those behind which somebody listens."""
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


def test_stages_are_those_that_have_a_runner() -> None:
    """Every stage has one."""
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
def test_mistakes(words: Sequence[str], environ: dict[str, str], code: int, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker has not got is told in one line."""
    monkeypatch.setattr("streams.kafka.client.brokers.TIMEOUT", 1.0)
    result = CliRunner().invoke(app, ["worker", *words], env={SESSION: None, **environ})
    assert result.exit_code == code
    assert line in result.stderr
    assert result.stderr.count("\n") == 1


def environment(broker: Broker | Own, prefix: str = "", **more: str) -> dict[str, str]:
    """What a worker is told of a broker."""
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
def test_what_is_missing_is_told_at_once(broker: Broker, stages: Sequence[str], more: dict[str, str], line: str) -> None:
    """A registry that does not answer, and a data folder that cannot be made, are told in one line before a stage begins."""
    environ = environment(broker, f"{broker.topics.prefix}-")
    applied = CliRunner().invoke(app, ["topics", "apply"], env={SESSION: None, **environ})
    assert applied.exit_code == 0, applied.stderr
    environ |= more
    result = CliRunner().invoke(app, ["worker", *stages], env={SESSION: None, **environ})
    assert result.exit_code == 1
    assert result.stderr.startswith(f"harvest: {line}")
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["catalog", "fetch"])
def test_a_broker_that_is_gone(stage: str, tmp_path: Path) -> None:
    """A stage leaves in order where no broker answers any more, without waiting for it, and says what went wrong a few times.

    Until then it listens where its settings say, on loopback, and nowhere else: Faust has a server of its own, for everybody.
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
            # Less than Faust waits for a thread that is gone.
            assert worker.wait(timeout=50) == 0
        finally:
            worker.kill()
            worker.wait()
    said = (tmp_path / "log").read_text()
    assert said.startswith(f"harvest: {stage}; stop with Ctrl-C\n")
    assert "Traceback" not in said
    assert len(said.splitlines()) < 25


def listening(pid: int) -> set[tuple[str, int]]:
    """Where a process listens: addresses as /proc has them, in hexadecimal, and ports."""
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
    """Wait until a worker says that it is."""
    while worker.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    pytest.fail("the worker has ended")


def test_missing_topics(broker: Broker) -> None:
    """Topics that were never made are named, with the command that makes them; the broker makes none by itself."""
    environ = {"HARVEST_GATHERER": "x", "HARVEST_KAFKA_BROKERS": broker.address, "HARVEST_KAFKA_PREFIX": f"{broker.topics.prefix}-"}
    result = CliRunner().invoke(app, ["worker", "catalog"], env={SESSION: None, **environ})
    assert result.exit_code == 1
    wanted = ", ".join(
        f"{broker.topics.prefix}-{name}" for name in ("made", "annotations", "summaries", "rejected", "catalog-rows-changelog")
    )
    assert result.stderr == f"harvest: topics are missing: {wanted} (`harvest topics apply` makes them)\n"


def test_a_topic_that_was_made_anew(broker: Broker) -> None:
    """Where a group has read beyond the end of its topic nobody begins: what comes would be passed over as done, in silence."""
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
def test_a_changelog_that_was_made_anew(given: bool, broker: Broker, tmp_path: Path) -> None:
    """Where a stage has given something and its rows are gone nobody begins: nobody would miss what has vanished."""
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


def test_the_loops_are_in_c(tmp_path: Path) -> None:
    """Whoever runs an application does so on uvloop: its own loop, and those that its threads make."""
    code = """import asyncio, sys
from streams.kafka.decide.apps import application, runner
app = application("group", "127.0.0.1:1", sys.argv[1], 1)
loops = runner(app).loop, app.loop, asyncio.new_event_loop()
print({type(loop).__module__ for loop in loops})"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True)
    assert done.stdout == "{'uvloop'}\n"
