"""How the forkserver comes and goes: killed, stopped, or wrong from the beginning."""

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


def test_a_dead_forkserver_is_started_again(sandbox: Any) -> None:
    """Tasks in progress and tasks that wait are done by the next forkserver, if nothing of them was handed over."""

    async def job(pool: Any) -> Any:
        await sandbox.ask(pool, b"echo x")
        tasks = [asyncio.ensure_future(sandbox.ask(pool, b"slowly 10")) for _ in range(3)]
        await asyncio.sleep(0)
        os.kill(pool.server_pid, signal.SIGKILL)
        return await asyncio.gather(*tasks)

    assert [(len(frames), outcome) for frames, outcome in sandbox.use(job, size=2)] == [(10, Done())] * 3


def test_forkservers_killed_one_after_the_other(sandbox: Any) -> None:
    """Two that die while the pool is started, and two under one task, are replaced: whoever kills them, the task is done."""

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


def test_a_task_with_frames_is_lost_with_the_forkserver(sandbox: Any) -> None:
    """A task of which frames were handed over is not run twice behind its caller's back: it ends as lost."""

    async def job(pool: Any) -> Any:
        return await pool.run(b"slowly 500", None, lambda _: os.kill(pool.server_pid, signal.SIGKILL) if pool.server_pid else None)

    assert isinstance(sandbox.use(job), Lost)


def test_a_forkserver_that_is_stopped_is_replaced(sandbox: Any) -> None:
    """One that kills nobody when it is told to, as where someone has stopped it, is killed itself; its child met the deadline."""

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


def test_a_forkserver_that_is_stopped_while_it_loads_is_replaced(sandbox: Any) -> None:
    """One that is not ready after a long time is killed, and another started."""

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
def test_a_forkserver_that_is_stopped_is_killed_by_a_task_that_is_cancelled(
    sandbox: Any, monkeypatch: pytest.MonkeyPatch, cancelled: int
) -> None:
    """Whoever is told to end while he ends it, or before, leaves no process behind either."""
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
def test_a_bad_preload_is_told_at_the_start(sandbox: Any, options: dict[str, str], told: str) -> None:
    """A preload or a target that fails raises SandboxError from start(), with the traceback."""
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


def test_a_child_that_ends_after_its_server() -> None:
    """The end of a child that comes while the forkserver itself is ending is no news, and puts nothing on the terminal."""
    done = subprocess.run([sys.executable, "-c", ENDED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
