"""Pools over the targets beside this file, as short calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from streams.sandbox.pool import Pool
from streams.sandbox.values import Limits, Outcome

HERE = str(Path(__file__).parent)
Job = tuple[list[bytes], Outcome]


class Sandbox:
    """Makes pools whose children can import the targets, and runs coroutines with them."""

    def pool(self, size: int = 1, target: str = "work", preload: str = "load", **limits: Any) -> Pool:
        """A pool that is not started yet."""
        return Pool(f"sandbox_targets:{target}", size, Limits(**limits), f"sandbox_targets:{preload}")

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


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """See `Sandbox`."""
    monkeypatch.syspath_prepend(HERE)
    return Sandbox()
