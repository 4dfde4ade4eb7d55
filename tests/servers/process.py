"""Starts a server as a child process, waits until it is ready, and stops it.

Laws:
- It ends with the process that started it (PR_SET_PDEATHSIG), however that process ends.
- It is stopped by its own process ID: first SIGTERM, then SIGKILL if it does not exit.
- If it does not become ready, it is stopped, and the error has the end of its log; `tried` starts it again.
- Its ports stay reserved before it listens on them and while it is down: the kernel assigns them to no other process.
"""

from __future__ import annotations

import os
import pwd
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from streams.sandbox.seal import die_with

TRIES = 1_200
STEP = 0.1
"""Seconds between two of the `TRIES` readiness checks. Checks are counted, not time, so a machine that pauses costs nothing."""
GRACE = 20.0
"""Seconds between SIGTERM and SIGKILL."""
STARTS = 3
"""Number of attempts to start a server."""
LOWEST, HIGHEST = 10_000, 32_768
"""Range of ports that are tried, without those that the kernel assigns to clients."""
LASTING = "HARVEST_TEST_LASTING"
"""The environment variable that marks servers as long-running: their JVM may then take time to compile its code well, and gets as
much memory as in production.
"""
LOGGING = """
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
"""Logging of both servers (log4j2.properties): warnings, on standard output."""


class ServerError(Exception):
    """A server did not become ready."""


_claims: list[ExitStack] = []


def free_port(count: int = 1) -> int:
    """Reserve `count` consecutive free ports of 127.0.0.1 for the life of this process; return the first.

    None of them is in the range that the kernel assigns to outgoing connections: such a connection would keep a server from
    restarting, and a client that connects to a stopped server would sometimes get that very port and connect to itself.
    """
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    highest = min(given, HIGHEST) if given > LOWEST + 1_000 else HIGHEST
    while True:
        first = LOWEST + secrets.randbelow(highest - LOWEST - count)
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    claim = held.enter_context(socket.socket(socket.AF_UNIX))
                    # An abstract socket has no file and disappears with its process.
                    claim.bind(f"\0harvest-port-{port}")
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _claims.append(held.pop_all())
            return first


def tried(start: Callable[[], AbstractContextManager[str]], running: ExitStack) -> str:
    """Start a server and return its address; one that does not become ready is restarted on other ports. Raises ServerError."""
    for _ in range(STARTS - 1):
        try:
            return running.enter_context(start())
        except ServerError:
            # Its ports may have been taken, or the machine may have paused.
            continue
    return running.enter_context(start())


def give(folder: Path, user: pwd.struct_passwd) -> None:
    """Change the owner of a folder and of everything in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    ready: Callable[[], bool],
    user: pwd.struct_passwd | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Run a server in `folder`, logging to server.log there; yields its process ID once it answers. Raises ServerError."""
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
        yield process.pid
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
