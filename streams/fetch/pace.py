"""Rate limit: one request at a time for each host and for each address, with a pause in between.

Laws:
- The pause runs from the end of one request to the start of the next, for the host and for its address.
- No address gets a request in the first pause after a start: an earlier process may have sent one a moment ago. (`wait`: the same
  when hosts are taken over from another process.)
- A request that would wait longer than its patience is rejected at once (TooLongError), not queued.
- The slot of a host is entered before that of its address, so that the owner of an address slot waits for no other: no deadlock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

MANY = 4_096
"""Maximum number of slots, not counting those in use."""


class TooLongError(Exception):
    """The wait would exceed the patience; `wait` is an estimate in seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"{wait:.1f} s")
        self.wait = wait


class _Slot:
    """The slot of a host or an address: the current request, and the time from which the next one may start."""

    __slots__ = ("free_at", "lock", "waiting")

    def __init__(self, free_at: float) -> None:
        self.lock = asyncio.Lock()
        self.free_at = free_at
        self.waiting = 0

    def estimate(self, now: float, pause: float) -> float:
        """Return the seconds until one more request could start, if requests themselves took no time."""
        ahead = self.waiting + self.lock.locked()
        return max(0.0, self.free_at - now) + ahead * pause


class Pace:
    """The slots of all hosts and addresses in use. `now` (monotonic seconds) and `sleep` are parameters for tests."""

    def __init__(
        self,
        pause: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pause = pause
        self._now = now
        self._sleep = sleep
        self._first = now() + pause
        self._slots: dict[str, _Slot] = {}

    def wait(self) -> None:
        """Delay the next request to each address by one pause, as after a start."""
        self._first = self._now() + self._pause
        for key, slot in self._slots.items():
            if key.startswith("a "):
                slot.free_at = max(slot.free_at, self._first)

    @asynccontextmanager
    async def host(self, key: str, pause: float, patience: float | None) -> AsyncIterator[None]:
        """Enter the slot of a host. `pause`: seconds that the host asks for, if more than the setting. Raises TooLongError."""
        async with self._turn(f"h {key}", max(pause, self._pause), patience, 0.0):
            yield

    @asynccontextmanager
    async def address(self, address: str, patience: float | None) -> AsyncIterator[None]:
        """Enter the slot of an address, inside the slot of its host. Raises TooLongError."""
        async with self._turn(f"a {address}", self._pause, patience, self._first):
            yield

    async def rest(self, pause: float) -> None:
        """Wait one pause inside the slot of a host, but outside that of its address, before one more request to the host."""
        await self._sleep(max(pause, self._pause))

    @asynccontextmanager
    async def _turn(self, key: str, pause: float, patience: float | None, free_at: float) -> AsyncIterator[None]:
        slot = self._slots.get(key)
        if slot is None:
            self._prune()
            slot = self._slots[key] = _Slot(free_at)
        estimate = slot.estimate(self._now(), pause)
        if patience is not None and estimate > patience:
            raise TooLongError(estimate)
        await self._enter(slot, pause, patience)
        try:
            wait = slot.free_at - self._now()
            if patience is not None and wait > patience:
                raise TooLongError(wait)
            if wait > 0:
                await self._sleep(wait)
            try:
                yield
            finally:
                slot.free_at = self._now() + pause
        finally:
            slot.lock.release()

    async def _enter(self, slot: _Slot, pause: float, patience: float | None) -> None:
        slot.waiting += 1
        try:
            async with asyncio.timeout(patience):
                await slot.lock.acquire()
        except TimeoutError:
            # How long the current request takes is unknown. The frontier asks again after a pause.
            raise TooLongError(pause) from None
        finally:
            slot.waiting -= 1

    def _prune(self) -> None:
        if len(self._slots) < MANY:
            return
        now = self._now()
        for key, slot in list(self._slots.items()):
            if slot.free_at <= now and not slot.waiting and not slot.lock.locked():
                del self._slots[key]
