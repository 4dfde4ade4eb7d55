"""The adapter for http and https: request slots of hosts and addresses, robots.txt, conditional requests (`web.py`)."""

from __future__ import annotations

from processors.urls import guard
from schemas.records import FetchRequest, Record
from streams.fetch.adapters import Tools
from streams.fetch.adapters.web import Web
from streams.fetch.answers import Answers
from streams.fetch.hosts import Hosts, lookup


class Http:
    """An `Adapter`. Create and use it inside a running event loop."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._web = Web(tools.settings, tools.blobs, tools.clock)
        self._hosts = Hosts(self._web, tools.pace, tools.settings, tools.lookup or lookup)

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host."""
        return await self._hosts.resolve(request, self._tools.clock())

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request, after waiting for its slots. Raises FetchError, StoreError, TooLongError."""
        tools, patience = self._tools, self._tools.settings.patience
        if request.address and (why := guard(request.address, tools.settings.networks)):
            return Answers(request, tools.clock()).refused(why)
        async with tools.pace.host(request.host, request.pause / 1000, patience):
            address = request.address or (await self._hosts.addresses(request.host))[0]
            async with tools.pace.address(address, patience), tools.places:
                return await self._web.get(request, address)

    async def close(self) -> None:
        """Close connections and threads."""
        self._hosts.close()
        await self._web.close()
