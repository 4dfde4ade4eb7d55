"""Starts a forkserver process early, so that it loads the modules of the children while its parent loads its own.

Imports next to nothing, for the same reason.

    begin(WORK, PRELOAD)            # at the first line of a command
    ...
    started = take(WORK, PRELOAD)   # the one begun, or a new one

Start it from a thread that lives as long as the pool: the kernel sends the death signal when the *thread* that started the process
ends. A forkserver that is begun and never taken ends with this process.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from typing import NamedTuple

WORK, PRELOAD = "streams.edges.parse_job:work", "streams.edges.parse_job:preload"
"""The function that children run on an object, and the function that loads their modules."""
KEPT = ("PATH", "LANG", "LANGUAGE", "TZ", "HOME", "TMPDIR", "MAGIC", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
KEPT_PREFIXES = ("LC_", "PYTHON", "MALLOC_")
"""Prefixes of environment variables to keep: no possible secret is passed to a process that parses hostile input."""
SINGLE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Libraries that come with numpy start threads when loaded; threads do not survive a fork."""


class Started(NamedTuple):
    """A forkserver process that has received its configuration."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    target: str
    preload: str


def environment() -> dict[str, str]:
    """Return the environment of the forkserver."""
    kept = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith(KEPT_PREFIXES)} | SINGLE
    # The same modules as here, and nothing from the current folder of the user.
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return kept


def start(target: str, preload: str) -> Started:
    """Start a forkserver. Raises OSError."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs:
            # Sent before the process exists, so that sending cannot fail separately from the start.
            control.send(json.dumps({"path": sys.path, "target": target, "preload": preload}).encode())
            command = [sys.executable, "-P", "-m", "streams.sandbox.server", str(theirs.fileno()), str(os.getpid())]
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # The terminal's SIGINT goes to the parent alone, which decides what to do.
                start_new_session=True,
                env=environment(),
            )
    except BaseException:
        control.close()
        raise
    return Started(process, control, target, preload)


_begun: list[Started] = []


def begin(target: str, preload: str) -> None:
    """Start a forkserver for a later `take`. If that fails, `take` tries again."""
    with suppress(OSError):
        _begun.append(start(target, preload))


def take(target: str, preload: str) -> Started:
    """Return the forkserver that was begun for this target, if it is alive, or a new one. Raises OSError."""
    while _begun:
        found = _begun.pop()
        if (found.target, found.preload) == (target, preload) and found.process.poll() is None:
            return found
        found.control.close()
        found.process.kill()
        found.process.wait()
    return start(target, preload)
