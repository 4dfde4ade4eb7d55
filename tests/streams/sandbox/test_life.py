"""Life cycle of children and of the pool."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from streams.sandbox import pool as pool_module
from streams.sandbox.plain import PlainPool
from streams.sandbox.pool import TICKS
from streams.sandbox.values import Done, Lost, TimedOut

ROOT = Path(__file__).resolve().parents[3]

PARENT = """
import asyncio, os, signal, sys
sys.path.insert(0, {here!r})
signal.signal(signal.SIGINT, lambda *_: None)
from streams.sandbox.pool import Pool
async def main():
    shown = asyncio.Event()
    async with Pool("sandbox_targets:work", 2) as pool:
        def show(frame):
            children = ""
            while len(children.split()) < 2:
                children = open(f"/proc/{{pool.server_pid}}/task/{{pool.server_pid}}/children").read()
            print(pool.server_pid, children, flush=True)
            shown.set()
        other = asyncio.ensure_future(pool.run(b"slowly 20"))
        loop = asyncio.ensure_future(pool.run({request!r}, None, show))
        await shown.wait()
        print(await other, flush=True)
        await loop
asyncio.run(main())
"""


def children(pid: int) -> list[int]:
    """The child process ids of a single-threaded process."""
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def eventually(holds: Callable[[], bool]) -> bool:
    """Poll until the condition is true; return False after half a minute."""
    for _ in range(3_000):
        if holds():
            return True
        time.sleep(0.01)
    return False


def test_child_is_replaced_after_a_number_of_tasks(sandbox: Any) -> None:
    """A child is replaced after the configured number of tasks, without an effect on their outcomes."""
    done = sandbox.run(*[b"pid"] * 7, tasks=3)
    pids = [frames[0] for frames, _ in done]
    assert [len(set(part)) for part in (pids[:3], pids[3:6], pids[6:], pids)] == [1, 1, 1, 3]
    assert {outcome for _, outcome in done} == {Done()}


def test_child_is_replaced_after_memory_growth(sandbox: Any) -> None:
    """A child whose memory has grown beyond the limit is replaced."""
    done = sandbox.run(b"grow 1000", b"grow 30000000", b"pid", growth=20_000_000)
    first, second, third = [frames[0] for frames, _ in done]
    assert first == second != third


def test_child_killed_while_idle_is_replaced(sandbox: Any) -> None:
    """A child killed between two tasks does not fail a task."""

    async def job(pool: Any) -> Any:
        for _ in range(3):
            await sandbox.ask(pool, b"pid")
            [pid] = children(pool.server_pid)
            os.kill(pid, signal.SIGKILL)
            yield_ = await sandbox.ask(pool, b"echo next")
            assert yield_ == ([b"next"], Done())

    sandbox.use(job)


def test_task_is_lost_if_no_child_can_be_set_up(sandbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no child can be set up, a task ends as Lost instead of waiting forever."""
    monkeypatch.setattr(pool_module, "PAUSE", 0.001)
    [(_, outcome)] = sandbox.run(b"echo x", preload="load_sabotage")
    assert outcome == Lost("a child ended while it was set up (status 78)")


def test_cancelling_kills_the_child(sandbox: Any) -> None:
    """A cancelled run kills its child; a cancelled queued run leaves the queue; the others are done."""

    async def job(pool: Any) -> Any:
        begun = asyncio.Event()
        looping = asyncio.ensure_future(pool.run(b"loop", None, lambda _: begun.set()))
        await begun.wait()
        [pid] = children(pool.server_pid)
        waiting = [asyncio.ensure_future(sandbox.ask(pool, b"echo %d" % n)) for n in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        looping.cancel()
        ended = await asyncio.gather(looping, *waiting, return_exceptions=True)
        return sandbox.dead(pid), [type(e) if isinstance(e, BaseException) else e for e in ended]

    cancelled = asyncio.CancelledError
    assert sandbox.use(job) == (True, [cancelled, ([b"0"], Done()), cancelled, ([b"2"], Done())])


def test_close_ends_all_tasks_and_processes(sandbox: Any) -> None:
    """close() ends running and queued tasks as Lost and leaves no process; run() then raises RuntimeError."""

    async def job(pool: Any) -> Any:
        begun = asyncio.Event()
        tasks = [asyncio.ensure_future(pool.run(b"loop", None, lambda _: begun.set())) for _ in range(3)]
        await begun.wait()
        server = pool.server_pid
        pids = [server, *children(server)]
        await pool.close()
        await pool.close()
        with pytest.raises(RuntimeError, match="not open"):
            await pool.run(b"echo x")
        return pids, await asyncio.gather(*tasks)

    pids, outcomes = sandbox.use(job)
    assert outcomes == [Lost("the pool was closed")] * 3
    assert eventually(lambda: all(map(sandbox.dead, pids)))


def test_pending_consumer_pauses_frames_and_deadline(sandbox: Any) -> None:
    """While the awaitable of on_frame is pending, no further frame and no deadline occurs; then all arrive, in order."""

    async def job(pool: Any) -> Any:
        frames: list[bytes] = []
        let = asyncio.Event()

        async def slowly(frame: bytes) -> None:
            frames.append(frame.strip())
            if len(frames) == 1:
                await let.wait()

        run = asyncio.ensure_future(pool.run(b"count 100", None, slowly))
        while not frames:
            await sandbox.ask(pool, b"echo other")
        await sandbox.ask(pool, b"slowly 20")
        for _ in range(3 * TICKS):
            sandbox.tick(pool)
        held = len(frames)
        let.set()
        return held, await run, frames

    assert sandbox.use(job, size=2) == (1, Done(), [b"%d" % n for n in range(100)])


@pytest.mark.parametrize("later", [False, True])
def test_exception_of_the_consumer_is_raised_by_run(sandbox: Any, later: bool) -> None:
    """An exception of on_frame, direct or awaited, is raised by run(), and the pool continues."""

    async def fails(frame: bytes) -> None:
        raise LookupError("mine")

    def fails_at_once(frame: bytes) -> None:
        raise LookupError("mine")

    async def job(pool: Any) -> Any:
        with pytest.raises(LookupError, match="mine"):
            await pool.run(b"count 50", None, fails if later else fails_at_once)
        return await sandbox.ask(pool, b"echo alive")

    assert sandbox.use(job) == ([b"alive"], Done())


def test_blocked_event_loop_times_out_no_child(sandbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event loop that is blocked for longer than the deadline does not time out its children."""

    async def job(pool: Any) -> Any:
        loop = asyncio.get_running_loop()
        now, lost = loop.time, [0.0]
        # Each frame advances the loop's clock by two deadlines.
        monkeypatch.setattr(loop, "time", lambda: now() + lost[0])

        def held_up(frame: bytes) -> None:
            lost[0] += 2 * pool.limits.deadline

        return await pool.run(b"slowly 20", None, held_up)

    assert sandbox.use(job) == Done()


def test_pool_works_on_uvloop(sandbox: Any) -> None:
    """The pool works on uvloop too: frames, crashes, timeouts, cancellation."""

    async def main() -> Any:
        # Only the task that must time out has the short deadline.
        async with sandbox.pool(size=2) as pool, sandbox.pool(deadline=0.5) as short:
            requests = [(pool, b"abort x"), (short, b"loop"), (pool, b"count 30"), (pool, b"echo %s" % bytes(1_000_000))]
            ended = await asyncio.gather(*(sandbox.ask(at, request) for at, request in requests))
            begun = asyncio.Event()
            looping = asyncio.ensure_future(pool.run(b"loop", None, lambda _: begun.set()))
            await begun.wait()
            looping.cancel()
            after = await sandbox.ask(pool, b"echo after")
            return [type(outcome).__name__ for _, outcome in ended], len(ended[2][0]), looping.cancelled(), after

    assert uvloop.run(main()) == (["Crashed", "TimedOut", "Done", "Done"], 30, True, ([b"after"], Done()))


def test_blocking_calls_give_the_same_outcomes(sandbox: Any) -> None:
    """Blocking calls without an event loop give the same outcomes, one task at a time."""
    with PlainPool("sandbox_targets:work", preload="sandbox_targets:load") as pool:
        frames: list[bytes] = []
        assert [
            pool.run(b"echo 1", None, frames.append),
            pool.run(b"leave 1").reason,
            pool.run(b"echo 2", None, frames.append),
        ] == [
            Done(),
            "crashed: the parser left with status 1",
            Done(),
        ]
    assert frames == [b"1", b"2"]


def parent(request: bytes, here: str) -> subprocess.Popen[str]:
    """Start a program in a process group of its own, with a pool of two children."""
    command = [sys.executable, "-c", PARENT.format(here=here, request=request)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT)


def test_sigkill_of_the_parent_leaves_no_child(sandbox: Any) -> None:
    """If the parent is killed, the forkserver and its children end too, also busy ones."""
    with parent(b"loop", str(Path(__file__).parent)) as program:
        assert program.stdout
        pids = [int(p) for p in program.stdout.readline().split()]
        program.kill()
    assert len(pids) == 3
    assert eventually(lambda: all(map(sandbox.dead, pids)))


def test_sigint_does_not_end_the_children() -> None:
    """SIGINT to the parent's process group does not end the children: a parent that ignores it gets its outcome."""
    with parent(b"slowly 1", str(Path(__file__).parent)) as program:
        assert program.stdout
        program.stdout.readline()
        os.killpg(program.pid, signal.SIGINT)
        assert "Done" in program.stdout.read()
    assert program.returncode == 0


def test_deadline_ends_only_the_silent_child(sandbox: Any) -> None:
    """A silent child is killed while another reports progress, and only that one."""

    async def job(pool: Any) -> Any:
        heard = asyncio.Event()
        silent = asyncio.ensure_future(pool.run(b"loop"))
        await sandbox.at(pool, "a loop")
        lively = asyncio.ensure_future(pool.run(b"slowly 1000", None, lambda _: heard.set()))
        while not silent.done():
            await heard.wait()
            heard.clear()
            sandbox.tick(pool)
            await asyncio.sleep(0)
        done = lively.done()
        lively.cancel()
        return await silent, done

    assert sandbox.use(job, size=2) == (TimedOut("a loop", "deadline"), False)
