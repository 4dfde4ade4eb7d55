"""The adapter for http and https: request slots of hosts and addresses, robots.txt, conditional requests (`web.py`).

A redirect is an event for the frontier, except in a chain that sets cookies within one host: the rule is in `chain.py`.
"""

from __future__ import annotations

from processors.frontier.politeness import hold_of
from processors.urls import guard
from schemas.records import FetchRequest, Record
from streams.fetch.adapters import Tools
from streams.fetch.adapters.chain import Chain, Redirect
from streams.fetch.adapters.web import Web
from streams.fetch.answers import ALLOW, Answers, FetchError
from streams.fetch.hosts import Hosts
from streams.fetch.name_lookup import lookup
from streams.fetch.pace import LONGEST_START


class Http:
    """An `Adapter`. Create and use it inside a running event loop."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._web = Web(tools.settings, tools.blobs, tools.clock)
        self._hosts = Hosts(self._web, tools.pace, tools.places, tools.settings, tools.lookup or lookup)

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host."""
        return await self._hosts.resolve(request, self._tools.clock())

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request, after waiting for its slots. Raises FetchError, StoreError, TooLongError."""
        tools, patience = self._tools, self._tools.settings.patience
        if request.address and (why := guard(request.address, tools.settings.networks)):
            return Answers(request, tools.clock()).refused(f"{why}; {ALLOW}")
        async with tools.pace.host(request.host, request.pause / 1000, patience):
            address = request.address or (await self._hosts.addresses(request.host))[0]
            try:
                return await self._exchange(request, address)
            except FetchError as failure:
                pause = max(request.pause, int(tools.settings.pause * 1_000))
                tools.pace.hold(request.host, hold_of(failure.status, failure.wait, pause) / 1_000)
                raise

    async def _exchange(self, request: FetchRequest, address: str) -> list[Record]:
        """Send a request, and the further ones of a chain that sets cookies; the slot of the host is held throughout."""
        tools, pause = self._tools, request.pause / 1000
        chain, patience = Chain(request, tools.clock()), tools.settings.patience
        while True:
            # Once begun, a chain waits without limit: deferred, it would begin anew each time.
            async with tools.pace.address(address, None if chain.hops else patience), tools.places:
                found = await self._web.get(request, address, chain.url, chain.cookie)
            if not isinstance(found, Redirect):
                return found or chain.ended(tools.clock())
            # With a long pause the target is a request of its own: this one would be in flight meanwhile.
            target = chain.next_url(found) if pause <= LONGEST_START else ""
            if target:
                await tools.pace.rest(pause)
            if not target or not (target == request.url or await self._hosts.allows(request.host, address, target, tools.clock())):
                return chain.redirected(found, tools.clock())
            chain.follow(found)

    async def close(self) -> None:
        """Close connections and threads."""
        self._hosts.close()
        await self._web.close()
