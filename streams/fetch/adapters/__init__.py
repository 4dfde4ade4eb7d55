"""One adapter a protocol, and the table that finds it by the scheme of a URL.

A further protocol is a row in `processors/schemes.py`, an adapter in this folder, and a row in `ADAPTERS`.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from schemas.ports import Blobs
from schemas.records import FetchRequest, Record
from streams.fetch.answers import FetchError
from streams.fetch.pace import Pace
from streams.fetch.settings import FetchSettings

Lookup = Callable[[str, int], Sequence[str]]
"""Addresses of a host, best first, in a thread that may block. Raises OSError and UnicodeError."""


class Tools(NamedTuple):
    """What an adapter works with."""

    settings: FetchSettings
    blobs: Blobs
    clock: Callable[[], int]
    """Gives ms since the epoch."""
    pace: Pace
    """Turns at hosts and addresses."""
    places: asyncio.Semaphore
    """Exchanges at once, over all adapters."""
    lookup: Lookup | None = None
    own: Path | None = None
    """The data folder, which is never fetched: a run that gathers what it writes would not end."""


class Adapter(Protocol):
    """Fetches the objects of some schemes. FetchError, StoreError and TooLongError become records in `Fetcher`."""

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that says all of a host: its address, and its robots.txt."""
        ...

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the answers to a request for an object."""
        ...

    async def close(self) -> None:
        """Close connections and threads."""
        ...


@runtime_checkable
class BulkAdapter(Protocol):
    """An adapter whose requests are answered many at a time, on a thread: what it reads is near and needs no turns."""

    def read_all(self, requests: Sequence[FetchRequest]) -> Iterator[list[Record]]:
        """Yield the answers to each request, in order. Raises StoreError."""
        ...


ADAPTERS: Mapping[str, str] = {
    "file": "streams.fetch.adapters.local:Local",
    "http": "streams.fetch.adapters.http:Http",
    "https": "streams.fetch.adapters.http:Http",
}
"""The adapter of each scheme, as module and class; a module is imported for the first URL of its schemes."""


class Adapters:
    """The adapters in use, each made for the first URL of one of its schemes."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._made: dict[str, Adapter] = {}

    def of(self, scheme: str) -> Adapter:
        """Return the adapter of a scheme. Raises FetchError where there is none."""
        place = ADAPTERS.get(scheme, "")
        if not place:
            raise FetchError("not a scheme that can be fetched", retryable=False)
        if place not in self._made:
            module, _, name = place.partition(":")
            self._made[place] = getattr(importlib.import_module(module), name)(self._tools)
        return self._made[place]

    async def close(self) -> None:
        """Close all that were made."""
        for adapter in self._made.values():
            await adapter.close()
