"""The pool for callers without an event loop: `harvest summarize`, `harvest doctor`, scripts."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from streams.sandbox.pool import Pool
from streams.sandbox.task import OnFrame
from streams.sandbox.values import Layer, Outcome, SandboxLimits


class PlainPool:
    """A pool behind blocking calls, one task at a time. A KeyboardInterrupt kills the child and is raised again."""

    def __init__(self, target: str, limits: SandboxLimits | None = None, preload: str = "", load: str = "") -> None:
        """See `Pool`."""
        self._pool = Pool(target, 1, limits, preload, load)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        """Start the pool. Raises what `Pool.start` raises."""
        try:
            self._runner.run(self._pool.start())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._runner:
            self._runner.run(self._pool.close())

    def run(self, request: bytes, body: int | None = None, on_frame: OnFrame = lambda _: None) -> Outcome:
        """See `Pool.run`."""
        return self._runner.run(self._pool.run(request, body, on_frame))

    def layers(self) -> list[Layer]:
        """See `Pool.layers`."""
        return self._runner.run(self._pool.layers())


def layers(limits: SandboxLimits | None = None) -> list[Layer]:
    """Return which safety layers are active on this machine. Raises SandboxError or OSError if no child can be started."""
    with PlainPool("streams.sandbox.probes:nothing", limits) as pool:
        return pool.layers()
