"""A forkserver that is started before its pool."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from streams.sandbox import early
from streams.sandbox.values import Done

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("killed", [False, True])
def test_early_forkserver_is_used_unless_dead(sandbox: Any, *, killed: bool) -> None:
    """The pool uses it, whatever the pool's limits are; if it is dead by then, the pool starts another."""
    early.begin("sandbox_targets:work", "sandbox_targets:load")
    begun = early._begun[-1]
    if killed:
        begun.process.kill()
        begun.process.wait()

    async def job(pool: Any) -> tuple[int, Any]:
        return pool.server_pid, await sandbox.ask(pool, b"echo 1")

    server, (_, outcome) = sandbox.use(job, files=50)
    assert isinstance(outcome, Done)
    assert (server == begun.process.pid) is not killed
    assert not early._begun


def test_early_forkserver_with_another_preload_is_ended(sandbox: Any) -> None:
    """An early forkserver with another preload is ended and not used."""
    early.begin("sandbox_targets:work", "sandbox_targets:missing")
    begun = early._begun[-1]
    assert [type(outcome) for _, outcome in sandbox.run(b"echo 1")] == [Done]
    assert begun.process.returncode is not None
    assert begun.control.fileno() < 0


UNTAKEN = """
from streams.sandbox import early
early.begin(early.WORK, early.PRELOAD)
print(early._begun[0].process.pid)
"""


def test_unused_early_forkserver_ends_with_its_parent(sandbox: Any) -> None:
    """An unused forkserver ends with the process that started it."""
    done = subprocess.run([sys.executable, "-c", UNTAKEN], cwd=ROOT, capture_output=True, text=True, check=True)
    until = time.monotonic() + 30
    while not sandbox.dead(int(done.stdout)) and time.monotonic() < until:
        time.sleep(0.01)
    assert sandbox.dead(int(done.stdout))
