"""A task in progress, and its outcome, derived from a child's last message or its wait status."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

from streams.sandbox.values import Crashed, Done, Failed, Flooded, Outcome, OutOfMemory, SandboxLimits, TimedOut
from streams.sandbox.wire import DONE, EXIT_MEMORY, FAILED, FLOODED, FULL, LAST, MEMORY, STRAINED, TASK, TASK_WITH_BODY

OnFrame = Callable[[bytes], Awaitable[None] | None]


class Clock:
    """Wall-clock seconds spent on one task; all its tries share one clock, and the limit `SandboxLimits.whole`."""

    def __init__(self) -> None:
        self.spent = 0.0


class Task:
    """One run() in progress."""

    def __init__(
        self,
        request: bytes,
        body: int | None,
        on_frame: OnFrame,
        future: asyncio.Future[Outcome],
        kind: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.kind = (TASK if body is None else TASK_WITH_BODY) if kind is None else kind
        self.request = request
        self.body = body
        self.on_frame = on_frame
        self.future = future
        self.clock = clock or Clock()
        self.total = 0
        self.given = False
        """Whether a frame of it was delivered."""
        self.again = False
        """Whether another child has died after receiving it and before beginning it."""
        self.gone = 0
        """Number of forkservers that died while it was in progress."""

    def end(self, outcome: Outcome) -> None:
        """Set the outcome, unless the caller is no longer waiting."""
        if not self.future.done():
            self.future.set_result(outcome)


def said(kind: int, data: bytes, culprit: str) -> Outcome | None:
    """Convert a child's message that ends a task into an outcome; None if it is another message."""
    which = kind & ~(LAST | STRAINED)
    if which == DONE:
        return Done(bool(kind & STRAINED))
    if which == FAILED:
        return Failed(data.decode("utf-8", "replace"), culprit)
    if which == MEMORY:
        return OutOfMemory(culprit)
    if which == FLOODED:
        return Flooded(culprit, "total" if data == b"total" else "frame")
    return None


def cause(status: int, resident: int, culprit: str, limits: SandboxLimits) -> Outcome:
    """Derive the outcome from the wait status and the peak resident bytes of a child that was not killed by its parent."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return TimedOut(culprit, "cpu")
        return OutOfMemory(culprit) if resident > FULL * limits.memory else Crashed(number, 0, culprit)
    code = os.WEXITSTATUS(status)
    return OutOfMemory(culprit) if code == EXIT_MEMORY else Crashed(0, code, culprit)
