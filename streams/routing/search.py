"""A routed search: the best Brokers for a query, here and on other gateways, are asked side by side within one deadline.

Laws:
- The answer is there when the deadline is over, whatever a gateway does, or the server of the own indexes. The registry may take
  the first quarter of the time, statistics what is left of the first half.
- A gateway or a Broker without an answer is named with the reason, and nothing else is lost by it.
- Words of the data folder's own Brokers are counted before the time begins: they take long once, and then nearly nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from processors.query import QueryError, unparse
from processors.query.routing.choice import choose
from processors.query.routing.in_views import InViews, has_views
from processors.query.routing.merging import Answered, Routed, merge
from schemas.query import Query
from streams.fetch.adapters.web import Client
from streams.fetch.name_lookup import NameLookup, lookup
from streams.fetch.settings import FetchSettings
from streams.routing.registered import LATE, registered_servers
from streams.routing.remote import RemoteBrokers, SilentError, client_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from processors.query.routing.statistics import Statistics
    from processors.query.terms import Views
    from streams.routing.local import LocalBrokers

LOOKUPS = 4

Answer = TypeVar("Answer")


class Options(NamedTuple):
    """Options of routed searches."""

    servers: tuple[str, ...] = ()
    """URLs of gateways, each with a slash at its end."""
    most: int = 10
    """Maximum number of Brokers that are asked."""
    deadline: float = 2.0
    """Seconds."""
    fetch: FetchSettings = FetchSettings()
    """Settings of the fetch edge, for the addresses that may be dialled."""
    data: Path | None = None
    """Data folder, in which statistics of other gateways are kept; None: nowhere."""
    registry: str = ""
    """Local Broker whose registered gateways are asked, too; empty: none."""
    own: str = ""
    """URL under which this gateway registers, which is not asked."""


class _Place(NamedTuple):
    """A Broker: its gateway (None: it is local), and its name there."""

    server: RemoteBrokers | None
    name: str

    @property
    def label(self) -> str:
        """Name of the Broker among all."""
        return self.name if self.server is None else f"{self.server.url}brokers/{self.name}"


def routed_search(local: LocalBrokers, options: Options, query: Query, limit: int, scope: InViews | None = None) -> Routed:
    """Return the best hits of the Brokers that answer a query best, those of the data folder and those of `options.servers`.

    `scope`: what each makes of a query that names views, which hold everything in `query`.
    """
    own = local.all_statistics()
    asked = _Asked(query, limit, scope, {} if scope is None else {name: local.views(name) for name in own})
    end = time.monotonic() + options.deadline
    servers, silent = _registered(local, options, query)
    search = _Search(local, own, options._replace(servers=(*options.servers, *servers)), asked, silent, end)
    return asyncio.run(search.run())


def _registered(local: LocalBrokers, options: Options, query: Query) -> tuple[list[str], dict[str, str]]:
    """Return the gateways that have registered, and why they are not known, if so."""
    if not options.registry:
        return [], {}
    try:
        return registered_servers(local, options.registry, query, options.own, options.deadline / 4), {}
    except (OSError, RuntimeError, QueryError) as error:
        return [], {f"the registry {options.registry}": str(error)[:200]}


class _Asked(NamedTuple):
    """What is asked of each Broker."""

    query: Query
    limit: int
    scope: InViews | None
    views: Mapping[str, Views]
    """Those of the local Brokers, if the query names any."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The views that a Broker needs."""
        return self.scope.paths if self.scope else ()

    @property
    def text(self) -> str:
        """The query for other gateways."""
        return self.scope.text if self.scope else unparse(self.query)

    def lack(self, name: str) -> bool:
        """Return whether a local Broker has not the views."""
        return self.scope is not None and not has_views(self.views[name], self.scope.paths)

    def of(self, name: str) -> Query:
        """Return the query for a local Broker. Raises QueryError."""
        return self.scope.written_out(self.views[name]) if self.scope else self.query


class _Search:
    """One routed search."""

    def __init__(
        self,
        local: LocalBrokers,
        own: Mapping[str, Statistics],
        options: Options,
        asked: _Asked,
        silent: dict[str, str],
        end: float,
    ) -> None:
        """`silent`: who has given no answer so far; `end`: when the deadline is over, by the monotonic clock."""
        self._begin_search = local.begin_search
        self._options, self._wanted = options, asked
        self._without = [name for name in own if asked.lack(name)]
        self._own = {name: known for name, known in own.items() if name not in self._without}
        self._end = end
        self._silent = silent

    async def run(self) -> Routed:
        async with _remotes(self._options) as servers:
            places, statistics = await self._known(servers)
            chosen = choose(self._wanted.query, statistics, self._options.most)
            statistics.clear()  # they are large, and frames of errors may hold them for long
            answers = await self._within(
                {each.name: self._asked(places[each.name]) for each in chosen}, self._end - time.monotonic()
            )  # fmt: skip
        named = [answer._replace(broker=label) for label, answer in answers.items()]
        hits, least, most = merge(chosen, named, self._wanted.limit)
        return Routed(hits, least, most, [each.name for each in chosen], self._silent, len(places), self._without)

    async def _known(self, servers: Sequence[RemoteBrokers]) -> tuple[dict[str, _Place], dict[str, Statistics]]:
        """Return the Brokers whose statistics are there when half of the time is over, with these, by label."""
        found: dict[_Place, Statistics] = {}
        half = self._end - self._options.deadline / 2 - time.monotonic()
        await self._within({server.url: self._ask_words(server, found) for server in servers}, half)
        own = {_Place(None, name): known for name, known in self._own.items()}
        every = {place.label: (place, known) for place, known in (own | found).items()}
        found.clear()
        places = {label: place for label, (place, _) in every.items()}
        return places, {label: known for label, (_, known) in every.items()}

    async def _ask_words(self, server: RemoteBrokers, found: dict[_Place, Statistics]) -> None:
        """Add the statistics of a gateway's Brokers to `found` as they arrive. Raises SilentError."""

        async def ask(place: _Place, mark: str) -> None:
            try:
                found[place] = await server.statistics(place.name, mark)
            except SilentError as error:
                self._silent[place.label] = str(error)

        listed = await server.listed(self._wanted.paths)
        self._without += [_Place(server, name).label for name in listed.without]
        await asyncio.gather(*(ask(_Place(server, name), mark) for name, mark in listed.marks.items()))

    def _asked(self, place: _Place) -> Coroutine[Any, Any, Answered]:
        if place.server is not None:
            return place.server.search(place.name, self._wanted.text, self._wanted.limit)
        return self._local_answer(place.name)

    async def _local_answer(self, name: str) -> Answered:
        try:
            return await asyncio.wrap_future(self._begin_search(name, self._wanted.of(name), self._wanted.limit))
        except (OSError, RuntimeError, QueryError) as error:
            raise SilentError(str(error)[:200]) from None

    async def _within(self, asked: Mapping[str, Coroutine[Any, Any, Answer]], seconds: float) -> dict[str, Answer]:
        """Return the answers that arrive in time, in the order of `asked`; note who is silent."""
        tasks = {name: asyncio.ensure_future(each) for name, each in asked.items()}
        if not tasks:
            return {}
        _, late = await asyncio.wait(tasks.values(), timeout=max(0.0, seconds))
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        found: dict[str, Answer] = {}
        for name, task in tasks.items():
            error = None if task.cancelled() else task.exception()
            if task.cancelled() or isinstance(error, SilentError):
                self._silent[name] = str(error) if error else LATE
            elif error is not None:
                raise error
            else:
                found[name] = task.result()
        return found


@asynccontextmanager
async def _remotes(options: Options) -> AsyncIterator[Sequence[RemoteBrokers]]:
    """Yield the gateways of the options."""
    if not options.servers:
        yield ()
        return
    settings = client_settings(options.fetch, options.deadline)
    client, look = Client(settings), NameLookup(settings, lookup, LOOKUPS)
    try:
        yield [RemoteBrokers(url, client, look, options.data) for url in dict.fromkeys(options.servers)]
    finally:
        look.close()
        await client.close()
