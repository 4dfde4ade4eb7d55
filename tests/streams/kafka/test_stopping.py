"""Stopping of workers by SIGTERM: while they start, when their end fails, and when they do not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from typer.testing import CliRunner

from streams.cli.app import app
from streams.kafka.client.closing import close_consumer
from streams.kafka.worker.stopping import stoppable
from tests.servers.sharing import SESSION
from tests.streams.kafka.conftest import Broker


def python(code: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run([sys.executable, "-c", code, *words], check=False, capture_output=True, text=True)


def test_sigterm_ends_worker_that_has_not_begun() -> None:
    """SIGTERM ends a worker with 0 before its runner handles the signal; a handler that the runner installed stays."""
    done = python("""import os, signal
from streams.kafka.worker.stopping import stoppable
with stoppable():
    os.kill(os.getpid(), signal.SIGTERM)
raise SystemExit(3)""")
    assert (done.returncode, done.stderr) == (0, "")
    before = signal.getsignal(signal.SIGTERM)
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    try:
        with stoppable():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_thread_can_run_worker() -> None:
    """In a thread, which cannot handle signals, nothing is changed."""
    seen: list[object] = []

    def run() -> None:
        with stoppable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


@pytest.mark.parametrize("stage", ["catalog", "fetch", "index.main"])
def test_sigterm_right_after_start_ends_worker_with_0(stage: str, broker: Broker, tmp_path: Path) -> None:
    """A worker that gets SIGTERM as soon as it has said that it runs ends with 0, and without a word."""
    settings = {
        "GATHERER": "x",
        "KAFKA_BROKERS": broker.address,
        "KAFKA_PREFIX": f"{broker.topics.prefix}-",
        "KAFKA_PARTITIONS": "2",
    }
    environ = {f"HARVEST_{name}": value for name, value in settings.items()}
    assert CliRunner().invoke(app, ["topics", "apply"], env={SESSION: None, **environ}).exit_code == 0
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_")}
    command = [sys.executable, "-m", "streams.cli", "worker", stage, "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, env=plain | environ, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        assert worker.stderr.readline() == f"harvest: {stage}; stop with Ctrl-C\n"
        worker.send_signal(signal.SIGTERM)
        assert (worker.stderr.read(), worker.wait()) == ("", 0)


STARTS = """import asyncio, os, signal, sys, time
from streams.kafka.client.cluster import Cluster
from streams.kafka.decide import apps, client_workarounds
class Transport(client_workarounds.Transport):
    async def _create_topic(self, *given, **named):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(float(sys.argv[4]))
        await super()._create_topic(*given, **named)
apps.STARTING = float(sys.argv[5])
app = apps.application(sys.argv[2], Cluster(sys.argv[1]), sys.argv[3], 1)
app.transport = Transport(app.conf.broker, app)
app.Table("rows", partitions=1)
app.agent(app.topic(sys.argv[2] + "-inputs"))(lambda stream: stream)
begun = time.monotonic()
try:
    apps.runner(app).execute_from_commandline()
finally:
    print(app.up, time.monotonic() - begun < 30)"""
"""A stage that gets SIGTERM while it starts: BROKER GROUP FOLDER SECONDS, for which it goes on to start, and `STARTING`."""


@pytest.mark.parametrize(("seconds", "starting", "said"), [(0.5, 60.0, "True True\n"), (600.0, 0.5, "")], ids=["starts", "hangs"])
def test_stage_that_starts_can_be_stopped(seconds: float, starting: float, said: str, broker: Broker, tmp_path: Path) -> None:
    """A stage that gets SIGTERM while it starts completes its start, and ends with 0; if it cannot start, it ends without that.

    Without the first, Faust fails in one of its services that are starting, or never ends.
    """
    broker.topics.make("inputs", 1)
    done = python(STARTS, broker.address, f"{broker.topics.prefix}", tmp_path, str(seconds), str(starting))
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert "Traceback" not in done.stderr


def test_failure_of_stop_is_logged(tmp_path: Path) -> None:
    """A worker whose stop fails logs why, and ends with 1."""
    code = """import asyncio, sys
from streams.kafka.client.cluster import Cluster
from streams.kafka.decide.apps import application, runner
worker = runner(application("group", Cluster("127.0.0.1:1"), sys.argv[1], 1))
async def starts(): worker._setup_logging()
async def fails():
    await asyncio.sleep(0.1)
    raise RuntimeError("the reason")
worker.start = starts
worker._signal_stop_future = worker.loop.create_task(fails())
worker.execute_from_commandline()"""
    done = python(code, tmp_path)
    assert done.returncode == 1
    assert "Error while stopping" in done.stderr
    assert done.stderr.rstrip().endswith("RuntimeError: the reason")


def test_consumer_that_does_not_close_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """A consumer whose client never returns from its close is left after some time, with a warning; an error is raised."""
    assert close_consumer(lambda: None)
    with pytest.raises(KafkaException):
        close_consumer(lambda: (_ for _ in ()).throw(KafkaException("fails")))
    assert not caplog.messages
    never = threading.Event()
    assert not close_consumer(never.wait, 0.1)
    never.set()
    assert caplog.messages == ["the client of Kafka has not left its group within 0.1 s; it is left as it is"]


@pytest.mark.parametrize(("asked", "code"), [(True, 0), (False, 9)])
def test_worker_that_left_in_order_ends_at_once(asked: bool, code: int, tmp_path: Path) -> None:
    """A worker that has left in order ends with 0, whatever would happen while the interpreter ends; it returns if nobody asked."""
    done = python(
        """import atexit, os, sys
from pathlib import Path
from streams.kafka.worker import worker
def left(context):
    context.telling.stopping = lambda: sys.argv[2] == "True"
    print("left")
atexit.register(lambda: (sys.stdout.flush(), os._exit(9)))
sys.modules["runners"] = sys.modules["__main__"]
worker.RUNNERS = dict.fromkeys(worker.RUNNERS, "runners:left")
worker.partitions = lambda *_: 1
worker.run_stage("catalog", worker.WorkerSettings(brokers=("127.0.0.1:1",), folder=Path(sys.argv[1])))""",
        tmp_path,
        str(asked),
    )
    assert (done.returncode, done.stdout) == (code, "left\n"), done.stderr


def test_stop_is_limited() -> None:
    """A process that is still there some time after it was to stop ends with 1, and shows where its threads are."""
    done = python("""import time
from streams.kafka.worker.stopping import limit_stop
def waits_for_ever():
    time.sleep(600)
limit_stop(0.2)
waits_for_ever()""")
    assert done.returncode == 1
    assert "in waits_for_ever" in done.stderr
