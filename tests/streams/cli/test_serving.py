"""What `harvest run` reports about itself: probes, metrics, logs."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
