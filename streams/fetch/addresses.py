"""Addresses of hosts for protocols without robots.txt: looked up once, all checked, one pinned.

Laws:
- A host with any refused address is refused: the resolver must not decide which address is connected to.
- The pinned address is one that accepted a connection, if any did.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from processors.urls import guard
from schemas.records import FetchRequest, Record
from streams.fetch.adapters import Tools
from streams.fetch.adapters.connection import Connection
from streams.fetch.answers import ALLOW, Answers, FetchError
from streams.fetch.hosts import MAX_TRIED
from streams.fetch.name_lookup import NameLookup, lookup

THREADS = 4


class Addresses:
    """Answers requests to resolve a host. `port`: the default port of the scheme."""

    def __init__(self, tools: Tools, port: int) -> None:
        self._tools = tools
        self._port = port
        self._lookup = NameLookup(tools.settings, tools.lookup or lookup, THREADS)

    def close(self) -> None:
        """End look-ups without waiting for them."""
        self._lookup.close()

    def port(self, host: str) -> int:
        """Return the port of a frontier key."""
        return urlsplit(host).port or self._port

    def refusal(self, request: FetchRequest) -> str:
        """Return why the address of a request is refused, "" if it is not, or if the request has none."""
        why = guard(request.address, self._tools.settings.networks) if request.address else ""
        return f"{why}; {ALLOW}" if why else ""

    @asynccontextmanager
    async def slots(self, request: FetchRequest) -> AsyncIterator[str]:
        """Enter the slots of a request's host and address; yield the address. Raises FetchError and TooLongError."""
        tools, patience = self._tools, self._tools.settings.patience
        async with tools.pace.host(request.host, request.pause / 1000, patience):
            address = request.address or (await self.of(request.host))[0]
            async with tools.pace.address(address, patience), tools.places:
                yield address

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host: an address, and an empty robots.txt, which allows all."""
        tools, answers = self._tools, Answers(request, self._tools.clock())
        async with tools.pace.host(request.host, request.pause / 1000, None):
            address = ""
            try:
                addresses = await self.of(request.host)
                address = addresses[0]
                address = await self._reachable(request.host, addresses[:MAX_TRIED])
            except FetchError as failure:
                return answers.resolved(address, None, failure)
        return answers.resolved(address, b"")

    async def _reachable(self, host: str, addresses: Sequence[str]) -> str:
        """Return the first address that accepts a connection. One of a single address is not tested: its first request will."""
        for address in addresses[:-1]:
            try:
                async with self._tools.pace.address(address, None), Connection(self._tools.settings, address, self.port(host)):
                    return address
            except FetchError as failure:
                if not failure.unreachable:
                    raise
        return addresses[-1]

    async def of(self, host: str) -> Sequence[str]:
        """Return the addresses of a frontier key, all of them allowed to be connected to. Raises FetchError."""
        return await self._lookup.addresses(urlsplit(host).hostname or "", self.port(host))
