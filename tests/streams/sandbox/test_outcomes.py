"""What becomes of a task: good, bad and hostile ones."""

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


def test_frames_come_back_in_order(sandbox: Any) -> None:
    """Frames of any length arrive whole and in the order in which they were given."""
    sizes = [0, 1, 5_000_000, 7, 65_536, 0, 300_000]
    [(frames, outcome)] = sandbox.run(b"chunks " + json.dumps(sizes).encode())
    assert ([len(f) for f in frames], outcome) == (sizes, Done())


@pytest.mark.parametrize("size", [0, 100, 65_531, 65_536, 3_000_000])
def test_requests_of_any_size(sandbox: Any, size: int) -> None:
    """A request that does not fit into the socket at once arrives whole, and so does its neighbour."""
    text = os.urandom(size)
    done = sandbox.run(b"echo " + text, b"echo next")
    assert done == [([text], Done()), ([b"next"], Done())]


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_body_is_read_from_its_start(sandbox: Any, size: int) -> None:
    """A body goes as a descriptor, is read from its start wherever it stood, and stays open for its owner."""
    text = os.urandom(size)
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()

        async def job(pool: Any) -> Any:
            return [await sandbox.ask(pool, b"body " + b"z" * 200_000, file.fileno()) for _ in range(3)]

        done = sandbox.use(job)
        os.fstat(file.fileno())
    assert done == [([b"0 " + text], Done())] * 3


def test_a_closed_body_is_the_callers_mistake(sandbox: Any) -> None:
    """A descriptor that is not open raises OSError from run(), and the child goes on."""

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
def test_what_ends_a_task(sandbox: Any, request_: bytes, expected: object) -> None:
    """Each way to fail has its outcome, with the culprit, and the next task finds a working child."""
    limits = {"frame": 1 << 20, "total": 1 << 21, "memory": 64 << 20}
    (_, outcome), after = sandbox.run(request_, b"echo after", **limits)
    assert (outcome, after) == (expected, ([b"after"], Done()))


def test_silence_ends_a_task(sandbox: Any) -> None:
    """A task that gives no sign of life ends at the deadline, with the culprit, and the next task finds a working child."""

    async def job(pool: Any) -> Any:
        looping = asyncio.ensure_future(pool.run(b"loop"))
        await sandbox.late(pool, "a loop")
        return await looping, await sandbox.ask(pool, b"echo after")

    assert sandbox.use(job) == (TimedOut("a loop", "deadline"), ([b"after"], Done()))


def test_the_deadline_is_real_time(sandbox: Any) -> None:
    """The deadline passes by itself."""
    [(_, outcome)] = sandbox.run(b"loop", deadline=0.5)
    assert (type(outcome), outcome.which) == (TimedOut, "deadline")


def test_frames_are_lost_for_a_moment_only(sandbox: Any) -> None:
    """What was given some time before the culprit was begun arrives, however the child dies after it."""
    [(frames, outcome)] = sandbox.run(b"abort second")
    assert frames == [b"frame of the first"]
    assert outcome.culprit == "second"


def test_whole_task_has_a_limit(sandbox: Any) -> None:
    """A task that says for ever that it goes on ends at the limit for a whole task."""

    async def job(pool: Any) -> Any:
        clock = Clock()
        # Its time begins when it has begun.
        clock.spent = -1e6
        looping = asyncio.ensure_future(pool.run(b"lively_loop", clock=clock))
        await sandbox.at(pool, "round and round")
        clock.spent = 0.0
        return await looping

    assert sandbox.use(job, whole=0.8) == TimedOut("round and round", "whole")


def test_processor_time_has_a_limit(sandbox: Any) -> None:
    """A task that only computes ends at the limit of CPU time, whatever the clocks allow."""
    [(_, outcome)] = sandbox.run(b"lively_loop", cpu=1)
    assert outcome == TimedOut("round and round", "cpu")


def test_slow_is_allowed(sandbox: Any) -> None:
    """A task may take far longer than the deadline, as long as frames keep coming."""

    async def job(pool: Any) -> Any:
        frames: list[bytes] = []
        slow, seen = asyncio.ensure_future(pool.run(b"slowly 30", None, frames.append)), 0
        while not slow.done():
            # Half a deadline behind each sign of life.
            for _ in range(TICKS // 2 if len(frames) > seen else 0):
                sandbox.tick(pool)
            seen = len(frames)
            await asyncio.sleep(0.01)
        return len(frames), await slow

    assert sandbox.use(job) == (30, Done())


@pytest.mark.parametrize("kind", [b"ValueError", b"SystemExit", b"KeyboardInterrupt"])
def test_a_bug_is_told_with_its_traceback(sandbox: Any, kind: bytes) -> None:
    """Whatever the target raises is our own bug: the traceback comes back, and the same child goes on."""
    before, (_, failed), after = sandbox.run(b"pid", b"raise " + kind, b"pid")
    assert isinstance(failed, Failed)
    assert "do_raise" in failed.traceback
    assert (failed.culprit, failed.reason) == ("raising", f"failed: {kind.decode()}: a bug")
    assert before == after


def test_a_forged_end_does_not_break_the_parent(sandbox: Any) -> None:
    """Messages that nobody asked for end the child that sent them at the latest; later tasks are done."""

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


def test_many_at_once_each_get_their_own(sandbox: Any) -> None:
    """Hundreds of runs at once, good and bad ones mixed, end each with what is its own."""
    kinds = {0: b"abort me", 1: b"raise ValueError", 2: b"leave 9"}

    async def job(pool: Any) -> Any:
        return await asyncio.gather(*(sandbox.ask(pool, kinds.get(n % 40, b"echo %d" % n)) for n in range(400)))

    for n, (frames, outcome) in enumerate(sandbox.use(job, size=3)):
        if n % 40 in kinds:
            assert isinstance(outcome, Crashed | Failed)
        else:
            assert (frames, outcome) == ([b"%d" % n], Done())


def test_a_request_longer_than_a_frame_is_refused(sandbox: Any) -> None:
    """What is too long for a request raises ValueError and costs no child."""

    async def job(pool: Any) -> Any:
        with pytest.raises(ValueError, match="pass a body"):
            await pool.run(b"echo " + bytes(2_000))
        return await sandbox.ask(pool, b"echo alive")

    assert sandbox.use(job, frame=1_000) == ([b"alive"], Done())
