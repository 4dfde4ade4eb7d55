"""Outcomes of tasks: good, faulty and hostile ones."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from typing import Any

import pytest

from streams.sandbox.pool import TICKS
from streams.sandbox.task import Clock
from streams.sandbox.values import Crashed, Done, Failed, Flooded, Lost, OutOfMemory, TimedOut
from streams.sandbox.wire import DONE, FRAME


def test_frames_arrive_complete_and_in_order(sandbox: Any) -> None:
    """Frames of any length arrive complete and in order."""
    sizes = [0, 1, 5_000_000, 7, 65_536, 0, 300_000]
    [(frames, outcome)] = sandbox.run(b"chunks " + json.dumps(sizes).encode())
    assert ([len(f) for f in frames], outcome) == (sizes, Done())


@pytest.mark.parametrize("size", [0, 100, 65_531, 65_536, 3_000_000])
def test_requests_of_any_size_arrive_complete(sandbox: Any, size: int) -> None:
    """A request larger than the socket buffer arrives complete, and so does the next one."""
    text = os.urandom(size)
    done = sandbox.run(b"echo " + text, b"echo next")
    assert done == [([text], Done()), ([b"next"], Done())]


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_body_is_read_from_its_start(sandbox: Any, size: int) -> None:
    """A body is passed as a descriptor, read from its start whatever its position, and left open for its owner."""
    text = os.urandom(size)
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()

        async def job(pool: Any) -> Any:
            return [await sandbox.ask(pool, b"body " + b"z" * 200_000, file.fileno()) for _ in range(3)]

        done = sandbox.use(job)
        os.fstat(file.fileno())
    assert done == [([b"0 " + text], Done())] * 3


def test_closed_body_raises_oserror(sandbox: Any) -> None:
    """A closed descriptor raises OSError from run(), and the child continues."""

    async def job(pool: Any) -> Any:
        with pytest.raises(OSError, match="Bad file descriptor"):
            await pool.run(b"body", 999_999)
        return await sandbox.ask(pool, b"echo alive")

    assert sandbox.use(job) == ([b"alive"], Done())


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"abort a.tar#b/c", Crashed(signal.SIGABRT, 0, "a.tar#b/c")),
        (b"segfault x", Crashed(signal.SIGSEGV, 0, "x")),
        (b"leave 3", Crashed(0, 3, "leaving")),
        (b"leave 0", Crashed(0, 0, "leaving")),
        (b"leave 77", OutOfMemory("leaving")),
        (b"hog", OutOfMemory("a hog")),
        (b"hog_disguised raise", OutOfMemory("a hog in disguise")),
        (b"hog_disguised", Done(strained=True)),
        (b"chunks [1, 2000000]", Flooded("", "frame")),
        (b"flood", Flooded("a flood", "total")),
        (b"forge [4000000000, 1]", Flooded("a forger", "frame")),
        (b"forge [100, 63]", Crashed(0, 0, "a forger")),
    ],
)
def test_each_failure_has_its_outcome(sandbox: Any, request_: bytes, expected: object) -> None:
    """Each kind of failure has its outcome with the culprit, and the next task gets a working child."""
    limits = {"frame": 1 << 20, "total": 1 << 21, "memory": 64 << 20}
    (_, outcome), after = sandbox.run(request_, b"echo after", **limits)
    assert (outcome, after) == (expected, ([b"after"], Done()))


def test_task_without_progress_times_out(sandbox: Any) -> None:
    """A task without progress ends at the deadline with the culprit, and the next task gets a working child."""

    async def job(pool: Any) -> Any:
        looping = asyncio.ensure_future(pool.run(b"loop"))
        await sandbox.late(pool, "a loop")
        return await looping, await sandbox.ask(pool, b"echo after")

    assert sandbox.use(job) == (TimedOut("a loop", "deadline"), ([b"after"], Done()))


def test_deadline_passes_in_real_time(sandbox: Any) -> None:
    """The deadline also passes in real time."""
    [(_, outcome)] = sandbox.run(b"loop", deadline=0.5)
    assert (type(outcome), outcome.which) == (TimedOut, "deadline")


def test_frames_before_the_culprit_arrive(sandbox: Any) -> None:
    """Frames emitted some time before the culprit started arrive, whatever kills the child."""
    [(frames, outcome)] = sandbox.run(b"abort second")
    assert frames == [b"frame of the first"]
    assert outcome.culprit == "second"


def test_whole_task_has_a_limit(sandbox: Any) -> None:
    """A task that reports progress forever ends at the limit of a whole task."""

    async def job(pool: Any) -> Any:
        clock = Clock()
        # Its time starts only when it runs.
        clock.spent = -1e6
        looping = asyncio.ensure_future(pool.run(b"lively_loop", clock=clock))
        await sandbox.at(pool, "round and round")
        clock.spent = 0.0
        return await looping

    assert sandbox.use(job, whole=0.8) == TimedOut("round and round", "whole")


def test_processor_time_has_a_limit(sandbox: Any) -> None:
    """A task that computes forever ends at the limit of CPU time, whatever the other limits are."""
    [(_, outcome)] = sandbox.run(b"lively_loop", cpu=1)
    assert outcome == TimedOut("round and round", "cpu")


def test_slow_task_with_progress_is_allowed(sandbox: Any) -> None:
    """A task may take much longer than the deadline if frames keep coming."""

    async def job(pool: Any) -> Any:
        frames: list[bytes] = []
        slow, seen = asyncio.ensure_future(pool.run(b"slowly 30", None, frames.append)), 0
        while not slow.done():
            # Half a deadline after each frame.
            for _ in range(TICKS // 2 if len(frames) > seen else 0):
                sandbox.tick(pool)
            seen = len(frames)
            await asyncio.sleep(0.01)
        return len(frames), await slow

    assert sandbox.use(job) == (30, Done())


@pytest.mark.parametrize("kind", [b"ValueError", b"SystemExit", b"KeyboardInterrupt"])
def test_exception_of_the_target_is_failed_with_traceback(sandbox: Any, kind: bytes) -> None:
    """An exception of the target ends as Failed with the traceback, and the same child continues."""
    before, (_, failed), after = sandbox.run(b"pid", b"raise " + kind, b"pid")
    assert isinstance(failed, Failed)
    assert "do_raise" in failed.traceback
    assert (failed.culprit, failed.reason) == ("raising", f"failed: {kind.decode()}: a bug")
    assert before == after


def test_forged_messages_end_only_their_child(sandbox: Any) -> None:
    """Forged messages end at most the child that sent them; later tasks are done."""

    async def job(pool: Any) -> Any:
        assert await pool.run(b"forge [100, %d]" % DONE) == Done()
        behind = asyncio.ensure_future(sandbox.ask(pool, b"echo 1"))
        await asyncio.sleep(0)
        await sandbox.late(pool, "a forger")
        await behind
        forged = asyncio.Event()
        forging = asyncio.ensure_future(pool.run(b"forge [100, %d]" % FRAME, None, lambda _: forged.set()))
        await forged.wait()
        await sandbox.late(pool, "a forger")
        await forging
        return await sandbox.ask(pool, b"echo 2")

    assert sandbox.use(job) == ([b"2"], Done())


def test_reasons_are_bounded(sandbox: Any) -> None:
    """Every outcome has a reason of at most 200 characters."""
    damaged = [Crashed(11, 0, "x"), Crashed(64, 0, ""), TimedOut(""), OutOfMemory(""), Flooded("", "frame")]
    outcomes = [Done(), *damaged, Failed("é" * 900, ""), Lost("x" * 900)]
    assert all(0 < len(outcome.reason) <= 200 for outcome in outcomes)
    assert Crashed(11, 0, "x").reason == "crashed: SIGSEGV"


def test_concurrent_runs_get_their_own_outcomes(sandbox: Any) -> None:
    """Of hundreds of concurrent runs, good and failing ones, each ends with its own frames and outcome."""
    kinds = {0: b"abort me", 1: b"raise ValueError", 2: b"leave 9"}

    async def job(pool: Any) -> Any:
        return await asyncio.gather(*(sandbox.ask(pool, kinds.get(n % 40, b"echo %d" % n)) for n in range(400)))

    for n, (frames, outcome) in enumerate(sandbox.use(job, size=3)):
        if n % 40 in kinds:
            assert isinstance(outcome, Crashed | Failed)
        else:
            assert (frames, outcome) == ([b"%d" % n], Done())


def test_request_longer_than_a_frame_is_refused(sandbox: Any) -> None:
    """A request longer than a frame raises ValueError and does not end a child."""

    async def job(pool: Any) -> Any:
        with pytest.raises(ValueError, match="pass a body"):
            await pool.run(b"echo " + bytes(2_000))
        return await sandbox.ask(pool, b"echo alive")

    assert sandbox.use(job, frame=1_000) == ([b"alive"], Done())
