"""`harvest` takes the settings of the cluster as they are: topics, workers, index and bodies, and no secret anywhere."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.cli.app import app
from streams.sandbox.seal import die_with
from tests.servers.fixtures import TIMEOUT
from tests.servers.operators_cluster import OperatorsCluster
from tests.servers.process import free_port

pytestmark = [pytest.mark.slow(60), pytest.mark.xdist_group("operators_cluster")]
WORDS = ("quillwort", "horsetail", "spleenwort")
PORTS = 30
"""Enough for all stages of a worker."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Texts of 200 kB, whose bodies are too large for the log, and a short one."""
    folder = tmp_path / "tree"
    folder.mkdir()
    for seed, word in enumerate(WORDS):
        text = " ".join(random.Random(seed).choices(WORDS[: seed + 1], k=20_000))
        (folder / f"{word}.txt").write_text(text, "utf-8")
    (folder / "short.txt").write_text("a moss\n", "utf-8")
    return folder


@pytest.fixture
def environment(operators_cluster: OperatorsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of the cluster alone, in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith(("HARVEST_", "AWS_"))]:
        monkeypatch.delenv(variable)
    return {**operators_cluster.environment, "HARVEST_GATHERER": "test"}


def harvest(environment: Mapping[str, str], *arguments: str) -> str:
    """The output of a command in this process, which succeeds."""
    result = CliRunner().invoke(app, arguments, env=dict(environment))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@contextmanager
def worker(environment: Mapping[str, str], name: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run `harvest worker` with a data folder and a log of its own; it ends in order with the block."""
    command = [sys.executable, "-m", "streams.cli", "worker", "--data", name]
    own = {**os.environ, **environment, "HARVEST_WORKER_PORT": str(port)}
    with open(f"{name}.log", "ab") as log:
        process = subprocess.Popen(
            command,
            env=own,
            stdout=log,
            stderr=log,
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def hits(environment: Mapping[str, str], data: str) -> set[str]:
    """The names of all files in the index; none before there is one."""
    result = CliRunner().invoke(app, ["search", "*", "--json", "--data", data], env=dict(environment))
    lines = result.stdout.splitlines() if result.exit_code == 0 else []
    return {json.loads(line)["url"].rpartition("/")[2] for line in lines}


def metrics(port: int) -> str:
    """The metrics of all stages of a worker."""
    pages = []
    for stage in range(PORTS):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port + stage}/metrics", timeout=TIMEOUT) as answer:
                pages.append(answer.read().decode())
        except OSError:
            break
    return "".join(pages)


def test_workers_without_a_shared_folder_fill_the_index(
    environment: dict[str, str], operators_cluster: OperatorsCluster, tree: Path, tmp_path: Path
) -> None:
    """Two workers with folders of their own gather a tree; large bodies are in the bucket, and nothing written has a secret."""
    ports = [free_port(PORTS), free_port(PORTS)]
    wanted = {path.name for path in tree.iterdir()}
    written = harvest(environment, "topics", "apply") + harvest(environment, "roots", "add", str(tree))
    with ExitStack() as running:
        workers = [running.enter_context(worker(environment, f"worker{port}", port)) for port in ports]
        while hits(environment, "search") != wanted:
            assert [one.poll() for one in workers] == [None, None], "".join(log.read_text() for log in tmp_path.glob("*.log"))
            time.sleep(0.5)
        pages = [metrics(port) for port in ports]
        written += CliRunner().invoke(app, ["doctor", "--data", "search"], env=environment).output
    assert [one.returncode for one in workers] == [0, 0]
    assert all("harvest_" in page for page in pages)
    bodies = {path.rpartition("/")[0] for path in operators_cluster.buckets.keys(operators_cluster.bucket) if path.count("/") == 3}
    assert len(bodies) == len(WORDS)
    assert any("_bulk" in request for request in operators_cluster.search.passed())
    written += "".join([*pages, *(log.read_text() for log in tmp_path.glob("*.log"))])
    assert not [secret for secret in operators_cluster.secrets if secret in written]


def test_same_settings_are_a_file(
    environment: dict[str, str], operators_cluster: OperatorsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `harvest.toml` the settings reach the same servers, and the file has no secret."""
    assert environment
    (tmp_path / "harvest.toml").write_text(operators_cluster.toml, "utf-8")
    assert not [secret for secret in operators_cluster.secrets if secret in operators_cluster.toml]
    found = CliRunner().invoke(app, ["doctor"]).output
    assert f"kafka: {operators_cluster.kafka.login}: SASL_SSL, SCRAM-SHA-512, user harvest" in found
    assert "ok      object storage: bodies can be stored and read" in found
