"""Harvest as an operator runs it: commands with their settings, and `harvest worker` as one process, whose log is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from typer.testing import CliRunner, Result

from processors.identity import file_url
from streams.cli.app import app
from streams.sandbox.seal import die_with
from tests.servers import kafka, opensearch
from tests.servers.process import free_port
from tests.streams.kafka.own import Own
from tests.streams.kafka.runbook import PATIENCE, READS, STEP

LOG = 8_000
"""Characters of the workers' log that a failure shows."""
SHARED = {"KAFKA_PARTITIONS": "2", "GATHERER": "example", "CHILDREN": "1", "FRONTIER_BACKOFF": "50", "WORKER_STALL": "30"}
"""Settings of all. After an outage a member may wait 10 s for the end of a session, and its client 10 s before it connects again: a
standstill is longer than both."""


class Deployment:
    """Commands and workers of some stages (none: all), with settings by the names of their variables without HARVEST_."""

    def __init__(self, folder: Path, stages: Sequence[str], settings: Mapping[str, str]) -> None:
        self.data, self._log = folder / "data", folder / "workers.log"
        self._stages = stages
        self.settings = {**SHARED, "DATA": str(self.data), **settings}
        self.fault = ""
        """Value of HARVEST_FAULT for workers that are started from now on."""
        self.worker: subprocess.Popen[bytes] | None = None
        self._read_from = 0

    def _environ(self) -> dict[str, str]:
        return {f"HARVEST_{name}": value for name, value in self.settings.items()}

    def invoke(self, *words: str) -> Result:
        """Run a command in this process."""
        plain: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HARVEST_")}
        return CliRunner().invoke(app, words, env=plain | self._environ())

    def run(self, words: Sequence[str]) -> str:
        """Run a command, and return its output. Raises AssertionError if one fails that changes something."""
        result = self.invoke(*words)
        assert result.exit_code == 0 or " ".join(words).startswith(READS), (words, result.output, result.exception)
        return result.output

    def start(self) -> None:
        """Start the workers; the log is read from here on."""
        assert self.worker is None
        plain = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_")}
        faults = {"HARVEST_FAULT": self.fault} if self.fault else {}
        with self._log.open("ab") as out:
            self._read_from = out.tell()
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "streams.cli", "worker", *self._stages],
                env={**plain, **self._environ(), **faults},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
            )

    def stop(self) -> None:
        """Stop the workers in order, if they run."""
        if self.worker is not None:
            self.worker.send_signal(signal.SIGTERM)
            code = self.worker.wait()
            assert code == 0, f"exit code {code}: {self.log()[-LOG:]}"
        self.worker = None

    def restart(self) -> None:
        """Restart the workers."""
        self.stop()
        self.start()

    def log(self) -> str:
        """Return what the workers wrote since their start, or since `forget_log`."""
        with self._log.open("rb") as file:
            file.seek(self._read_from)
            return file.read().decode()

    def forget_log(self) -> None:
        """Read the log from here on."""
        self._read_from = self._log.stat().st_size

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until something is true. Raises AssertionError with the log."""
        until = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < until, self.log()[-LOG:]
            time.sleep(STEP)


class Plant(Deployment):
    """All stages over a tree of files, on a broker and an OpenSearch node of their own, which end with `running`."""

    def __init__(self, folder: Path, registry: str, running: ExitStack) -> None:
        self.folder, self.tree = folder, folder / "files"
        for part in (self.tree, folder / "kafka", folder / "opensearch"):
            part.mkdir()
            part.chmod(0o755)
        self.broker = Own(partial(kafka.from_jars, folder / "kafka"))
        running.callback(self.broker.close)
        self.node = Own(partial(opensearch.from_jars, folder / "opensearch", free_port()))
        running.callback(self.node.close)
        addresses = {"KAFKA_BROKERS": self.broker.address, "KAFKA_REGISTRY": registry, "INDEX_URL": self.node.address}
        super().__init__(folder, (), addresses)
        self.bodies = self.data / "blobs"
        self._files = 0

    def visit_more(self, size: int = 0) -> None:
        """Add a file with at least `size` bytes, and visit the root."""
        self._files += 1
        lines = f"whale number {self._files}\n" * (size // 15 + 1)
        (self.tree / f"{self._files}.txt").write_text(lines, "utf-8")
        self.run(["roots", "add", str(self.tree)])

    def wait_complete(self) -> None:
        """Wait until the index has all text files of the tree, and nothing else."""
        wanted = self.wanted()
        self.wait(lambda: self.found() == wanted)

    def wanted(self) -> set[str]:
        """Return the URLs of all text files of the tree."""
        return {file_url(os.fsencode(path), folder=False) for path in self.tree.glob("*.txt")}

    def found(self, *options: str) -> set[str]:
        """Return the URLs that a search finds; none while it fails."""
        result = self.invoke("search", "whale", "--json", "--limit", "1000", *options)
        return {json.loads(line)["url"] for line in result.stdout.splitlines()} if result.exit_code == 0 else set()
