"""A server as a child process: started, waited for, stopped.

Laws:
- It dies with the process that started it (PR_SET_PDEATHSIG), however that one ends.
- It is stopped by its own process id: asked first (SIGTERM), killed when it does not go.
- One that does not come up is stopped, and what it said last is told; `tried` starts it again.
- Its ports are its own before it listens on them, and while it is down: nobody who asks the kernel for any port gets them.
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
"""How often a server is asked whether it is up, and the pause between; a machine that stands still is not held against it."""
GRACE = 20.0
"""Seconds to go in, once asked."""
STARTS = 3
"""How often a server is started before it is given up."""
LOWEST, HIGHEST = 10_000, 32_768
"""Ports that are looked at, but for those that the kernel gives away by itself."""
LASTING = "HARVEST_TEST_LASTING"
"""The variable that says that servers are to work for long: then they may take time to compile themselves well, and have the memory
for it, as those of operators do."""
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


_claims: list[ExitStack] = []


def free_port(count: int = 1) -> int:
    """The first of so many ports of 127.0.0.1 in a row that nobody listens on, and that nobody else is told of while we live.

    None is a port that the kernel gives to a client that calls somebody: such a client would keep a server from coming back, and
    one that calls a server that is down would, once in a while, be given that very port, and find itself.
    """
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    highest = min(given, HIGHEST) if given > LOWEST + 1_000 else HIGHEST
    while True:
        first = LOWEST + secrets.randbelow(highest - LOWEST - count)
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    claim = held.enter_context(socket.socket(socket.AF_UNIX))
                    # A name without a file, which goes with its process.
                    claim.bind(f"\0harvest-port-{port}")
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _claims.append(held.pop_all())
            return first


def tried(start: Callable[[], AbstractContextManager[str]], running: ExitStack) -> str:
    """What a server says once it is up; one that does not come up is started again, with other ports. Raises ServerError."""
    for _ in range(STARTS - 1):
        try:
            return running.enter_context(start())
        except ServerError:
            # What it needs was taken, perhaps, or the machine stood still.
            continue
    return running.enter_context(start())


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
