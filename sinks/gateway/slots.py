"""Turns of searches: a few at once, and a bounded queue before them that is fair to each client.

Laws:
- Clients that wait take turns: one with a hundred searches gets as many turns as one with a single search.
- If the queue is full, the client that has most in it loses its newest search, or the newcomer is refused if it has as many.
- An engine cannot be interrupted: a search that has begun is completed, and its turn ends then, also if its client has gone. One
  whose client has gone before its turn is not begun.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

SHARE = 8
"""Maximum number of searches of one client that wait."""

Answer = TypeVar("Answer")
_Turn = asyncio.Future[None]


class BusyError(Exception):
    """There are too many searches: the request may be repeated after `wait` seconds."""

    def __init__(self, reason: str, wait: int = 2) -> None:
        super().__init__(reason)
        self.wait = wait


class GoneError(Exception):
    """The client has gone before its turn."""


class Slots:
    """Threads that search, and the queue before them."""

    def __init__(self, searches: int, queue: int, timeout: float) -> None:
        self._threads = ThreadPoolExecutor(searches, "search")
        self._free = searches
        self._queue, self._timeout = queue, timeout
        self._clients: OrderedDict[str, deque[_Turn]] = OrderedDict()
        """Turns that each client waits for; the client whose turn is next comes first."""
        self.waiting = 0
        """Number of searches that wait for their turn."""

    async def run(self, client: str, ask: Callable[[], Answer], is_gone: Callable[[], Awaitable[bool]] | None = None) -> Answer:
        """Return what `ask` returns, which is called in a thread when it is this client's turn.

        `is_gone` returns whether the client has gone. Raises BusyError, GoneError, and what `ask` raises.
        """
        await self._take(client)
        try:
            if is_gone is not None and await is_gone():
                raise GoneError
            future = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        except BaseException:
            self._release()
            raise
        future.add_done_callback(self._ended)
        return await asyncio.shield(future)

    def after(self, act: Callable[[], object]) -> None:
        """Call something in a thread that has nothing else to do; not at all once the threads have ended."""
        with suppress(RuntimeError):
            self._threads.submit(act)

    def _ended(self, answer: asyncio.Future[Any]) -> None:
        """Release the turn of an answer; if its client has gone, nobody else takes note of its error."""
        if not answer.cancelled():
            answer.exception()
        self._release()

    async def _take(self, client: str) -> None:
        """Wait for a turn. Raises BusyError."""
        if self._free:
            self._free -= 1
            return
        mine = len(self._clients.get(client, ()))
        if mine >= SHARE:
            raise BusyError("too many searches of one client at once")
        if self.waiting >= self._queue:
            self._displace(mine)
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._clients.setdefault(client, deque()).append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._timeout):
                await turn
        except BaseException as error:
            self._leave(client, turn)
            if isinstance(error, TimeoutError):
                raise BusyError(f"no turn within {self._timeout:g} s") from None
            raise

    def _leave(self, client: str, turn: _Turn) -> None:
        """Take a turn off the queue that nobody waits for any more; give it to another client if it has just come."""
        if turn in self._clients.get(client, ()):
            self._remove(client, turn)
        elif not turn.cancelled() and turn.exception() is None:
            self._release()

    def _remove(self, client: str, turn: _Turn) -> None:
        self._clients[client].remove(turn)
        self.waiting -= 1
        if not self._clients[client]:
            del self._clients[client]

    def _displace(self, mine: int) -> None:
        """Make room in a full queue for a client that has `mine` in it. Raises BusyError if no other one has more."""
        client = max(self._clients, key=lambda each: len(self._clients[each]), default="")
        if len(self._clients.get(client, ())) <= mine + 1:
            raise BusyError("too many searches at once")
        turn = self._clients[client][-1]
        self._remove(client, turn)
        # A time-out may have come first.
        if not turn.done():
            turn.set_exception(BusyError("too many searches at once"))

    def _release(self) -> None:
        """Give a turn to the client that has waited longest for one; it is free if nobody waits."""
        while self._clients:
            client, turns = next(iter(self._clients.items()))
            turn = turns[0]
            self._remove(client, turn)
            if client in self._clients:
                self._clients.move_to_end(client)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def close(self) -> None:
        """End the threads when the searches that have begun are over; none of those that wait begins."""
        self._threads.shutdown(wait=False, cancel_futures=True)
