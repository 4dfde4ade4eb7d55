"""What the routes of the gateway share: options, indexes, turns, the Gatherer's side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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

EXPORTS = 2
"""Exports, objects and reports at once: they take long, and have threads of their own."""
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
        self._slow = Slots(EXPORTS, EXPORTS * 4, options.timeout)
        self._all = (self._plain, self._expensive, self._slow)
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

    def searcher(self, index: BrokerIndex) -> Searcher:
        """Return a searcher of an index."""
        return Searcher(index, self.options.budget)

    async def _run(self, slots: Slots, request: Request, ask: Callable[[], Answer]) -> Answer:
        try:
            return await slots.run(client_of(request), ask)
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
