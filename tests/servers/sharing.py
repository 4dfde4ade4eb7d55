"""Starts each server once for all processes of a test session.

Strategy: the session belongs to its controlling process (with xdist, the controller of the workers), which puts its process ID
and a folder into the environment that workers inherit. The first process that needs a server starts a keeper: a separate process
that has the server as its child and waits for the end of the session.

Laws:
- A server starts at its first use, under a lock, so that no second one is started.
- It ends with the session, however that ends: `end` stops each keeper by its process ID and waits for it. If the session is
  killed, the kernel notifies the keeper (pidfd); if the keeper is killed, the kernel stops the server (PR_SET_PDEATHSIG).
- Workers do not matter: one that crashes, or ends before the others, changes nothing.
- A server that could not be started is tried again, on other ports; if that fails, all its users get the same error.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType

from tests.deploy.tools import ToolError
from tests.servers import containers, kafka, object_store, opensearch, tika
from tests.servers.artefacts import ArtefactError
from tests.servers.process import GRACE, ServerError, tried

ROOT = Path(__file__).resolve().parent.parent.parent
SESSION = "HARVEST_TEST_SESSION"
"""The environment variable with the controlling process and the folder, as PID:FOLDER."""
KINDS: dict[str, ModuleType] = {"kafka": kafka, "object_store": object_store, "opensearch": opensearch, "tika": tika}
STEP = 0.05


def begin() -> None:
    """Make this process the controller of a new session."""
    folder = Path(tempfile.mkdtemp(prefix="harvest-servers-"))
    # For servers that run as another user.
    folder.chmod(0o755)
    os.environ[SESSION] = f"{os.getpid()}:{folder}"


def session() -> tuple[int, Path]:
    """The process ID of the session's controller, and the session's folder. Raises KeyError outside of a session."""
    pid, _, folder = os.environ[SESSION].partition(":")
    return int(pid), Path(folder)


def end() -> None:
    """Stop the servers of the session and wait for their end. Does nothing in a process that is not the controller."""
    controller, folder = session()
    if controller != os.getpid():
        return
    for said in folder.glob("*.keeper"):
        with contextlib.suppress(ProcessLookupError):
            keeper = os.pidfd_open(int(said.read_text("ascii")))
            signal.pidfd_send_signal(keeper, signal.SIGTERM)
            select.select([keeper], [], [], 2 * GRACE)
            os.close(keeper)
    shutil.rmtree(folder, ignore_errors=True)
    del os.environ[SESSION]


def address(name: str) -> str:
    """The address of a server of this session; starts the server if it is not running. Raises ServerError."""
    controller, folder = session()
    answer = folder / f"{name}.json"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.is_file():
            _start(name, folder, controller, answer)
    told: dict[str, str] = json.loads(answer.read_text("utf-8"))
    if "error" in told:
        raise ServerError(told["error"])
    return told["address"]


def keeper(name: str) -> int:
    """The process ID of a server's keeper; the server is its child, unless it runs in a container. Raises OSError."""
    return int((session()[1] / f"{name}.keeper").read_text("ascii"))


def last_words(name: str) -> str:
    """The end of a server's log; empty if the server logs elsewhere."""
    try:
        return (session()[1] / name / "server.log").read_text("utf-8", "replace")[-3_000:]
    except OSError:
        return ""


def _start(name: str, folder: Path, controller: int, answer: Path) -> None:
    command = [sys.executable, "-m", "tests.servers", "keep", name, str(folder), str(controller)]
    with (folder / f"{name}.log").open("wb") as log:
        keeper = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=True, start_new_session=True
        )
    (folder / f"{name}.keeper").write_text(str(keeper.pid), "ascii")
    while not answer.is_file():
        if keeper.poll() is not None:
            raise ServerError(f"the keeper of {name} ended:\n{(folder / f'{name}.log').read_text('utf-8', 'replace')[-3000:]}")
        time.sleep(STEP)


def keep(name: str, folder: Path, controller: int) -> None:
    """Keep a server running until its session ends or SIGTERM arrives."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    session_end = os.pidfd_open(controller)
    own = folder / name
    own.mkdir()
    try:
        with contextlib.ExitStack() as running:
            _say(folder / f"{name}.json", {"address": tried(partial(_server(name), own), running)})
            select.select([session_end], [], [])
    except (ServerError, ArtefactError, ToolError) as error:
        _say(folder / f"{name}.json", {"error": str(error)})
    finally:
        shutil.rmtree(own, ignore_errors=True)
        if select.select([session_end], [], [], 0)[0]:
            # The session was killed: no other process cleans up.
            shutil.rmtree(folder, ignore_errors=True)


def _server(name: str) -> Callable[[Path], AbstractContextManager[str]]:
    ways = ("from_container", "from_jars", "from_build") if containers.taken() else ("from_jars", "from_build")
    start: Callable[[Path], AbstractContextManager[str]]
    start, *_ = (getattr(KINDS[name], way) for way in ways if hasattr(KINDS[name], way))
    return start


def _leave(signum: int, frame: FrameType | None) -> None:
    signal.signal(signum, signal.SIG_IGN)
    raise SystemExit(0)


def _say(path: Path, what: dict[str, str]) -> None:
    """Write a file atomically: it is complete as soon as it exists."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(what), "utf-8")
    part.rename(path)
