"""A server as a child process: started, waited for, stopped.

Laws:
- It dies with the process that started it (PR_SET_PDEATHSIG), however that one ends.
- It is stopped by its own process id: asked first (SIGTERM), killed when it does not go.
- One that does not come up is stopped, and what it said last is told.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from streams.sandbox.seal import die_with

TRIES = 1_200
STEP = 0.1
"""How often a server is asked whether it is up, and the pause between; a machine that stands still is not held against it."""
GRACE = 20.0
"""Seconds to go in, once asked."""
LOGGING = """
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
"""What both servers say, and where (log4j2.properties): warnings, on standard output."""


class ServerError(Exception):
    """A server did not come up."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def give(folder: Path, user: pwd.struct_passwd) -> None:
    """Make a user the owner of a folder and of all in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    ready: Callable[[], bool],
    user: pwd.struct_passwd | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """A server that works in `folder` and logs to server.log there; inside the block it answers. Raises ServerError."""
    log = folder / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - one thread, and the call that it makes is safe
        )
    try:
        _wait(process, ready, log)
        yield
    finally:
        _stop(process)


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path) -> None:
    for _ in range(TRIES):
        if ready():
            return
        if process.poll() is not None:
            break
        time.sleep(STEP)
    said = log.read_text("utf-8", "replace")[-3000:]
    raise ServerError(f"{log.parent.name} did not come up (exit code {process.poll()}):\n{said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
