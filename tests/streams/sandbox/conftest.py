"""Pools over the targets beside this file, as short calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from streams.sandbox.pool import TICKS, Pool
from streams.sandbox.values import Outcome, SandboxLimits

HERE = str(Path(__file__).parent)
Job = tuple[list[bytes], Outcome]


class Sandbox:
    """Makes pools whose children can import the targets, and runs coroutines with them."""

    def pool(self, size: int = 1, target: str = "work", preload: str = "load", **limits: Any) -> Pool:
        """A pool that is not started yet."""
        return Pool(f"sandbox_targets:{target}", size, SandboxLimits(**limits), f"sandbox_targets:{preload}")

    def use(self, job: Callable[[Pool], Awaitable[Any]], pool: Pool | None = None, **options: Any) -> Any:
        """Run a coroutine with a started pool, and close it."""

        async def main() -> Any:
            async with pool or self.pool(**options) as started:
                return await job(started)

        return asyncio.run(main())

    async def ask(self, pool: Pool, request: bytes, body: int | None = None) -> Job:
        """One run: its frames and its outcome."""
        frames: list[bytes] = []
        outcome = await pool.run(request, body, frames.append)
        return frames, outcome

    def run(self, *requests: bytes, **options: Any) -> list[Job]:
        """Several runs, one after the other, in one pool."""

        async def job(pool: Pool) -> list[Job]:
            return [await self.ask(pool, request) for request in requests]

        done: list[Job] = self.use(job, **options)
        return done

    def dead(self, pid: int) -> bool:
        """Whether a process is gone, or only waits for somebody to reap it."""
        try:
            return Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    # A deadline so short that a test can wait for it would meet children that a busy machine does not let work: where some must
    # meet it and others must not, the test itself gives the time, and looks before who is at what.

    def tick(self, pool: Pool) -> None:
        """Have all children see one tick of the clock."""
        for worker in list(pool._workers.values()):
            worker.tick(pool.limits.deadline / TICKS)

    async def at(self, pool: Pool, text: str) -> None:
        """Wait until a child says that it works on this."""
        while all(worker._page.text != text for worker in pool._workers.values()):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)

    async def late(self, pool: Pool, text: str) -> None:
        """Have the deadline of a child pass, once it works on this; it says nothing more."""
        await self.at(pool, text)
        for worker in [worker for worker in pool._workers.values() if worker._page.text == text]:
            # The first tick sees what was said before it.
            for _ in range(TICKS + 2):
                worker.tick(pool.limits.deadline / TICKS)


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """See `Sandbox`."""
    monkeypatch.syspath_prepend(HERE)
    return Sandbox()
