"""Telemetry of workers on a real Kafka: probes, metrics, logs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.codec import encode
from schemas.ports import Logged, Refused
from schemas.records import Removed
from schemas.wire import SINGLE
from streams.kafka.client.cluster import Cluster
from streams.kafka.sink.buffer import Read
from streams.kafka.sink.index_sink import IndexSink
from streams.kafka.worker.telemetry import PartitionProgress, WorkerTelemetry
from streams.kafka.worker.worker import RUNNERS, Context, WorkerSettings, run_stage, worker_topology
from streams.telemetry import Health, Logs, Metrics
from streams.telemetry.health import Verdict
from tests.servers.process import free_port
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import Flow

PATIENCE = 120
STALL = "30"
"""Seconds, six times the watchdog's interval. A worker needs some of them to start, on a slow machine more."""


def until(port: int, path: str, texts: Sequence[str], process: subprocess.Popen[str], log: Path) -> str:
    """The first successful response that has all texts. Fails if the process ends before, or takes too long."""
    body = ""
    for _ in range(PATIENCE * 10):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                body = str(answer.read(), "utf-8")
                assert path != "/readyz" or '"assigned' in body, f"ready before anything is known: {body}"
                if all(text in body for text in texts):
                    return body
        except urllib.error.HTTPError as error:
            body = error.read().decode()
        except OSError:
            body = "nobody listens"
        assert process.poll() is None, log.read_text("utf-8")
        time.sleep(0.1)
    raise AssertionError(f"{path} has not {texts}: {body}\n{log.read_text('utf-8')}")


@pytest.mark.parametrize("stage", ["catalog", "fetch", "essence", "index.main"])
def test_worker_is_not_ready_before_its_runner(stage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Until the runner of a stage, of whatever kind, has registered its checks, its worker is alive and not ready."""
    health, seen = Health(), list[tuple[bool, Verdict]]()

    def begun(_: Context) -> None:
        seen.append((health.alive().ok, health.ready()))

    runner = f"begun_{len(RUNNERS)}"
    monkeypatch.setitem(sys.modules, runner, SimpleNamespace(begun=begun))
    monkeypatch.setattr("streams.kafka.worker.worker.RUNNERS", dict.fromkeys(RUNNERS, f"{runner}:begun"))
    monkeypatch.setattr("streams.kafka.worker.worker.partitions", lambda *_: 1)
    settings, metrics = WorkerSettings(brokers=("127.0.0.1:1",), folder=tmp_path, retention=60.0), Metrics()
    run_stage(stage, settings, health, metrics)
    kept = {topic.name for topic in worker_topology(settings).stage(stage).inputs if topic.keep == "delete"}
    assert metrics.retention.values() == {(stage, topic): 60.0 for topic in kept}
    ((alive, ready),) = seen
    assert alive
    assert ready.checks["starting"]


@pytest.fixture
def flow(broker: Broker, root: Path, tmp_path: Path) -> Iterator[Flow]:
    """Topics of one partition."""
    flow = Flow(broker, root, tmp_path, 1, {}, [])
    yield flow
    flow.close()


@pytest.mark.slow(20)
def test_each_kind_of_worker_has_probes_metrics_and_logs(flow: Flow, tmp_path: Path) -> None:
    """A deciding stage, an edge and a sink are each alive and ready at a port of its own, with metrics and JSON logs."""
    port, log = free_port(3), tmp_path / "workers.log"
    flow.junk("made")
    flow.junk("objects")
    environ = {"KAFKA_BROKERS": flow.broker.address, "KAFKA_PREFIX": flow.prefix, "GATHERER": "example", "CHILDREN": "1"}
    environ |= {"WORKER_PORT": str(port), "WORKER_STALL": STALL, "LOG_FORMAT": "json", "LOG_TRACE": "true"}
    command = ["-m", "streams.cli", "worker", "catalog", "essence", "index", "--data", str(tmp_path / "data")]
    supervisor = flow.run(*command, **{f"HARVEST_{name}": value for name, value in environ.items()})
    try:
        for number, (stage, topic) in enumerate((("catalog", "made"), ("essence", "objects"))):
            until(port + number, "/readyz", ['"ok": true'], supervisor, log)
            until(port + number, "/livez", ['"progress": "ok"'], supervisor, log)
            wanted = [
                f'harvest_rejected_total{{reason="not a record",stage="{stage}"}} 1.0',
                f'harvest_lag_records{{partition="0",stage="{stage}",topic="{topic}"}} 0.0',
                f'harvest_records_total{{stage="{stage}",topic="rejected"}} 1.0',
                f'harvest_batch_seconds_count{{stage="{stage}"}} 1.0',
                "harvest_alive 1.0",
            ]
            until(port + number, "/metrics", wanted, supervisor, log)
        until(port + 2, "/readyz", ['"ok": true', '"index": "ok"'], supervisor, log)
    finally:
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(PATIENCE)
    assert supervisor.returncode == 0
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    wrote = [line for line in lines if line["event"] == "wrote"]
    assert {(line["stage"], line["topic"], line["record"]) for line in wrote} == {
        ("catalog", "rejected", "Rejected"),
        ("essence", "rejected", "Rejected"),
    }
    assert [line["event"] for line in lines if line["stage"] == "supervisor"][-1] == "stopped"


def test_lag_is_of_current_partitions_only() -> None:
    """Lag is reported only for the current partitions of a worker; an excused partition does not count as stalled."""
    health, metrics = Health(), Metrics()
    telling = WorkerTelemetry("catalog", "p-", 0.0, health, metrics, Logs(sys.stderr))
    telling.looked(
        {("p-made", 0): PartitionProgress((5, ""), 7, excused=True), ("p-made", 1): PartitionProgress((5, ""), 0, excused=False)}
    )
    assert metrics.lag.values() == {("catalog", "made", "0"): 7, ("catalog", "made", "1"): 0}
    assert health.alive() == Verdict({"progress": ""})
    telling.looked({("p-made", 0): PartitionProgress((5, ""), 7, excused=False)})
    telling.looked({("p-made", 0): PartitionProgress((5, ""), 7, excused=False)})
    assert health.alive().checks["progress"] == "no progress in made/0"
    telling.looked({("p-annotations", 1): PartitionProgress((0, ""), 0, excused=False)})
    assert metrics.lag.values() == {("catalog", "annotations", "1"): 0}
    assert metrics.event_age.values() == {("catalog", "annotations"): 0}
    assert health.alive().ok


def test_retention_of_inputs_is_reported() -> None:
    """The age at which the broker deletes records is a metric of each input that has one, beside the age of its records."""
    metrics = Metrics()
    WorkerTelemetry("catalog", "p-", 0.0, Health(), metrics, Logs(sys.stderr)).retains(["made"], 60.0)
    assert metrics.retention.values() == {("catalog", "made"): 60}


@pytest.fixture
def telling() -> WorkerTelemetry:
    """The telemetry of a stage that may stall for a minute."""
    return WorkerTelemetry("catalog", "p-", 60.0, Health(), Metrics(), Logs(sys.stderr))


def test_silent_broker_is_reported_after_half_stall(telling: WorkerTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without an answer of the broker for half of its stall time reports that, until the next answer."""
    begun = time.monotonic()
    telling.looked({})
    assert telling.broker() == ""
    monkeypatch.setattr("streams.kafka.worker.telemetry.monotonic", lambda: begun + 100)
    assert telling.broker().startswith("no broker has answered for")
    telling.looked({})
    assert telling.broker() == ""


def test_event_age_grows_while_a_partition_stalls(telling: WorkerTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event age is that of the oldest pending record: it grows while any partition stalls, and is 0 if none is pending."""
    ages: list[float] = []

    def at(second: int, *lags: tuple[int, int], worked: int | None = None) -> None:
        monkeypatch.setattr("streams.kafka.worker.telemetry.now_ms", lambda: second * 1000)
        if worked is not None:
            telling.worked("made", worked * 1000, 0.1)
        if lags:
            telling.looked({("p-made", n): PartitionProgress((at, ""), lag, excused=False) for n, (at, lag) in enumerate(lags)})
        ages.append(telling.metrics.event_age.values()["catalog", "made"])

    at(1_000, (5, 3), (5, 3))
    at(1_060, (5, 3), (5, 3))
    assert ages == [0, 60]
    # The second partition advances; the first stalls.
    at(1_100, worked=1_090)
    at(1_120, (5, 3), (7, 1))
    assert ages[2:] == [100, 120]
    # The first advances too: the pending records are about as old as the last one processed.
    at(1_130, (6, 2), (7, 1), worked=1_005)
    at(1_200, (6, 2), (7, 1))
    assert ages[4:] == [125, 195]
    at(1_210, (8, 0), (8, 0), worked=1_208)
    at(9_000, (8, 1), (8, 0))
    at(9_010, (8, 1), (8, 0))
    assert ages[6:] == [0, 0, 10]
    telling.looked({})
    assert telling.metrics.event_age.values() == {}


def test_index_changes_are_counted_by_outcome(telling: WorkerTelemetry) -> None:
    """Changes are counted by outcome; a count of 0 adds no outcome."""
    telling.indexed("main", "applied", 7)
    telling.indexed("main", "refused", 0)
    telling.indexed("main", "applied", 1)
    assert telling.metrics.index_items.values() == {("main", "applied"): 8}


class Moody:
    """An index that refuses one change, and later cannot be reached."""

    def __init__(self) -> None:
        self.reached = True

    def apply(self, changes: Sequence[Any], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """As `BrokerIndex.apply`."""
        if not self.reached:
            raise OSError("no node")
        return [Refused(change, "no") for change in changes[:1]]


def test_sink_counts_applied_refused_and_retried(telling: WorkerTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Applied, refused and retried changes are counted separately, which an alert relies on."""
    index = Moody()
    sink = IndexSink(Cluster("127.0.0.1:1"), "main", index, plain=SINGLE.plain)  # type: ignore[arg-type]
    sink.applier.saw = partial(telling.indexed, "main")
    written: list[Any] = []
    monkeypatch.setattr(sink.applier.letters, "send", written.extend)
    made = [Removed(oid=f"{n}", url="u", object_url="u", version=1, time=1, reason="gone") for n in range(3)]
    reads = [Read(Logged("broker.main", 0, n, 1, b"%d" % n, encode(change)), None) for n, change in enumerate(made)]
    assert sink.applier.apply({0: reads}) == {0: 3}
    index.reached = False
    with pytest.raises(OSError, match="no node"):
        sink.applier.apply({0: reads})
    assert telling.metrics.index_items.values() == {("main", "applied"): 2, ("main", "refused"): 1, ("main", "retried"): 3}
    assert len(written) == 1
