"""Resolves hosts: looks up and checks their addresses once, and reads their robots.txt.

Laws:
- A host with any refused address is refused: the resolver must not decide which address is connected to.
- The pinned address is one that accepted a connection, if any did.
- RFC 9309, 2.3.1: redirects are followed (five, under the authority of the first); 4xx allows all; 5xx and no answer disallow
  all. 429 counts as no answer: "too many requests" does not mean that all is allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from processors.frontier.robots import MAX_ROBOTS, allowed, product_token
from processors.identity import frontier_key
from processors.schemes import is_web
from processors.urls import canonical
from schemas.records import FetchRequest, Record
from streams.fetch.adapters import Lookup
from streams.fetch.adapters.web import REDIRECTS, Web
from streams.fetch.answers import Answers, FetchError
from streams.fetch.decode import Decoding
from streams.fetch.name_lookup import NameLookup
from streams.fetch.pace import Pace
from streams.fetch.settings import FetchSettings

MAX_REDIRECTS = 5
MAX_TRIED = 4
"""Maximum number of addresses of a host to try, if the first ones accept no connection."""
THREADS = 16
MAX_KNOWN = 64
"""Maximum number of robots.txt files kept for redirects that the edge follows."""
ROBOTS_TTL = 3_600_000
"""How long they are kept, in ms; RFC 9309 (2.4) allows a day."""


class Hosts:
    """Answers requests to resolve."""

    def __init__(self, web: Web, pace: Pace, places: asyncio.Semaphore, settings: FetchSettings, look: Lookup) -> None:
        self._web = web
        self._pace = pace
        self._places = places
        self._settings = settings
        self._lookup = NameLookup(settings, look, THREADS)
        self._known: dict[str, tuple[int, bytes | None]] = {}
        """Expiry and robots.txt by host; None disallows all."""

    def close(self) -> None:
        """End look-ups without waiting for them."""
        self._lookup.close()

    async def resolve(self, request: FetchRequest, now: int) -> list[Record]:
        """Return the one event that describes a host. Waits for its slot without limit: the frontier waits for this event only."""
        answers = Answers(request, now)
        async with self._pace.host(request.host, request.pause / 1000, None):
            address = ""
            try:
                addresses = await self.addresses(request.host)
                address = addresses[0]
                address, robots = await self._robots(request.host, addresses)
            except FetchError as failure:
                return answers.resolved(address, None, failure)
        return answers.resolved(address, robots)

    async def allows(self, host: str, address: str, url: str, now: int) -> bool:
        """Return whether robots.txt of a host allows a URL: the frontier has checked that of the request only.

        Reads robots.txt if this process has not done so lately; outside of the slot of the address.
        """
        until, robots = self._known.pop(host, (0, None))
        if until <= now:
            try:
                until, robots = now + ROBOTS_TTL, (await self._robots(host, (address,)))[1]
            except FetchError as failure:
                # RFC 9309, 2.3.1.4: an unreachable robots.txt disallows all.
                until, robots = now + failure.wait, None
        self._known[host] = until, robots
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return robots is not None and allowed(robots, product_token(self._settings.user_agent), url)

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses of a frontier key, all of them allowed to be connected to. Raises FetchError."""
        parts = urlsplit(host)
        return await self._lookup.addresses(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))

    async def _robots(self, host: str, addresses: Sequence[str]) -> tuple[str, bytes]:
        """Return the first address that answered, and robots.txt (empty: all allowed). Raises FetchError if all is disallowed."""
        url = f"{host}/robots.txt"
        pinned, robots, target = await self._first(url, addresses)
        address = pinned
        for _ in range(MAX_REDIRECTS):
            if target is None:
                return pinned, robots
            following = canonical(target, url)
            if following is None or not is_web(following):
                return pinned, b""
            if frontier_key(following) != frontier_key(url):
                address = (await self.addresses(frontier_key(following)))[0]
            url = following
            robots, target = await self._read(url, address)
        return pinned, robots

    async def _first(self, url: str, addresses: Sequence[str]) -> tuple[str, bytes, str | None]:
        tried = addresses[:MAX_TRIED]
        for address in tried:
            try:
                return address, *await self._read(url, address)
            except FetchError as failure:
                if not failure.unreachable or address == tried[-1]:
                    raise
        raise AssertionError("no address to try")

    async def _read(self, url: str, address: str) -> tuple[bytes, str | None]:
        """Return the relevant part of robots.txt, or the target of a redirect."""
        async with self._pace.address(address, None), self._places, self._web.exchange(url, address, {}) as response:
            status = response.status
            if status in REDIRECTS:
                return b"", response.headers.get("Location", "")
            if 200 <= status < 300:
                # A file over the limit is truncated, not refused, so the limits of the decoder are higher.
                decoding = Decoding(response.headers.get("Content-Encoding", ""), 2 * MAX_ROBOTS, self._settings.max_ratio)
                found = bytearray()
                async for piece in self._web.pieces(response, decoding):
                    found += piece
                    if len(found) >= MAX_ROBOTS:
                        break
                return bytes(found[:MAX_ROBOTS]), None
            if status == 429 or status >= 500:
                raise self._web.status_failure(response)
            return b"", None
