"""A pool that several threads share through blocking calls: a gateway's requests."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, Future
from threading import Lock, Thread
from typing import NamedTuple

from streams.sandbox.pool import Pool
from streams.sandbox.task import OnFrame
from streams.sandbox.values import Lost, Outcome, SandboxLimits

CLOSED = "the pool was closed"


class _Running(NamedTuple):
    """A started pool, and the loop of the thread that it runs in."""

    pool: Pool
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event


class SharedPool:
    """A pool on an event loop in a thread of its own, which lives as long as the pool. Thread-safe.

    It starts with the first task: a forkserver takes a second to load and tens of MB, which a gateway whose users fetch no member
    does not spend. It then stays, since a further child is a fork.
    """

    def __init__(self, target: str, size: int, limits: SandboxLimits | None = None, preload: str = "", load: str = "") -> None:
        """See `Pool`."""
        self._arguments = (target, size, limits, preload, load)
        self._lock = Lock()
        self._running: _Running | None = None
        self._thread: Thread | None = None
        self._closed = False

    def run(self, request: bytes, body: int | None = None, on_frame: OnFrame = lambda _: None) -> Outcome:
        """See `Pool.run`; `on_frame` is called in the thread of the pool. Raises also what `Pool.start` raises."""
        with self._lock:
            if self._closed:
                return Lost(CLOSED)
            running = self._running or self._start()
            # Under the lock: `close` orders the end of the loop only after this task exists.
            task = asyncio.run_coroutine_threadsafe(running.pool.run(request, body, on_frame), running.loop)
        try:
            return task.result()
        except CancelledError:
            return Lost(CLOSED)

    def close(self) -> None:
        """End all children; tasks in progress or waiting end as lost. Returns when the forkserver has exited."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
            if running is not None:
                running.loop.call_soon_threadsafe(running.stop.set)
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> _Running:
        started: Future[_Running] = Future()
        self._thread = Thread(target=asyncio.run, args=(self._main(started),), name="sandbox", daemon=True)
        self._thread.start()
        self._running = started.result()
        return self._running

    async def _main(self, started: Future[_Running]) -> None:
        stop = asyncio.Event()
        try:
            pool = Pool(*self._arguments)
            await pool.start()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for the start
            started.set_exception(error)
            return
        try:
            started.set_result(_Running(pool, asyncio.get_running_loop(), stop))
            await stop.wait()
        finally:
            await pool.close()
