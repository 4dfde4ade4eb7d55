"""Fixtures that run pools on the targets in `sandbox_targets.py`."""

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
    """Creates pools whose children can import the targets, and runs coroutines with them."""

    def pool(self, size: int = 1, target: str = "work", preload: str = "load", **limits: Any) -> Pool:
        """Create a pool without starting it."""
        return Pool(f"sandbox_targets:{target}", size, SandboxLimits(**limits), f"sandbox_targets:{preload}")

    def use(self, job: Callable[[Pool], Awaitable[Any]], pool: Pool | None = None, **options: Any) -> Any:
        """Run a coroutine with a started pool, and close the pool."""

        async def main() -> Any:
            async with pool or self.pool(**options) as started:
                return await job(started)

        return asyncio.run(main())

    async def ask(self, pool: Pool, request: bytes, body: int | None = None) -> Job:
        """Run one task; return its frames and its outcome."""
        frames: list[bytes] = []
        outcome = await pool.run(request, body, frames.append)
        return frames, outcome

    def run(self, *requests: bytes, **options: Any) -> list[Job]:
        """Run several tasks, one after the other, in one pool."""

        async def job(pool: Pool) -> list[Job]:
            return [await self.ask(pool, request) for request in requests]

        done: list[Job] = self.use(job, **options)
        return done

    def dead(self, pid: int) -> bool:
        """Whether a process is gone or a zombie."""
        try:
            return Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    # A deadline short enough for a test would also end children that a busy machine delays. Where some children must exceed it and
    # others must not, the test advances the clock itself, after it has checked what each child works on.

    def tick(self, pool: Pool) -> None:
        """Advance the clock of all children by one tick."""
        for worker in list(pool._workers.values()):
            worker.tick(pool.limits.deadline / TICKS)

    async def at(self, pool: Pool, text: str) -> None:
        """Wait until a child reports this text as its progress."""
        while all(worker._page.text != text for worker in pool._workers.values()):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)

    async def late(self, pool: Pool, text: str) -> None:
        """Wait until a child reports this text, and let its deadline pass; it must report nothing after that."""
        await self.at(pool, text)
        for worker in [worker for worker in pool._workers.values() if worker._page.text == text]:
            # The first tick counts the progress reported before it.
            for _ in range(TICKS + 2):
                worker.tick(pool.limits.deadline / TICKS)


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A `Sandbox` whose children can import the targets."""
    monkeypatch.syspath_prepend(HERE)
    return Sandbox()
