"""One adapter per protocol, and the table that selects it by the scheme of a URL.

To add a protocol: a row in `processors/schemes.py`, an adapter in this folder, and a row in `ADAPTERS`.
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
"""Returns the addresses of a host, best first; may block its thread. Raises OSError and UnicodeError."""


class Tools(NamedTuple):
    """Dependencies of an adapter."""

    settings: FetchSettings
    blobs: Blobs
    clock: Callable[[], int]
    """Returns ms since the epoch."""
    pace: Pace
    """Request slots of hosts and addresses."""
    places: asyncio.Semaphore
    """Limits the simultaneous exchanges of all adapters together."""
    lookup: Lookup | None = None
    own: Path | None = None
    """The data folder, which is never fetched: a run that fetches its own output would not end."""


class Adapter(Protocol):
    """Fetches objects of one or more schemes. `Fetcher` turns FetchError, StoreError and TooLongError into records."""

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host: its address and its robots.txt."""
        ...

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request for an object."""
        ...

    async def close(self) -> None:
        """Close connections and threads."""
        ...


@runtime_checkable
class BulkAdapter(Protocol):
    """An adapter that answers many requests at a time on a thread: its sources are local and need no rate limit."""

    def read_all(self, requests: Sequence[FetchRequest]) -> Iterator[list[Record]]:
        """Yield the records that answer each request, in order. Raises StoreError."""
        ...


MAPPED = "mapped"
"""Key in `ADAPTERS` of the adapter that reads local files for URLs of a server (`FetchRequest.local`)."""
ADAPTERS: Mapping[str, str] = {
    "file": "streams.fetch.adapters.local:Local",
    "ftp": "streams.fetch.adapters.ftp:Ftp",
    "gopher": "streams.fetch.adapters.gopher:Gopher",
    "http": "streams.fetch.adapters.http:Http",
    "https": "streams.fetch.adapters.http:Http",
    "news": "streams.fetch.adapters.nntp:Nntp",
    MAPPED: "streams.fetch.adapters.mapped:Mapped",
}
"""The adapter of each scheme, as module and class; a module is imported at the first URL of its schemes."""


class Adapters:
    """The adapters in use, each created at the first URL of one of its schemes."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._made: dict[str, Adapter] = {}

    def of(self, scheme: str) -> Adapter:
        """Return the adapter of a scheme. Raises FetchError if there is none."""
        place = ADAPTERS.get(scheme, "")
        if not place:
            raise FetchError("not a scheme that can be fetched", retryable=False)
        if place not in self._made:
            module, _, name = place.partition(":")
            self._made[place] = getattr(importlib.import_module(module), name)(self._tools)
        return self._made[place]

    async def close(self) -> None:
        """Close all adapters that were created."""
        for adapter in self._made.values():
            await adapter.close()
