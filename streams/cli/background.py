"""A command in a process of its own beside the gateway: one at a time, with its state.

Its memory and its time of the interpreter are not those of the process that answers requests. It ends with that process; if it is
killed meanwhile nothing is lost, because the commands that are run here exchange their result in one step.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from threading import Lock, Thread

from sinks.gateway.admin.ports import AdministrationError, Task
from streams.cli.common import printable

MAX_LINE = 500
"""Maximum characters of the command's last line that are kept."""
GRACE = 10.0
"""Seconds that the command has to end."""
NAME = "harvest: "
"""Prefix of the lines of commands."""


class BackgroundCommand:
    """Runs one command of Harvest at a time. For any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._task: Task | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: Thread | None = None

    def start(self, arguments: Sequence[str], shown: str) -> None:
        """Start a command; `shown`: how a user would type it. Raises AdministrationError while another one runs."""
        with self._lock:
            if self._task is not None and self._task.state == "running":
                raise AdministrationError(f"{self._task.name} is running: one such command runs at a time", 409)
            process = subprocess.Popen(
                # -P: otherwise a folder named streams in the working folder would be imported in place of this program.
                [sys.executable, "-P", "-m", "streams.cli", *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
            self._process, self._task = process, Task(shown, "running", "", int(time.time() * 1_000))
            self._thread = Thread(target=self._watch, args=(process, self._task), name="background command", daemon=True)
            self._thread.start()

    def task(self) -> Task | None:
        """Return the command that runs, or the last one; None if there was none."""
        return self._task

    def close(self) -> None:
        """End the command."""
        process, thread = self._process, self._thread
        if process is None or thread is None:
            return
        process.terminate()
        thread.join(GRACE)
        if thread.is_alive():
            process.kill()
            thread.join()

    def _watch(self, process: subprocess.Popen[bytes], task: Task) -> None:
        """Read what the command writes until it ends, and keep its last line."""
        last = ""
        assert process.stderr is not None  # noqa: S101 - for mypy: it was opened above
        with process.stderr as lines:
            while line := lines.readline(MAX_LINE):
                last = printable(line.decode("utf-8", "replace").strip().removeprefix(NAME)) or last
        code = process.wait()
        self._task = task._replace(state="failed" if code else "done", detail=last)
