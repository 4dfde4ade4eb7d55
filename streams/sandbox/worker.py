"""The parent's side of one child: sends requests, receives frames, and decides the outcome. All on the event loop's thread.

Laws:
- One task at a time, so that the culprit of a death is certain.
- The socket is read as fast as frames are consumed: while a consumer is busy (on_frame returned an awaitable), nothing is read,
  the child blocks, and its clock is paused.
- Time is counted in ticks of the event loop, so that a parent that was blocked does not blame a child.
- A child that died before it began its task did not die of it: the task goes to another child, once.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable
from typing import Protocol

from streams.sandbox.task import Clock, Task, cause, said
from streams.sandbox.values import Crashed, Flooded, Lost, Outcome, SandboxLimits, TimedOut
from streams.sandbox.wire import FRAME, HEAD, LAST, READY, ProgressPage

CHUNK = 1 << 18


class Owner(Protocol):
    """Receives the events of a worker: its pool."""

    def on_free(self, worker: Worker) -> None:
        """The child is ready for a task."""
        ...

    def on_spent(self, worker: Worker) -> None:
        """The child asks to be replaced, and has no task."""
        ...

    def on_again(self, task: Task) -> None:
        """The task was not begun and goes to the head of the queue."""
        ...

    def kill(self, worker: Worker) -> None:
        """Order the child to be killed; `ended` follows."""
        ...

    def on_unheard(self) -> None:
        """A child should have been killed long ago, and is still alive."""
        ...


UNHEARD = 10.0
"""Seconds within which a child must be dead after the order to kill it."""


class Worker:
    """A child, seen from the parent."""

    def __init__(self, number: int, channel: socket.socket, page: ProgressPage, limits: SandboxLimits, owner: Owner) -> None:
        self.number = number
        self.ready = False
        self.task: Task | None = None
        self._channel = channel
        self._page = page
        self._limits = limits
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._need = HEAD.size
        self._most = max(limits.frame, 1 << 20)
        self._unsent = memoryview(b"")
        self._paused: asyncio.Future[None] | None = None
        self._verdict: Outcome | None = None
        """The outcome for which the parent killed it."""
        self._dying = 0.0
        """Seconds since the order to kill it."""
        self._status: tuple[int, int] | None = None
        self._begun = self._seen = 0
        self._idle = 0.0
        self._setup = Clock()
        """Clock for the time before its first task."""
        self._reading = False
        self._open = True
        channel.setblocking(False)
        self._read_on()

    # -- out

    def begin(self, task: Task) -> None:
        """Send a task to the child, which must be idle."""
        self.task = task
        self._idle = 0.0
        self._begun = self._seen = self._page.count
        data = HEAD.pack(len(task.request), task.kind) + task.request
        try:
            sent = socket.send_fds(self._channel, [data], [] if task.body is None else [task.body])
        except (BrokenPipeError, ConnectionResetError):
            # It died while idle; `ended` follows, and detects that the task was not begun.
            return
        except OSError as error:
            self._refuse(error)
            return
        if sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self._loop.add_writer(self._channel.fileno(), self._write)

    def _refuse(self, error: OSError) -> None:
        """Fail a task that cannot be sent, for example because its caller closed the body."""
        task, self.task = self.task, None
        if task is not None and not task.future.done():
            task.future.set_exception(error)
        self._loop.call_soon(self._owner.on_free, self)

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[self._channel.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._loop.remove_writer(self._channel.fileno())

    # -- in

    def _read_on(self) -> None:
        if self._open and not self._reading:
            self._reading = True
            self._loop.add_reader(self._channel.fileno(), self._read)

    def _read_no_more(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._channel.fileno())

    def _read(self) -> bool:
        """Read and process available data; False when there is none, or the socket is closed."""
        try:
            chunk = self._channel.recv(CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            # The exit status arrives from the forkserver.
            self._read_no_more()
            return False
        self._idle = 0.0
        self._buffer += chunk
        self._parse()
        return True

    def _parse(self) -> None:
        """Process every complete message in the buffer."""
        if len(self._buffer) < self._need:
            return
        data = bytes(self._buffer)
        self._buffer.clear()
        at, size = 0, len(data)
        self._need = HEAD.size
        while size - at >= HEAD.size and self._paused is None and self._open and self._verdict is None:
            length, kind = HEAD.unpack_from(data, at)
            if length > self._most:
                self.condemn(Flooded(self._page.text, "frame"))
                return
            end = at + HEAD.size + length
            if end > size:
                self._need = HEAD.size + length
                break
            self._take(kind, data[at + HEAD.size : end])
            at = end
        if at < size:
            self._buffer += data[at:]

    def _take(self, kind: int, data: bytes) -> None:
        if kind == FRAME:
            self._deliver(data)
        elif kind == READY and not self.ready:
            self.ready = True
            self._owner.on_free(self)
        elif self.task is not None and (outcome := said(kind, data, self._page.text)):
            task, self.task = self.task, None
            task.end(outcome)
            (self._owner.on_spent if kind & LAST else self._owner.on_free)(self)
        else:
            # No child sends such a message unless its memory was overwritten.
            self.condemn(Crashed(0, 0, self._page.text))

    def _deliver(self, data: bytes) -> None:
        task = self.task
        if task is None or task.future.done():
            return
        task.given = True
        task.total += len(data)
        if task.total > self._limits.total:
            self.condemn(Flooded(self._page.text, "total"))
            return
        try:
            taken = task.on_frame(data)
            if taken is not None:
                self._pause(taken)
        # An exception of a consumer is raised in its own caller.
        except Exception as error:  # noqa: BLE001 (see above)
            task.future.set_exception(error)
            self.condemn(Lost("the consumer failed"))

    # -- back-pressure

    def _pause(self, taken: Awaitable[None]) -> None:
        self._paused = asyncio.ensure_future(taken)
        self._read_no_more()
        self._paused.add_done_callback(self._resume)

    def _resume(self, taken: asyncio.Future[None]) -> None:
        self._paused = None
        error = None if taken.cancelled() else taken.exception()
        if error is not None and self.task is not None:
            if not self.task.future.done():
                self.task.future.set_exception(error)
            self.condemn(Lost("the consumer failed"))
        if self._verdict is None:
            self._need = HEAD.size
            self._parse()
        if self._waits():
            return
        if self._status is not None:
            self._judge()
        elif self._verdict is None:
            self._read_on()

    def _waits(self) -> bool:
        """Return whether the consumer is still busy with the last frame."""
        return self._paused is not None

    # -- the end

    def tick(self, seconds: float) -> None:
        """Add a tick of the pool's timer, in seconds; kill the child at a deadline."""
        if self._verdict is not None and self._status is None:
            self._dying += seconds
            if self._dying >= UNHEARD:
                self._owner.on_unheard()
        if self._verdict is not None or self._paused is not None or (self.task is None and self.ready):
            return
        count = self._page.count
        self._idle = 0.0 if count != self._seen else self._idle + seconds
        self._seen = count
        clock = self.task.clock if self.task is not None else self._setup
        clock.spent += seconds
        # One more tick: the first one may follow immediately after the event from which time is counted.
        if self._idle >= self._limits.deadline + seconds:
            self.condemn(TimedOut(self._page.text, "deadline"))
        elif clock.spent >= self._limits.whole + seconds:
            self.condemn(TimedOut(self._page.text, "whole"))

    def abandon(self) -> None:
        """Kill the child, since its task was cancelled."""
        self.condemn(Lost("cancelled"))

    def condemn(self, verdict: Outcome) -> None:
        """Kill the child; its task ends with `verdict` once it is dead."""
        if self._verdict is None and self._open:
            self._verdict = verdict
            self._read_no_more()
            self._buffer.clear()
            if self._paused is not None:
                self._paused.cancel()
            self._owner.kill(self)

    def ended(self, status: int, resident: int) -> None:
        """Process the last data of a dead and reaped child, then end its task."""
        self._status = (status, resident)
        if self._paused is None:
            self._judge()

    def _judge(self) -> None:
        while self._open and self._verdict is None and self._paused is None and self._read():
            pass
        if self._paused is not None:
            return
        status, resident = self._status or (0, 0)
        task, self.task = self.task, None
        # Read before the page is unmapped.
        begun, culprit = self._page.count != self._begun, self._page.text
        self.drop()
        if task is None or task.future.done():
            return
        if self._verdict is None and not begun and not task.again:
            task.again = True
            self._owner.on_again(task)
        else:
            task.end(self._verdict or cause(status, resident, culprit, self._limits))

    def drop(self) -> Task | None:
        """Close the socket and the page; return the child's task, unless it has an outcome already."""
        task, self.task = self.task, None
        if task is not None and self._verdict is not None:
            task.end(self._verdict)
            task = None
        if self._open:
            self._open = False
            if self._paused is not None:
                self._paused.remove_done_callback(self._resume)
                self._paused.cancel()
                self._paused = None
            self._read_no_more()
            self._loop.remove_writer(self._channel.fileno())
            self._channel.close()
            self._page.close()
        return task
