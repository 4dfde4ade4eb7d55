"""Rate limit: one request at a time for each host and for each address, with a pause in between.

Laws:
- The pause runs from the end of one request to the start of the next, for the host and for its address. Of the pauses that the two
  requests ask for, the longer one counts.
- No host and no address gets a request in its first pause after a start, or in the first minute of a longer one: an earlier process
  may have sent one a moment ago; of those that were answered, the frontier knows. (`wait`: the same when hosts are taken over
  from another process.)
- An overloaded host gets no request until the time that `hold` has set.
- A request that would wait longer than its patience is rejected at once (TooLongError), not queued.
- The slot of a host is entered before that of its address, so that the owner of an address slot waits for no other: no deadlock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from processors.frontier.politeness import EDGE_START

MANY = 4_096
"""Maximum number of slots, not counting those in use."""


LONGEST_START = EDGE_START / 1000
"""Longest pause after a start, in seconds: the frontier passes longer ones itself."""


class TooLongError(Exception):
    """The wait would exceed the patience; `wait` is an estimate in seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"{wait:.1f} s")
        self.wait = wait


class _Slot:
    """The slot of a host or an address: the current request, and when the last one ended."""

    __slots__ = ("begun", "ended", "held", "lock", "pause", "waiting")

    def __init__(self, begun: float) -> None:
        self.lock = asyncio.Lock()
        self.begun = begun
        """Start of this process, or when the host was taken over."""
        self.ended = -math.inf
        """End of the last request."""
        self.pause = 0.0
        """Pause of the last request."""
        self.held = 0.0
        self.waiting = 0

    def free_at(self, pause: float) -> float:
        """Return the time from which a request with a pause may start, unless another one is under way."""
        pause = max(pause, self.pause)
        return max(self.begun + min(pause, LONGEST_START), self.ended + pause, self.held)

    def estimate(self, now: float, pause: float) -> float:
        """Return the seconds until one more request could start, if requests themselves took no time."""
        ahead = self.waiting + self.lock.locked()
        return max(0.0, self.free_at(pause) - now) + ahead * pause


class Pace:
    """The slots of all hosts and addresses in use. `now` (monotonic seconds) and `sleep` are parameters for tests."""

    def __init__(
        self,
        pause: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.pause = pause
        """Shortest pause, in seconds."""
        self.now = now
        self._sleep = sleep
        self._begun = now()
        self._slots: dict[str, _Slot] = {}

    def wait(self) -> None:
        """Delay the next request to each host and address by one pause, as after a start."""
        self._begun = self.now()
        for slot in self._slots.values():
            slot.begun = self._begun

    def hold(self, key: str, seconds: float) -> None:
        """Send no request to a host for so many seconds."""
        slot = self._slots.get(f"h {key}") or self._new(f"h {key}")
        slot.held = max(slot.held, self.now() + seconds)

    def host_free_at(self, key: str, pause: float) -> float:
        """Return the time from which a request to a host may start, by its pause in seconds, unless one is under way."""
        slot = self._slots.get(f"h {key}")
        pause = max(pause, self.pause)
        return slot.free_at(pause) if slot is not None else self._begun + min(pause, LONGEST_START)

    def pause_of(self, key: str, pause: float) -> float:
        """Return the pause in seconds before a request to a host, by its own pause and that of the last request."""
        slot = self._slots.get(f"h {key}")
        return max(pause, self.pause, slot.pause if slot is not None else 0.0)

    def address_free_at(self, address: str) -> float:
        """Return the time from which a request to an address may start, unless one is under way."""
        slot = self._slots.get(f"a {address}")
        return slot.free_at(self.pause) if slot is not None else self._begun + min(self.pause, LONGEST_START)

    @asynccontextmanager
    async def host(self, key: str, pause: float, patience: float | None) -> AsyncIterator[None]:
        """Enter the slot of a host. `pause`: seconds that the host asks for, if more than the setting. Raises TooLongError."""
        async with self._turn(f"h {key}", max(pause, self.pause), patience):
            yield

    @asynccontextmanager
    async def address(self, address: str, patience: float | None) -> AsyncIterator[None]:
        """Enter the slot of an address, inside the slot of its host. Raises TooLongError."""
        async with self._turn(f"a {address}", self.pause, patience):
            yield

    async def rest(self, pause: float) -> None:
        """Wait one pause inside the slot of a host, but outside that of its address, before one more request to the host."""
        await self._sleep(max(pause, self.pause))

    @asynccontextmanager
    async def _turn(self, key: str, pause: float, patience: float | None) -> AsyncIterator[None]:
        slot = self._slots.get(key) or self._new(key)
        estimate = slot.estimate(self.now(), pause)
        if patience is not None and estimate > patience:
            raise TooLongError(estimate)
        await self._enter(slot, pause, patience)
        try:
            wait = slot.free_at(pause) - self.now()
            if patience is not None and wait > patience:
                raise TooLongError(wait)
            if wait > 0:
                await self._sleep(wait)
            try:
                yield
            finally:
                slot.ended, slot.pause = self.now(), pause
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

    def _new(self, key: str) -> _Slot:
        self._prune()
        slot = self._slots[key] = _Slot(self._begun)
        return slot

    def _prune(self) -> None:
        if len(self._slots) < MANY:
            return
        now = self.now()
        for key, slot in list(self._slots.items()):
            if slot.free_at(0.0) <= now and not slot.waiting and not slot.lock.locked():
                del self._slots[key]
