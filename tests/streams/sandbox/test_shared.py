"""A pool that several threads share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streams.sandbox.shared import SharedPool
from streams.sandbox.values import Crashed, Done, Lost, Outcome, SandboxError, SandboxLimits

HERE = str(Path(__file__).parent)
TARGET, LOAD = "sandbox_targets:work", "sandbox_targets:load"


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedPool]:
    """A pool of two children, each of which takes one task."""
    monkeypatch.syspath_prepend(HERE)
    made = SharedPool(TARGET, 2, SandboxLimits(tasks=1), LOAD)
    yield made
    made.close()


def ask(pool: SharedPool, request: bytes) -> tuple[list[bytes], Outcome]:
    """Run one task; return its frames and its outcome."""
    frames: list[bytes] = []
    outcome = pool.run(request, None, frames.append)
    return frames, outcome


def test_each_thread_gets_its_own_answer(pool: SharedPool) -> None:
    """Tasks of more threads than children end with their own frames, and no child takes two of them."""
    with ThreadPoolExecutor(6) as threads:
        echoes = list(threads.map(lambda n: ask(pool, b"echo %d" % n), range(12)))
        pids = list(threads.map(lambda _: ask(pool, b"pid"), range(6)))
    assert echoes == [([b"%d" % n], Done()) for n in range(12)]
    assert len({frames[0] for frames, _ in pids}) == 6


def test_crash_affects_no_other_task(pool: SharedPool) -> None:
    """A child that crashes ends its own task; the pool goes on."""
    with ThreadPoolExecutor(2) as threads:
        crash, echo = threads.map(lambda request: ask(pool, request)[1], [b"abort x", b"echo a"])
    assert isinstance(crash, Crashed)
    assert echo == Done()
    assert ask(pool, b"echo b") == ([b"b"], Done())


def test_consumer_that_fails_gets_its_exception(pool: SharedPool) -> None:
    """An exception of the consumer of frames is raised in the thread that waits."""

    def full(frame: bytes) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match=os.strerror(28)):
        pool.run(b"echo a", None, full)
    assert ask(pool, b"echo b") == ([b"b"], Done())


def test_close_ends_tasks_as_lost(pool: SharedPool) -> None:
    """Tasks in progress and waiting end when the pool is closed, and later ones at once; an unused pool starts nothing."""
    assert ask(pool, b"echo a") == ([b"a"], Done())
    with ThreadPoolExecutor(4) as threads:
        tasks = [threads.submit(ask, pool, b"loop") for _ in range(4)]
        while pool._running is not None and len(pool._running.pool._waiting) < 2:
            time.sleep(0.01)
        pool.close()
        assert all(isinstance(task.result()[1], Lost) for task in tasks)
    assert isinstance(ask(pool, b"echo b")[1], Lost)
    unused = SharedPool(TARGET, 2)
    unused.close()
    assert unused._thread is None


def test_failed_start_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preload that fails is reported to each caller."""
    monkeypatch.syspath_prepend(HERE)
    pool = SharedPool(TARGET, 1, None, "sandbox_targets:load_badly")
    for _ in range(2):
        with pytest.raises(SandboxError, match="no such library"):
            pool.run(b"echo a")
    pool.close()
