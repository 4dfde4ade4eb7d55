"""Supervisor: runs one process per stage, and restarts it when it ends.

Strategy: a stage always has a process of its own, so that the consumer groups are the same everywhere; here they are children of
one process. A worker in a state that a restart repairs ends itself, and relies on its supervisor.

Laws:
- A stage that ends is restarted, with a growing delay, until it has run for a while.
- If a stage ends ENDS times within WITHIN seconds, restarting does not help: all stages are stopped, and the supervisor fails.
- On a stop signal it stops all stages, waits, and leaves none running; children die with a supervisor that is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

from streams.sandbox.seal import die_with

ENDS = 5
WITHIN = 40.0
"""Seconds; less than five starts take without a broker, each of which waits 10 s for one: a broker outage is waited out."""
BACK_OFF = 0.5
"""Seconds before the first restart; doubled for each further one within WITHIN."""
GRACE = 30.0
"""Seconds that a stage has for an orderly exit."""
LOOK = 0.1


class StageProcess:
    """The process of one stage."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._command = command
        self._ended: deque[float] = deque(maxlen=ENDS)
        self._due = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            # Ctrl-C at a terminal is for the supervisor, which signals its children; a second signal would prevent their orderly
            # exit.
            process_group=0,
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
        )

    def look(self, note: Callable[[str], object], now: float) -> bool:
        """Restart the process if it has ended and its delay is over; false if it ended too often."""
        if self.process is not None and (code := self.process.poll()) is not None:
            self.process = None
            self._ended.append(now)
            recent = [at for at in self._ended if now - at < WITHIN]
            if len(recent) >= ENDS:
                note(f"{self.name}: ended {ENDS} times within {WITHIN:.0f} s")
                return False
            wait = BACK_OFF * 2 ** (len(recent) - 1)
            note(f"{self.name}: ended with {code}; started again in {wait:g} s")
            self._due = now + wait
        if self.process is None and now >= self._due:
            self.start()
        return True

    def tell(self) -> None:
        """Send SIGTERM."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, until: float) -> None:
        """Wait until the process ends; kill it at time `until` (monotonic)."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def supervise(stages: Sequence[str], command: Callable[[str], Sequence[str]], note: Callable[[str], object]) -> int:
    """Run the command of each stage until a signal arrives; return the exit code. For the main thread."""
    stops: list[int] = []

    def told(number: int, frame: FrameType | None) -> None:
        # Not an Event: a signal that arrives while the loop below holds its lock would deadlock.
        stops.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    wards = [StageProcess(stage, command(stage)) for stage in stages]
    code = 0
    try:
        while not stops:
            if not all(ward.look(note, time.monotonic()) for ward in wards):
                code = 1
                break
            time.sleep(LOOK)
    finally:
        for ward in wards:
            ward.tell()
        until = time.monotonic() + GRACE
        for ward in wards:
            ward.wait(until)
    return code


def stage_command(stage: str, options: Sequence[str]) -> list[str]:
    """Return the command that runs one stage with this program."""
    return [sys.executable, "-m", "streams.cli", "worker", stage, *options]
