"""The supervisor: one process a stage, started again when it ends.

Strategy: a stage is a process of its own wherever it is run, so that groups are the same; here they are children of one. A worker
that finds itself in a state that a new start mends ends itself, and counts on whoever started it.

Laws:
- A stage that ends is started again, each time later, until it has run for a while.
- A stage that ends ENDS times within WITHIN seconds will not be mended by that: then all end, and the supervisor fails.
- Told to stop, it tells all, waits, and leaves none behind; children die with a supervisor that is killed.
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
"""Less than five starts take where no broker answers, each of which asks for ten seconds: that passes, and is waited for."""
BACK_OFF = 0.5
"""Seconds before the first new start; twice as long before each further one within WITHIN."""
GRACE = 30.0
"""Seconds that a stage has to leave in order."""
LOOK = 0.1


class Ward:
    """The process of one stage."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._command = command
        self._ended: deque[float] = deque(maxlen=ENDS)
        self._due = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            # Ctrl-C at a terminal is for the supervisor, which tells its children; twice told, they would not leave in order.
            process_group=0,
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
        )

    def look(self, note: Callable[[str], object], now: float) -> bool:
        """Start it again if it has ended and its time has come; says whether there is hope."""
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
        """Tell it to stop."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, until: float) -> None:
        """Wait for its end, and end it when it takes too long."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def supervise(stages: Sequence[str], command: Callable[[str], Sequence[str]], note: Callable[[str], object]) -> int:
    """Run the command of each stage until a signal comes; gives the exit code. For the main thread."""
    stops: list[int] = []

    def told(number: int, frame: FrameType | None) -> None:
        # No event: where this comes while the loop below holds the lock of one, both would wait for ever.
        stops.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    wards = [Ward(stage, command(stage)) for stage in stages]
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


def again(stage: str, options: Sequence[str]) -> list[str]:
    """The command that runs one stage with this very program."""
    return [sys.executable, "-m", "streams.cli", "worker", stage, *options]
