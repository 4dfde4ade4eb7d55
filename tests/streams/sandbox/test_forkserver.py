"""Life cycle of the forkserver: killed, stopped, or failing at the start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streams.sandbox import forkserver as forkserver_module
from streams.sandbox.pool import LOADING
from streams.sandbox.values import Done, Lost, SandboxError, TimedOut

ROOT = Path(__file__).resolve().parents[3]


def test_tasks_continue_after_the_forkserver_dies(sandbox: Any) -> None:
    """After the forkserver dies, running tasks without delivered frames and queued tasks are done by the next one."""

    async def job(pool: Any) -> Any:
        await sandbox.ask(pool, b"echo x")
        tasks = [asyncio.ensure_future(sandbox.ask(pool, b"slowly 10")) for _ in range(3)]
        await asyncio.sleep(0)
        os.kill(pool.server_pid, signal.SIGKILL)
        return await asyncio.gather(*tasks)

    assert [(len(frames), outcome) for frames, outcome in sandbox.use(job, size=2)] == [(10, Done())] * 3


def test_repeatedly_killed_forkservers_are_replaced(sandbox: Any) -> None:
    """Two forkservers killed during the start of the pool and two during a task are replaced, and the task is done."""

    async def kill_two(pool: Any) -> None:
        killed = 0
        for _ in range(2):
            while pool.server_pid in (0, killed):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
            killed = pool.server_pid
            os.kill(killed, signal.SIGKILL)

    async def main() -> Any:
        pool = sandbox.pool()
        starting = asyncio.ensure_future(pool.start())
        await asyncio.sleep(0)
        await kill_two(pool)
        await starting
        task = asyncio.ensure_future(sandbox.ask(pool, b"slowly 10"))
        await asyncio.sleep(0)
        await kill_two(pool)
        frames, outcome = await task
        await pool.close()
        return len(frames), outcome

    assert asyncio.run(main()) == (10, Done())


def test_task_with_frames_is_lost_with_its_forkserver(sandbox: Any) -> None:
    """A task with delivered frames is not repeated if its forkserver dies: it ends as Lost."""

    async def job(pool: Any) -> Any:
        return await pool.run(b"slowly 500", None, lambda _: os.kill(pool.server_pid, signal.SIGKILL) if pool.server_pid else None)

    assert isinstance(sandbox.use(job), Lost)


def test_stopped_forkserver_is_replaced(sandbox: Any) -> None:
    """A forkserver that does not react to a request to kill a child, as after SIGSTOP, is killed; its child has timed out."""

    async def job(pool: Any) -> Any:
        stopped = pool.server_pid
        looping = asyncio.ensure_future(sandbox.ask(pool, b"loop"))
        waiting = asyncio.ensure_future(sandbox.ask(pool, b"echo next"))
        await sandbox.at(pool, "a loop")
        os.kill(stopped, signal.SIGSTOP)
        await sandbox.late(pool, "a loop")
        while pool.server_pid == stopped:
            sandbox.tick(pool)
            await asyncio.sleep(0.01)
        return (await looping)[1], await waiting

    assert sandbox.use(job) == (TimedOut("a loop", "deadline"), ([b"next"], Done()))


def test_forkserver_stopped_during_the_preload_is_replaced(sandbox: Any) -> None:
    """A forkserver that is not ready after LOADING seconds is killed, and another is started."""

    async def main() -> Any:
        pool = sandbox.pool()
        starting = asyncio.ensure_future(pool.start())
        await asyncio.sleep(0)
        stopped = pool.server_pid
        os.kill(stopped, signal.SIGSTOP)
        pool.wait(LOADING / 2)
        assert not sandbox.dead(stopped)
        pool.wait(LOADING / 2)
        await starting
        done = await sandbox.ask(pool, b"echo x")
        await pool.close()
        return done, sandbox.dead(stopped)

    assert asyncio.run(main()) == (([b"x"], Done()), True)


@pytest.mark.parametrize("cancelled", [1, 2])
def test_cancelled_task_kills_a_stopped_forkserver(sandbox: Any, monkeypatch: pytest.MonkeyPatch, cancelled: int) -> None:
    """A task that is cancelled before or while it closes the pool leaves no process behind."""
    monkeypatch.setattr(forkserver_module, "PATIENCE", 0.1)

    async def main() -> bool:
        begun = asyncio.Event()

        async def user() -> None:
            async with sandbox.pool() as pool:
                left.append(pool.server_pid)
                os.kill(pool.server_pid, signal.SIGSTOP)
                begun.set()
                await asyncio.sleep(60)

        left: list[int] = []
        task = asyncio.ensure_future(user())
        await begun.wait()
        for _ in range(cancelled):
            task.cancel()
            await asyncio.sleep(0.01)
        await asyncio.wait([task])
        return task.cancelled() and sandbox.dead(left[0])

    assert asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"preload": "load_badly"}, "no such library"),
        ({"preload": "missing"}, "missing"),
        ({"target": "missing"}, "missing"),
        ({"preload": "load_nothing"}, "the forkserver died"),
    ],
)
def test_failing_preload_raises_at_the_start(sandbox: Any, options: dict[str, str], told: str) -> None:
    """A failing preload or target raises SandboxError from start(), with the traceback."""
    with pytest.raises(SandboxError, match=told):
        sandbox.run(b"echo x", **options)


ENDED = """
import os, signal, socket
from streams.sandbox.server import Server
mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server = Server(its, lambda *_: None)
mine.close()
server.serve()
del server
os.kill(os.getpid(), signal.SIGCHLD)
"""


def test_sigchld_at_exit_prints_nothing() -> None:
    """SIGCHLD while the forkserver itself exits prints nothing."""
    done = subprocess.run([sys.executable, "-c", ENDED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
