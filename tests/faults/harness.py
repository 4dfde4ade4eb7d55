"""`harvest gather` as a process of its own: started with a fault, killed, looked after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

GATHERER = "faults.test"
MAX_FILE = 64 << 20
SETTINGS = {
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
"""Small budgets, so that a bomb is found in a second; what may be trimmed is trimmed."""
PATIENCE = 60.0
"""Seconds in which the children of a killed process must be gone."""


class Ended(NamedTuple):
    """How a run ended."""

    code: int
    errors: str


class Run:
    """One `harvest gather` under way."""

    def __init__(self, data: Path, root: bytes, partitions: int, fault: str = "", first: str = "", **settings: str) -> None:
        """`first`: what its process does before anything else, as lines of Python."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HARVEST_")}
        environment |= {f"HARVEST_{k}": v for k, v in {**SETTINGS, **settings}.items()}
        environment |= {"HARVEST_FAULT": fault, "NO_COLOR": "1"}
        program = f"{first}\nfrom streams.cli import main\nmain()"
        arguments = ["gather", os.fsdecode(root), "--data", str(data), "--partitions", str(partitions), "--quiet"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], env=environment, stderr=subprocess.PIPE, text=True, errors="replace"
        )

    def wait(self, seconds: float = 200.0) -> Ended:
        """Its end; asserts that it leaves no process behind."""
        _, errors = self.process.communicate(timeout=seconds)
        assert not self.left_behind(), errors
        return Ended(self.process.returncode, errors)

    def killed_after(self, seconds: float) -> Ended:
        """Killed after that time, unless it ends before."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
        return self.wait()

    def children(self) -> list[int]:
        """The processes that parse for it, dead parents or not: the forkserver's command line ends with whose it is."""
        return [pid for pid, command in commands() if "streams.sandbox.server" in command and command[-1] == str(self.process.pid)]

    def left_behind(self) -> list[int]:
        """The children that do not go away."""
        end = time.monotonic() + PATIENCE
        while (left := self.children()) and time.monotonic() < end:
            time.sleep(0.02)
        return left


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
    """One run to its end."""
    return Run(data, root, partitions, fault, **settings).wait()
