"""The pool: gives each task to the first free child, and ends each task with one outcome.

    async with Pool("module:function", 2, preload="module:load") as pool:
        outcome = await pool.run(request, body_descriptor, frames.append)

Strategy: a run costs one future, and no task or timer of the event loop; one timer serves all children. A child that becomes free
takes the next task within the same callback. Tasks wait in order of arrival. A child that dies, or is killed, is replaced at once;
a forkserver that dies is started again, and one that hangs is killed. A task that was in progress when the forkserver died is
repeated, a few times, unless a frame of it was delivered.

Delivery: run() always returns an outcome, unless it is cancelled (its child is killed), its on_frame raises, or its body cannot be
sent (the exception is raised). A task is never repeated after one of its frames was delivered.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from types import TracebackType
from typing import Self

import msgspec

from streams.sandbox.forkserver import DIED, Forkserver
from streams.sandbox.task import Clock, OnFrame, Task
from streams.sandbox.values import Layer, Lost, Outcome, SandboxError, SandboxLimits
from streams.sandbox.wire import LAYERS, ProgressPage
from streams.sandbox.worker import Worker

PATIENCE = 5
"""Consecutive failures to start a child before waiting tasks end as lost."""
SPARED = 4
"""Forkservers that may die during one task: someone who kills forkservers kills several, and the task is not the cause."""
PAUSE = 0.5
"""Seconds between tries after a failure."""
LOADING = 120.0
"""Maximum seconds for a forkserver to load everything; it takes one or two."""
TICKS = 8
"""Ticks per deadline: a child is killed between 1 and 1 + 2 / TICKS deadlines after its last frame or progress."""


class Pool:
    """A pool of sandboxed children on one event loop. Not thread-safe."""

    def __init__(self, target: str, size: int, limits: SandboxLimits | None = None, preload: str = "", load: str = "") -> None:
        """`target` and `preload` are "module:function"; in the forkserver, `preload` is called once, then `target` is imported.

        The target is called as target(request: bytes, body: BinaryIO | None, emit: Callable[[bytes], None],
        progress: Callable[[str], None]) -> None, with the body at its start. It has no file system and no network: what it would
        import or open late, the preload must import or open. Neither of them may leave threads running.

        `load`: if not empty, the preload is called once more with this text. It raises `values.MistakeError` for an invalid text,
        and may return a function, which each child calls with its limits before it is sealed.
        """
        self.limits = limits or SandboxLimits()
        self._target = target
        self._preload = preload
        self._load = load
        self._size = size
        self._workers: dict[int, Worker] = {}
        self._free: list[Worker] = []
        self._waiting: deque[Task] = deque()
        self._server: Forkserver | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ready: asyncio.Future[None] | None = None
        self._number = 0
        self._failures = 0
        self._deaths = 0
        """Forkservers that died during the first start."""
        self._loading = 0.0
        """Seconds that the forkserver has been loading."""
        self._threads = 1
        self._running = False

    # -- for users

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def start(self) -> None:
        """Start the forkserver and its children.

        Raises SandboxError if the preload or the target fails, OSError if nothing can be started.
        """
        self._loop = asyncio.get_running_loop()
        self._ready = self._loop.create_future()
        self._running = True
        self._interval = min(self.limits.deadline, self.limits.whole) / TICKS
        try:
            self._start_server()
            self._tick()
            await self._ready
        except BaseException:
            await self.close()
            raise

    async def run(
        self, request: bytes, body: int | None = None, on_frame: OnFrame = lambda _: None, clock: Clock | None = None
    ) -> Outcome:
        """Run the target once in a child, and pass its frames to `on_frame` as they arrive, in order.

        `body` is an open file descriptor, which the caller closes afterwards. The child reads it from its start, through the offset
        that both share, so that no two runs may use the same descriptor. While an awaitable returned by `on_frame` is not done, no
        more frames are read, and the child waits. `clock`: the time used so far, if this is one of several tries. Raises
        ValueError for a request longer than a frame, RuntimeError if the pool is not open.
        """
        if len(request) > self.limits.frame:
            raise ValueError(f"a request of {len(request)} bytes: pass a body")
        return await self._submit(Task(request, body, on_frame, self._future(), clock=clock))

    async def layers(self) -> list[Layer]:
        """Return which safety layers are active, tested by a child that attempts forbidden actions."""
        frames: list[bytes] = []
        outcome = await self._submit(Task(b"", None, frames.append, self._future(), LAYERS))
        if not frames:
            return [Layer("children", False, outcome.reason)]
        single = Layer("forkserver", self._threads == 1, f"{self._threads} thread{'s' * (self._threads > 1)} after the preload")
        return [*msgspec.json.decode(frames[0], type=list[Layer]), single]

    @property
    def server_pid(self) -> int:
        """Process id of the forkserver, the parent of all children; 0 while there is none."""
        return self._server.pid if self._server else 0

    async def close(self) -> None:
        """End all children; tasks in progress or waiting end as lost. Returns when the forkserver has exited."""
        self._running = False
        if self._timer:
            self._timer.cancel()
        self._give_up("the pool was closed")
        server, self._server = self._server, None
        if server:
            await server.close()

    # -- scheduling

    def _future(self) -> asyncio.Future[Outcome]:
        if not self._running:
            raise RuntimeError("the pool is not open")
        return self._loop.create_future()

    async def _submit(self, task: Task) -> Outcome:
        if self._free:
            self._free.pop().begin(task)
        else:
            self._waiting.append(task)
        try:
            return await task.future
        finally:
            if task.future.cancelled():
                self._forget(task)

    def _forget(self, task: Task) -> None:
        """Remove a cancelled task from the queue, or kill its child."""
        for worker in self._workers.values():
            if worker.task is task:
                worker.abandon()
                return
        if task in self._waiting:
            self._waiting.remove(task)

    def on_free(self, worker: Worker) -> None:
        """Give a waiting task to a child that is ready for one."""
        if worker.number not in self._workers:
            return
        self._failures = 0
        if self._waiting:
            worker.begin(self._waiting.popleft())
        else:
            self._free.append(worker)

    def on_again(self, task: Task) -> None:
        """Give a task to another child, since its child died before beginning it."""
        if self._free:
            self._free.pop().begin(task)
        else:
            self._waiting.appendleft(task)

    def on_spent(self, worker: Worker) -> None:
        """Replace a child that asked for it. The child is killed, since it may not exit by itself."""
        self._workers.pop(worker.number)
        self.kill(worker)
        worker.drop()
        self._spawn()

    def kill(self, worker: Worker) -> None:
        """Order a child to be killed."""
        if self._server:
            self._server.kill(worker.number)

    def on_unheard(self) -> None:
        """Kill a forkserver that does not follow its orders, such as one that was stopped (SIGSTOP)."""
        if self._server:
            self._server.end()

    def wait(self, seconds: float) -> None:
        """Add seconds during which the forkserver was loading; kill it after `LOADING`."""
        self._loading += seconds
        if self._loading >= LOADING:
            self._loading = 0.0
            self.on_unheard()

    def _give_up(self, why: str) -> None:
        """End all tasks in progress or waiting as lost."""
        tasks = [task for worker in self._workers.values() if (task := worker.drop())]
        self._workers.clear()
        self._free.clear()
        tasks += self._waiting
        self._waiting.clear()
        for task in tasks:
            task.end(Lost(why))

    def _tick(self) -> None:
        """Advance the clock of all children, and of a forkserver that is still loading."""
        for worker in list(self._workers.values()):
            worker.tick(self._interval)
        if self._server is not None and self._server.loading:
            self.wait(self._interval)
        self._timer = self._loop.call_later(self._interval, self._tick)

    # -- the forkserver

    def _start_server(self) -> None:
        self._loading = 0.0
        self._server = Forkserver(self._target, self._preload, self.limits, self, self._load)

    def on_ready(self, threads: int) -> None:
        """Order the children, since the forkserver has loaded everything."""
        self._threads = threads
        if self._ready and not self._ready.done():
            self._ready.set_result(None)
        for _ in range(self._size):
            self._spawn()

    def _spawn(self) -> None:
        if not self._running or self._server is None or len(self._workers) >= self._size:
            return
        try:
            ours, theirs = socket.socketpair()
            page = ProgressPage.create()
        except OSError as error:
            self._fail(f"no child: {error.strerror}")
            return
        self._number += 1
        self._workers[self._number] = Worker(self._number, ours, ProgressPage(page), self.limits, self)
        self._server.spawn(self._number, theirs.fileno(), page)
        theirs.close()
        os.close(page)

    def on_exited(self, number: int, status: int, resident: int) -> None:
        """End the task of a dead child, and replace the child."""
        worker = self._workers.pop(number, None)
        if worker is None:
            return
        if worker in self._free:
            self._free.remove(worker)
        worker.ended(status, resident)
        if worker.ready:
            self._spawn()
        else:
            worker.drop()
            self._fail(f"a child ended while it was set up (status {os.waitstatus_to_exitcode(status)})")

    def _fail(self, why: str) -> None:
        """Try again later to start a child, but end waiting tasks as lost after `PATIENCE` failures."""
        self._lose_patience(why)
        self._loop.call_later(PAUSE, self._spawn)

    def _lose_patience(self, why: str) -> None:
        self._failures += 1
        if self._failures >= PATIENCE:
            while self._waiting:
                self._waiting.popleft().end(Lost(why))

    def on_gone(self, why: str) -> None:
        """Start another forkserver, since this one is dead with all its children."""
        self._server = None
        if self._ready and not self._ready.done():
            self._deaths += 1
            if why != DIED or self._deaths > SPARED:
                self._ready.set_exception(SandboxError(why))
            else:
                # It reported no reason: it was killed from outside.
                self._loop.call_later(self._deaths * PAUSE / SPARED, self._restart)
            return
        tasks = [task for worker in self._workers.values() if (task := worker.drop())]
        self._workers.clear()
        self._free.clear()
        for task in reversed(tasks):
            task.gone += 1
            if task.gone > SPARED or task.given:
                task.end(Lost(DIED))
            elif not task.future.done():
                self._waiting.appendleft(task)
        self._lose_patience(why)
        self._loop.call_later(PAUSE if self._failures > 1 else 0, self._restart)

    def _restart(self) -> None:
        if self._running and self._server is None:
            try:
                self._start_server()
            except OSError as error:
                self._lose_patience(f"no forkserver: {error.strerror}")
                self._loop.call_later(PAUSE, self._restart)
