"""Commands of harvest as processes that may be started with a fault, killed, and checked for what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from streams.cli.app import app
from streams.sandbox.seal import die_with

GATHERER = "faults.test"
MAX_FILE = 64 << 20
SETTINGS = {
    # Trees change at random, also by half: what is in doubt has tests of its own.
    "FRONTIER_DOUBT": "false",
    "GATHERER": GATHERER,
    "RETENTION": "0",
    "CHILDREN": "2",
    "FETCH_MAX_FILE": str(MAX_FILE),
    "ESSENCE_LIMITS_ENTRIES": "1000",
    "ESSENCE_LIMITS_BYTES": str(256 << 20),
    "ESSENCE_LIMITS_RATIO": "50",
    "ESSENCE_LIMITS_RATIO_FROM": str(4 << 20),
    "ESSENCE_LIMITS_DEPTH": "8",
    "ESSENCE_LIMITS_MEMORY": str(1 << 20),
    "SANDBOX_MEMORY": str(256 << 20),
}
"""Small budgets, so that a bomb is found within a second, and no retention, so that everything old is trimmed."""
PATIENCE = 60.0
"""Seconds within which the children of a killed process must end."""


class Ended(NamedTuple):
    """Exit code and standard error of a run."""

    code: int
    errors: str


def words(data: Path, root: bytes, partitions: int) -> list[str]:
    """The command line of a run, without the program."""
    return ["gather", os.fsdecode(root), "--data", str(data), "--partitions", str(partitions), "--quiet"]


class Command:
    """A running command of harvest; it ends with this process."""

    def __init__(self, arguments: Sequence[str], fault: str = "", first: str = "", **settings: str) -> None:
        """Start the command; `first` is Python code that its process executes first."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HARVEST_")}
        environment |= {f"HARVEST_{k}": v for k, v in {**SETTINGS, **settings}.items()}
        environment |= {"HARVEST_FAULT": fault, "NO_COLOR": "1"}
        program = f"{first}\nfrom streams.cli import main\nmain()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
        )

    def wait(self, seconds: float = 200.0) -> Ended:
        """Wait for the end; assert that no process is left."""
        _, errors = self.process.communicate(timeout=seconds)
        assert not self.left_behind(), errors
        return Ended(self.process.returncode, errors)

    def killed_after(self, seconds: float) -> Ended:
        """Kill the process after this time, unless it ends before."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
        return self.wait()

    def children(self) -> list[int]:
        """The process ids of its parser processes, also after its end: the forkserver's command line ends with the parent's id."""
        return [pid for pid, command in commands() if "streams.sandbox.server" in command and command[-1] == str(self.process.pid)]

    def left_behind(self) -> list[int]:
        """The children that have not ended after PATIENCE."""
        end = time.monotonic() + PATIENCE
        while (left := self.children()) and time.monotonic() < end:
            time.sleep(0.02)
        return left


class Run(Command):
    """A running `harvest gather`."""

    def __init__(self, data: Path, root: bytes, partitions: int, fault: str = "", first: str = "", **settings: str) -> None:
        """Start the run; `first` is Python code that its process executes first."""
        super().__init__(words(data, root, partitions), fault, first, **settings)


def commands() -> Iterator[tuple[int, list[str]]]:
    """Process id and command line of every process."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                command = Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
            if command:
                yield int(name), command.decode(errors="replace").rstrip("\0").split("\0")


def gather(data: Path, root: bytes, partitions: int, fault: str = "", **settings: str) -> Ended:
    """Run `harvest gather` to its end."""
    return Run(data, root, partitions, fault, **settings).wait()


def gather_here(data: Path, root: bytes, partitions: int, **settings: str) -> Ended:
    """Run `harvest gather` to its end in this process, with the forkserver that its runs share."""
    return harvest_here(*words(data, root, partitions), **settings)


def harvest_here(*arguments: str | Path, **settings: str) -> Ended:
    """Run a command in this process."""
    plain: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HARVEST_")}
    ours = {f"HARVEST_{name}": value for name, value in {**SETTINGS, **settings}.items()}
    result = CliRunner(env={**plain, **ours}).invoke(app, list(map(str, arguments)))
    return Ended(result.exit_code, result.stderr)
