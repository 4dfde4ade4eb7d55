"""What `harvest run` reports about itself: probes, metrics, logs."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streams.cli.common import Failure
from streams.cli.serving import serve_health
from streams.config.settings import load
from streams.telemetry import Health, Metrics
from tests.servers.process import free_port

PATIENCE = 120
# Metrics that the sample tree must produce, each from another stage.
COUNTED = (
    'harvest_fetches_total{outcome="fetched"}',
    'harvest_dedup_answers_total{role="copy",stage="dedup.main"} 1.0',
    "harvest_rejected_total{",
    'harvest_index_items_total{broker="main"',
)


def ask(port: int, path: str) -> tuple[int, str]:
    """The status and the body of an answer; status 0 while nothing listens on the port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def lags(text: str) -> list[float]:
    """The lag of each stage in the metrics, in records."""
    return [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("harvest_lag_records{")]


def until(port: int, path: str, wanted: Callable[[str], bool], process: subprocess.Popen[bytes]) -> str:
    """Poll until the body is as wanted, and return it.

    Fails if the process ends first, or after PATIENCE seconds.
    """
    body = ""
    for _ in range(PATIENCE * 10):
        status, body = ask(port, path)
        if status == 200 and wanted(body):
            return body
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError(f"{path} is not as it should be: {body}")


@pytest.mark.slow
def test_service_reports_probes_metrics_and_logs(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`harvest run` is alive, becomes ready, serves metrics without paths, and traces each object by its version."""
    port = free_port()
    harvest("roots", "add", tree)
    (tree / "torn.zip").write_bytes(b"PK\3\4" + bytes(40))
    for name, value in (("WORKER_PORT", port), ("LOG_FORMAT", "json"), ("LOG_TRACE", "true")):
        monkeypatch.setenv(f"HARVEST_{name}", str(value))
    process = harvest.start("run")
    try:
        until(port, "/livez", lambda text: '"progress": "ok"' in text, process)
        until(port, "/readyz", lambda text: '"ok": true' in text, process)
        # An early count does not show what is still in transit: all metrics must exist, and no stage may lag.
        text = until(port, "/metrics", lambda text: all(part in text for part in COUNTED) and not any(lags(text)), process)
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert str(tree) not in text
    lines = [json.loads(line) for line in err.decode().splitlines()]
    assert lines[0]["event"].startswith("running on harvest-data")
    assert lines[-1]["event"] == "stopped"
    page = [line for line in lines if str(line.get("url", "")).endswith("/page.html") and line["topic"] != "crawl"]
    stages = ["frontier", "fetch", "essence", "essence", "catalog", "register.main", "register.main"]
    assert [line["stage"] for line in page] == stages
    assert len({line["version"] for line in page}) == 1


def test_port_in_use_is_an_error_of_one_line(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address in use is an error of one line, exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setenv("HARVEST_WORKER_PORT", str(other.getsockname()[1]))
        process = harvest.start("run", "--quiet")
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err.decode().startswith("harvest: worker.port: 127.0.0.1:")
    assert err.count(b"\n") == 1


@pytest.mark.parametrize(("level", "lines"), [("warning", 0), ("info", 2), ("debug", 2)])
def test_level_of_a_service(harvest: Any, monkeypatch: pytest.MonkeyPatch, level: str, lines: int) -> None:
    """`harvest run` logs its start and end from level info on, and nothing at all above it where nothing is wrong."""
    monkeypatch.setenv("HARVEST_LOG_LEVEL", level)
    monkeypatch.setenv("HARVEST_WORKER_PORT", str(port := free_port()))
    process = harvest.start("run")
    until(port, "/readyz", lambda text: '"ok": true' in text, process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert len([line for line in err.decode().splitlines() if "running on" in line or "stopped" in line]) == lines
    assert bool(err) == bool(lines)


def test_unknown_level_names_the_setting(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that does not exist is an error of one line, with the setting."""
    monkeypatch.setenv("HARVEST_LOG_LEVEL", "loud")
    (line,) = harvest("run", code=2).stderr.splitlines()
    assert line.startswith("harvest: HARVEST_LOG_LEVEL: ")
    assert "warning" in line


def test_workers_of_one_host_take_the_next_free_ports(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several ports each process takes the first free one and yields its address; without any, one line names the range."""
    first = free_port(3)
    monkeypatch.setenv("HARVEST_WORKER_PORT", str(first))
    monkeypatch.setenv("HARVEST_WORKER_PORTS", "3")
    found = load()
    with ExitStack() as held:
        yielded = [held.enter_context(serve_health(found, Health(), Metrics())) for _ in range(3)]
        assert yielded == [f", http://127.0.0.1:{first + number}/metrics" for number in range(3)]
        assert [ask(first + number, "/livez")[0] for number in range(3)] == [200] * 3
        refused = f"worker.port: 127.0.0.1:{first} to {first + 2}: Address already in use"
        with pytest.raises(Failure, match=refused), serve_health(found, Health(), Metrics()):
            pass
    with serve_health(found, Health(), Metrics()) as again:
        assert again == yielded[0]


@pytest.mark.slow
def test_first_line_of_a_service_names_its_port(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of a process has the address of its metrics, also where another one has taken the first port."""
    first = free_port(2)
    monkeypatch.setenv("HARVEST_WORKER_PORT", str(first))
    monkeypatch.setenv("HARVEST_WORKER_PORTS", "2")
    with socket.create_server(("127.0.0.1", first)):
        process = harvest.start("run", "--quiet")
        until(first + 1, "/livez", lambda _: True, process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert f"http://127.0.0.1:{first + 1}/metrics" in err.decode().splitlines()[0]


@pytest.mark.parametrize(
    ("ports", "line", "given"),
    [
        ("1", "fetch (port 9200), catalog (port 9201)", ["9200", "9201"]),
        ("5", "fetch, catalog", ["", ""]),
    ],
)
def test_stages_of_one_command_get_ports(
    harvest: Any, monkeypatch: pytest.MonkeyPatch, ports: str, line: str, given: list[str]
) -> None:
    """Without a range, each stage of a command has a port behind the first; with one, each takes its own from the range."""
    commands: list[list[str]] = []

    def supervise(stages: Sequence[str], command: Callable[[str], list[str]], note: Callable[[str], object]) -> int:
        commands.extend(command(stage) for stage in stages)
        return 0

    monkeypatch.setattr("streams.kafka.worker.supervisor.supervise", supervise)
    monkeypatch.setattr("streams.kafka.worker.preflight.prepare", lambda *_: None)
    monkeypatch.setattr("streams.cli.commands.worker._one_name", lambda _: None)
    settings = {"KAFKA_BROKERS": "127.0.0.1:1", "GATHERER": "example", "WORKER_PORT": "9200", "WORKER_PORTS": ports}
    for name, value in settings.items():
        monkeypatch.setenv(f"HARVEST_{name}", value)
    result = harvest("worker", "fetch", "catalog")
    assert result.stderr.splitlines()[0] == f"harvest: {line}; stop with Ctrl-C"
    assert [next((word[20:] for word in one if word.startswith("HARVEST_WORKER_PORT=")), "") for one in commands] == given
