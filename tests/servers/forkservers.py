"""Forkservers that runs in one test process use one after the other, since each would import the parsers anew.

A forkserver that is ready takes a second of CPU to start, and is the same for each run: what differs, limits and requests, comes
with the children. So a closed one is kept for the next run in this process, as if that had been begun early.

Laws:
- Only a forkserver without children is kept: all of them are dead and reaped, so that their numbers are free again.
- It is used again only with the import path and the environment with which it was started.
- One with additions of an operator ends with its pool, and so does one that was started by a thread that may end.
- Pools with other targets, as in the tests of `streams/sandbox`, and all child processes have forkservers of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
import pytest

from streams.sandbox import early, pool
from streams.sandbox.forkserver import PATIENCE, Forkserver, Listener
from streams.sandbox.values import SandboxLimits


class _Kept(NamedTuple):
    """A forkserver without children, how it was started, and its number of threads."""

    started: early.Started
    environment: dict[str, str]
    threads: int


_kept: list[_Kept] = []


class _Nobody:
    """Listens to a forkserver whose pool is closed."""

    def on_ready(self, threads: int) -> None:
        """Do nothing."""

    def on_exited(self, number: int, status: int, resident: int) -> None:
        """Do nothing."""

    def on_gone(self, why: str) -> None:
        """Do nothing."""


class SharedForkserver(Forkserver):
    """A forkserver that outlives its pool."""

    def __init__(self, target: str, preload: str, limits: SandboxLimits, listener: Listener, load: str = "") -> None:
        """Take the one that was kept, or start one; the parameters are those of `Forkserver`."""
        self._pool, self._living, self._threads = listener, set[int](), 0
        self._names = target, preload
        self._environment = early.environment()
        kept = self._matching()
        if kept:
            early._begun.append(kept.started)
        super().__init__(target, preload, limits, self, load)
        reused = kept is not None and kept.started.process is self._process
        lasting = reused or threading.current_thread() is threading.main_thread()
        self._keep = lasting and preload == early.PRELOAD and not load
        if kept and reused:
            self._loop.call_soon(self._go_on, kept.threads)

    def _matching(self) -> _Kept | None:
        for number, one in enumerate(_kept):
            if (one.started.target, one.started.preload, one.environment) == (*self._names, self._environment):
                return _kept.pop(number)
        return None

    def _go_on(self, threads: int) -> None:
        if self._control.fileno() < 0:
            return
        if self._load:
            load, self._load = self._load, ""
            self._send(msgspec.json.encode((0, None, load)))
        else:
            self.loading = False
            self.on_ready(threads)

    def spawn(self, number: int, channel: int, page: int) -> None:
        """Order a child, and note its number."""
        self._living.add(number)
        super().spawn(number, channel, page)

    def on_ready(self, threads: int) -> None:
        """Pass it on to the pool."""
        self._threads = threads
        self._pool.on_ready(threads)

    def on_exited(self, number: int, status: int, resident: int) -> None:
        """Pass it on to the pool; the number is free."""
        self._living.discard(number)
        self._pool.on_exited(number, status, resident)

    def on_gone(self, why: str) -> None:
        """Pass it on to the pool."""
        self._pool.on_gone(why)

    async def close(self) -> None:
        """Keep the forkserver once all its children are dead, or end it."""
        if not self._keep or self.loading or self._process.returncode is not None:
            await super().close()
            return
        self._pool = _Nobody()
        for number in self._living:
            self.kill(number)
        until = self._loop.time() + PATIENCE
        try:
            while self._living and self._control.fileno() >= 0 and self._loop.time() < until:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        except BaseException:
            self._bury()
            raise
        if self._control.fileno() < 0:
            return
        if self._living:
            self._bury()
            return
        self._loop.remove_reader(self._control.fileno())
        _kept.append(_Kept(early.Started(self._process, self._control, *self._names), self._environment, self._threads))


def discard() -> None:
    """End all forkservers that are kept."""
    while _kept:
        started = _kept.pop().started
        started.control.close()
        started.process.kill()
        started.process.wait()


@contextmanager
def shared() -> Iterator[None]:
    """Let the pools of this process share forkservers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "Forkserver", SharedForkserver)
        try:
            yield
        finally:
            discard()
