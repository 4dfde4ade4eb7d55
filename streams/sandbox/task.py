"""A task on its way, and how its end is read: from a child's last message, or from its wait status."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

from streams.sandbox.values import Crashed, Done, Failed, Flooded, Outcome, OutOfMemory, SandboxLimits, TimedOut
from streams.sandbox.wire import DONE, EXIT_MEMORY, FAILED, FLOODED, FULL, LAST, MEMORY, STRAINED, TASK, TASK_WITH_BODY

OnFrame = Callable[[bytes], Awaitable[None] | None]


class Clock:
    """Wall-clock time that was spent on one thing; where several runs are made for it, they share one, and `Limits.whole`."""

    def __init__(self) -> None:
        self.spent = 0.0


class Task:
    """One run() on its way."""

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
        """A frame of it was handed over."""
        self.again = False
        """It was given to a child before that died without having begun it."""
        self.gone = 0
        """Forkservers that died while it was in progress."""

    def end(self, outcome: Outcome) -> None:
        """Give the outcome to whoever still waits."""
        if not self.future.done():
            self.future.set_result(outcome)


def said(kind: int, data: bytes, culprit: str) -> Outcome | None:
    """What a child's message that ends a task says; None if it is no such message."""
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
    """What the wait status and the peak of resident bytes say of a child that nobody of ours has killed."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return TimedOut(culprit, "cpu")
        return OutOfMemory(culprit) if resident > FULL * limits.memory else Crashed(number, 0, culprit)
    code = os.WEXITSTATUS(status)
    return OutOfMemory(culprit) if code == EXIT_MEMORY else Crashed(0, code, culprit)
