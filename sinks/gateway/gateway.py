"""What the routes of the gateway share: options, indexes, turns, the Gatherer's side."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from typing import TypeVar

from starlette.requests import Request

from processors.query.limits import cost
from schemas.ports import BrokerIndex
from sinks.gateway.answers import Searcher
from sinks.gateway.guard import client_of
from sinks.gateway.index_pool import IndexPool
from sinks.gateway.metrics import GatewayMetrics
from sinks.gateway.options import GatewayOptions
from sinks.gateway.ports import Collection, OpenIndex
from sinks.gateway.refinement import asked
from sinks.gateway.slots import BusyError, Slots
from sinks.gateway.state import State

SLOW = 2
"""Objects and reports that are prepared at once: they take long, and have threads of their own."""
EXPORTS, EXPORTS_EACH = 8, 2
"""Exports at once, of all clients and of each; their pieces are made one after the other."""
EXPENSIVE = 15
"""Cost of a query above which it takes a turn of the expensive ones: patterns that may begin with any letter, three errors."""

Answer = TypeVar("Answer")


class Gateway:
    """One Broker's gateway; made in the event loop that serves it."""

    def __init__(self, options: GatewayOptions, open_index: OpenIndex, collection: Collection) -> None:
        self.options = options
        self.collection = collection
        self.metrics = GatewayMetrics()
        self.indexes = IndexPool(open_index)
        self._plain = Slots(options.searches, options.queue, options.timeout)
        self._expensive = Slots(max(1, options.searches // 2), options.queue // 4, options.timeout)
        self._slow = Slots(SLOW, 4 * SLOW, options.timeout)
        self._pieces = Slots(1, EXPORTS, 60 * options.timeout)
        self._all = (self._plain, self._expensive, self._slow, self._pieces)
        self._exporting: Counter[str] = Counter()
        self.metrics.waiting.set_function(lambda: sum(slots.waiting for slots in self._all))

    async def search(self, request: Request, ask: Callable[[Searcher], Answer], state: State | None = None) -> Answer:
        """Return what `ask` returns for a searcher, when it is this client's turn; `state`: what is searched.

        Raises BusyError, and what `ask` raises.
        """
        expensive = state is not None and cost(asked(state).tree) > EXPENSIVE
        slots = self._expensive if expensive else self._plain
        return await self._run(slots, request, lambda: self.indexes.ask(lambda index: ask(self.searcher(index))))

    async def slow(self, request: Request, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, which may take long and searches nothing. Raises BusyError, and what `ask` raises."""
        return await self._run(self._slow, request, ask)

    async def stream(self, request: Request, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Return the pieces of an export, of which the first is made now. Raises BusyError, and what making it raises."""
        client = client_of(request)
        if self._exporting[client] >= EXPORTS_EACH or self._exporting.total() >= EXPORTS:
            self.metrics.refused.labels("busy").inc()
            raise BusyError("too many exports at once", 30)
        self._exporting[client] += 1
        try:
            first = await self._piece(client, pieces)
        except BaseException:
            self._end(client, pieces)
            raise
        return self._streamed(client, first, pieces)

    async def _streamed(self, client: str, piece: bytes | None, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        try:
            while piece is not None:
                yield piece
                piece = await self._piece(client, pieces)
        finally:
            self._end(client, pieces)

    async def _piece(self, client: str, pieces: Iterator[bytes]) -> bytes | None:
        return await self._pieces.run(client, lambda: next(pieces, None))

    def _end(self, client: str, pieces: Iterator[bytes]) -> None:
        self._exporting[client] -= 1
        if not self._exporting[client]:
            del self._exporting[client]
        # It closes itself if a piece is being made now.
        with suppress(ValueError):
            if isinstance(pieces, Generator):
                pieces.close()

    def searcher(self, index: BrokerIndex) -> Searcher:
        """Return a searcher of an index."""
        return Searcher(index, self.options.budget)

    async def _run(self, slots: Slots, request: Request, ask: Callable[[], Answer]) -> Answer:
        try:
            return await slots.run(client_of(request), ask, request.is_disconnected)
        except BusyError:
            self.metrics.refused.labels("busy").inc()
            raise

    async def is_ready(self) -> str:
        """Return why searches cannot be answered now; empty if they can."""
        try:
            await asyncio.to_thread(self.indexes.ask, lambda index: index.languages)
        except (OSError, RuntimeError) as error:
            return str(error)
        return ""

    def close(self) -> None:
        """Release threads and indexes."""
        for slots in self._all:
            slots.close()
        self.indexes.close()
