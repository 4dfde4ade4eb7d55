"""The gateway of `harvest run --serve`: a child process, since the pipeline holds the interpreter most of the time.

Laws:
- It never ends the run: if it cannot start, because its port is in use for example, the run says so once and goes on.
- Once it has answered, it is restarted whenever it ends, with a growing delay.
- It ends with the run in any case: in order when the run is stopped, killed by the kernel when the run is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from streams.cli.common import printable
from streams.sandbox.seal import die_with

if TYPE_CHECKING:
    from streams.config.settings import Settings

BACK_OFF = 0.5
"""Seconds before a restart; doubled for each further one ..."""
LONGEST = 60.0
"""... up to this, and from the beginning again after a process that lived as long."""
GRACE = 15.0
"""Seconds that it has for requests in progress when the run ends."""
ADDRESS = 1_000
"""Maximum length of the address that it reports."""
ELSEWHERE = ("HARVEST_KAFKA_BROKERS", "HARVEST_INDEX_URL")
"""Settings that are empty for the gateway of a run: it serves what the run makes, and that is in the data folder."""


def gateway_command(found: Settings, config: Path | None) -> list[str]:
    """Return the command that serves the data folder of a run."""
    # -P: otherwise a folder named streams in the working folder would be imported in place of this program.
    options = [f"--data={found.data}", f"--host={found.serve.host}", f"--port={found.serve.port}"]
    return [sys.executable, "-P", "-m", "streams.cli", "serve", *options, *([f"--config={config}"] if config else [])]


class GatewayProcess:
    """The process, started by the first `look`. For the main thread: its end would end the process.

    `command`: takes `--ready-fd=N` too, for the address that is written there once requests are answered. `say`: prints a line.
    """

    def __init__(self, command: Sequence[str], say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._command = command
        self._say = say
        self._clock = clock
        self._ready = -1
        """Where the process writes its address; -1: it has done so, or there is no process."""
        self._address = b""
        self._answered = False
        """Whether any process has answered."""
        self._started = self._due = 0.0
        """When the process was started, and when it is started next; infinity: never."""
        self._pause = BACK_OFF
        self.process: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Start the process, or start it again if it has ended and its delay is over; report its address. Never waits."""
        if self.process is not None:
            code = self.process.poll()
            self._read_address()
            if code is not None:
                self._ended(code)
        if self.process is None and self._clock() >= self._due:
            self._start()

    def stop(self) -> None:
        """Stop the process, in order if it does so in time."""
        self._due = inf
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        self._close()

    def _start(self) -> None:
        self._ready, theirs = os.pipe()
        os.set_blocking(self._ready, False)
        self._address, self._started = b"", self._clock()
        try:
            self.process = subprocess.Popen(
                [*self._command, f"--ready-fd={theirs}"],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs,),
                env={**os.environ, **dict.fromkeys(ELSEWHERE, "")},
                # Ctrl-C at a terminal is for the run, which stops this process in order.
                process_group=0,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._close()
            self._give_up(getattr(error, "strerror", None) or str(error))
        finally:
            os.close(theirs)

    def _read_address(self) -> None:
        """Report the address once it has arrived as a whole."""
        if self._ready < 0:
            return
        try:
            self._address += os.read(self._ready, ADDRESS)
        except BlockingIOError:
            return
        if self._address.endswith(b"\n") or len(self._address) > ADDRESS:
            self._answered = True
            self._say(f"search at {printable(self._address.decode('utf-8', 'replace').strip())}; stop with Ctrl-C")
            self._close()

    def _ended(self, code: int) -> None:
        now, self.process = self._clock(), None
        self._close()
        if code > 0 and not self._answered:
            self._give_up(f"it ended with {code}")
            return
        if now - self._started >= LONGEST:
            self._pause = BACK_OFF
        self._say(f"the gateway ended with {code}; started again in {self._pause:g} s")
        self._due, self._pause = now + self._pause, min(2 * self._pause, LONGEST)

    def _give_up(self, reason: str) -> None:
        self._due = inf
        self._say(f"the gateway cannot start ({printable(reason)}); the run goes on without it")

    def _close(self) -> None:
        if self._ready >= 0:
            os.close(self._ready)
            self._ready = -1
