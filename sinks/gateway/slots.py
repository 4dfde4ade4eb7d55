"""Turns of searches: a few at once, a bounded queue, and a fair share of it for each client.

An engine cannot be interrupted, so a search that has begun is completed, also if its client has gone. Who waits is served in order.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

SHARE = 4
"""Searches of one client that may wait or run at once, for each search at once that the gateway does."""

Answer = TypeVar("Answer")


class BusyError(Exception):
    """There are too many searches: the request may be repeated after `wait` seconds."""

    def __init__(self, reason: str, wait: int = 2) -> None:
        super().__init__(reason)
        self.wait = wait


class Slots:
    """Threads that search, and the queue before them."""

    def __init__(self, searches: int, queue: int, timeout: float) -> None:
        self._threads = ThreadPoolExecutor(searches, "search")
        self._free = asyncio.Semaphore(searches)
        self._most, self._timeout, self._share = searches + queue, timeout, SHARE * searches
        self._clients: Counter[str] = Counter()
        """Searches of each client that wait or run."""
        self.waiting = 0
        """Number of searches that wait for their turn."""

    async def run(self, client: str, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, which is called in a thread when it is this one's turn. Raises BusyError."""
        if self._clients[client] >= self._share:
            raise BusyError("too many searches of one client at once")
        if self._clients.total() >= self._most:
            raise BusyError("too many searches at once")
        self._clients[client] += 1
        try:
            await self._turn()
            return await asyncio.shield(self._begin(ask))
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    async def _turn(self) -> None:
        if not self._free.locked():
            await self._free.acquire()
            return
        self.waiting += 1
        try:
            async with asyncio.timeout(self._timeout):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError(f"no turn within {self._timeout:g} s") from None
        finally:
            self.waiting -= 1

    def _begin(self, ask: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Begin a search; its slot is free when it is completed, whether or not anybody waits for it."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        future.add_done_callback(lambda _: self._free.release())
        return future

    def close(self) -> None:
        """End the threads, after the searches that have begun."""
        self._threads.shutdown(wait=True, cancel_futures=True)
