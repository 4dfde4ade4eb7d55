"""What the routes of the gateway share: options, indexes, turns, the Gatherer's side."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, TypeVar

from starlette.requests import Request

from processors.query import QueryError
from processors.query.limits import cost
from processors.query.terms import Views
from schemas.ports import BrokerIndex
from schemas.query import Every, Query
from sinks.gateway.answers import Searcher, check_budget
from sinks.gateway.explanations import explained
from sinks.gateway.guard import client_of
from sinks.gateway.index_pool import IndexPool
from sinks.gateway.metrics import GatewayMetrics
from sinks.gateway.options import GatewayOptions
from sinks.gateway.ports import Collection, Event, OpenIndex
from sinks.gateway.refinement import asked
from sinks.gateway.slots import BusyError, Slots
from sinks.gateway.state import State

LOG = logging.getLogger("harvest.gateway")
SLOW = 2
"""Objects and reports that are prepared at once: they take long, and have threads of their own."""
STREAMS, STREAMS_EACH = 8, 2
"""Exports and objects that are sent at once, to all clients and to each; pieces of exports are made one after the other."""
READY = 1.0
"""Seconds for which an answer about readiness is returned again."""
EXPENSIVE = 15
"""Cost of a query above which it takes a turn of the expensive ones: patterns that may begin with any letter, three errors."""

Answer = TypeVar("Answer")


class Stream(NamedTuple):
    """A long answer that is being sent; `end` is called once."""

    client: str
    end: Callable[[], None]


class Gateway:
    """One Broker's gateway; made in the event loop that serves it."""

    def __init__(self, options: GatewayOptions, open_index: OpenIndex, collection: Collection) -> None:
        self.options = options
        self.collection = collection
        self.metrics = GatewayMetrics()
        self.indexes = IndexPool(open_index)
        self._plain = Slots(options.searches, options.queue, options.timeout)
        self._expensive = Slots(max(1, options.searches // 2), options.queue // 4, options.timeout)
        self._routed = Slots(options.searches, options.queue // 4, options.timeout)
        self._slow = Slots(SLOW, 4 * SLOW, options.timeout)
        self._counts = Slots(1, options.queue // 4, options.timeout)
        self._histories = Slots(1, SLOW, options.timeout)
        self._pieces = Slots(1, STREAMS, 60 * options.timeout)
        self._all = (self._plain, self._expensive, self._routed, self._slow, self._counts, self._histories, self._pieces)
        self._streams: Counter[str] = Counter()
        """Long answers of each client that are being sent."""
        self._ready: tuple[str, float] = ("", 0.0)
        """Why searches cannot be answered, and the time until which this holds."""
        self.metrics.waiting.set_function(lambda: sum(slots.waiting for slots in self._all))

    async def search(self, request: Request, ask: Callable[[Searcher], Answer], state: State | None = None) -> Answer:
        """Return what `ask` returns for a searcher, when it is this client's turn; `state`: what is searched.

        Raises BusyError, CollectionError if it names a view and the log cannot be read, and what `ask` raises.
        """
        views = None if state is None else await self._views(request, state)
        price = 0 if state is None else cost(asked(state, views=views).tree)
        return await self._run(
            self._slots(price), request, lambda: self.indexes.ask(lambda index: ask(self.searcher(index, views)))
        )

    async def _views(self, request: Request, state: State) -> Views | None:
        """Return the views that a state may name; None if it names none. Raises BusyError."""
        if "view" not in state.text.casefold():
            return None
        return await self._run(self._slow, request, self.collection.views)

    async def ask(self, request: Request, query: Query, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, which searches for a query in other indexes, when it is this client's turn.

        Raises BusyError, QueryRefused above the budget, and what `ask` raises.
        """
        check_budget(query, self.options.budget)
        return await self._run(self._slots(cost(query)), request, ask)

    async def routed(self, request: Request, query: Query, ask: Callable[[], Answer]) -> Answer:
        """As `ask`, with turns of its own: what waits for other gateways holds no turn of those who search here."""
        check_budget(query, self.options.budget)
        return await self._run(self._routed, request, ask)

    def _slots(self, price: int) -> Slots:
        return self._expensive if price > EXPENSIVE else self._plain

    async def slow(self, request: Request, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, which may take long and searches nothing. Raises BusyError, and what `ask` raises."""
        return await self._run(self._slow, request, ask)

    async def counting(self, request: Request, count: Callable[[], Answer]) -> Answer:
        """Return what `count` returns, which reads a whole archive: one at a time, in a turn of its own. Raises BusyError."""
        return await self._run(self._counts, request, count)

    async def history(self, request: Request, url: str) -> Sequence[Event]:
        """Return the events that concerned a URL: one history at a time, since each reads the whole log. Raises BusyError."""
        return await self._run(self._histories, request, lambda: self.collection.why(url))

    def stream(self, request: Request) -> Stream:
        """Return the count of a long answer, which ends with it. Raises BusyError."""
        client = client_of(request)
        if self._streams[client] >= STREAMS_EACH or self._streams.total() >= STREAMS:
            self.metrics.refused.labels("busy").inc()
            raise BusyError("too many exports and downloads at once", 30)
        self._streams[client] += 1

        def end() -> None:
            self._streams[client] -= 1
            if not self._streams[client]:
                del self._streams[client]

        return Stream(client, end)

    async def piece(self, stream: Stream, pieces: Iterator[bytes]) -> bytes | None:
        """Return the next piece of an export; None at its end. Raises what making it raises."""
        return await self._pieces.run(stream.client, lambda: next(pieces, None))

    def drop(self, pieces: Iterator[bytes], close: Callable[[], None]) -> None:
        """End an export of which no more is asked for, and close what it reads, once the piece that is being made is complete."""

        def end() -> None:
            if isinstance(pieces, Generator):
                pieces.close()
            close()

        self._pieces.after(end)

    def searcher(self, index: BrokerIndex, views: Views | None = None) -> Searcher:
        """Return a searcher of an index."""
        return Searcher(index, self.options.budget, self.options.facets, views)

    async def _run(self, slots: Slots, request: Request, ask: Callable[[], Answer]) -> Answer:
        try:
            return await slots.run(client_of(request), ask, request.is_disconnected)
        except BusyError:
            self.metrics.refused.labels("busy").inc()
            raise

    async def is_ready(self) -> str:
        """Return why searches cannot be answered now; empty if they can."""
        reason, until = self._ready
        if time.monotonic() < until:
            return reason
        self._ready = reason, time.monotonic() + READY
        try:
            await asyncio.to_thread(self.indexes.ask, lambda index: index.count(Every()))
            found = ""
        except (OSError, RuntimeError, QueryError) as error:
            found = explained(error).message
            if found != reason:
                LOG.warning("not ready: %s", error)
        self._ready = found, time.monotonic() + READY
        return found

    def close(self) -> None:
        """Release threads and indexes."""
        for slots in self._all:
            slots.close()
        self.indexes.close()
