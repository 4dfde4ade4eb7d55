"""Fetcher: the one door of the edge. A request goes in, the records that answer it come out.

Strategy: each request is a task; courtesy decides when it goes out, an adapter what its answer means. Nothing that a server,
a file or a name server does leaves here as an exception.

Delivery: the records of an answer belong together, and to the offset of their request. A request that is cancelled, or cut
off by a crash, has no answer, and is made again; its version makes the second answer one with the first (law 3).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from processors.urls import guard
from schemas.ports import Blobs
from schemas.records import FetchRequest, Record
from streams.fetch.adapters.local import fetch_local, weighs
from streams.fetch.answers import Answers, FetchError, StoreError
from streams.fetch.pace import Pace, TooLongError
from streams.fetch.settings import FetchSettings

if TYPE_CHECKING:
    from streams.fetch.adapters.web import Web
    from streams.fetch.hosts import Hosts, Lookup

_log = logging.getLogger(__name__)


class Fetcher:
    """Answers requests, hundreds at once. An async context manager, or `close()` at the end."""

    def __init__(
        self,
        settings: FetchSettings,
        blobs: Blobs,
        clock: Callable[[], int],
        *,
        lookup: Lookup | None = None,
        pace: Pace | None = None,
    ) -> None:
        """`clock` gives ms since the epoch. Raises ValueError with one line for a malformed network in `settings.allow`."""
        self._networks = settings.networks
        self._settings = settings
        self._blobs = blobs
        self._clock = clock
        self._lookup = lookup
        self._pace = pace or Pace(settings.pause)
        self._places = asyncio.Semaphore(settings.concurrency)
        self._edge: tuple[Web, Hosts] | None = None
        self.store_error: StoreError | None = None
        """Set when the blob store or the spool failed (a full disk): the runner has to stop, whatever was answered."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of connections and threads."""
        if self._edge is not None:
            web, hosts = self._edge
            hosts.close()
            await web.close()

    def wait(self) -> None:
        """Others may have asked any address a moment ago: each waits one full pause."""
        self._pace.wait()

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """The records that answer a request; each begins where its topic wants it. Raises nothing but CancelledError."""
        answers = Answers(request, self._clock())
        try:
            if request.url.startswith("file:"):
                return await self._local(request)
            if request.kind == "resolve":
                return await self._hosts.resolve(request, self._clock())
            return await self._object(request)
        except TooLongError as error:
            return answers.deferred(int(error.wait * 1000))
        except FetchError as failure:
            return answers.failed(failure)
        except StoreError as error:
            self.store_error = error
            return answers.failed(FetchError(f"cannot be stored: {error.strerror}", retryable=True))
        except Exception as error:  # noqa: BLE001 - the last door
            # A mistake of ours: it gets its traceback, and the request its answer, without which the frontier would wait for ever.
            _log.exception("fetching %s", request.url)
            ours = FetchError(f"error in the fetch edge: {type(error).__name__}: {error}", retryable=False)
            return answers.resolved("", None, ours) if request.kind == "resolve" else answers.failed(ours)

    async def _local(self, request: FetchRequest) -> list[Record]:
        if weighs(request):
            return await asyncio.to_thread(fetch_local, request, self._blobs, self._clock(), self._settings.max_file)
        return fetch_local(request, self._blobs, self._clock(), self._settings.max_file)

    async def _object(self, request: FetchRequest) -> list[Record]:
        if request.address and (why := guard(request.address, self._networks)):
            return Answers(request, self._clock()).refused(why)
        patience = self._settings.patience
        async with self._pace.host(request.host, request.pause / 1000, patience):
            address = request.address or (await self._hosts.addresses(request.host))[0]
            async with self._pace.address(address, patience), self._places:
                return await self._web.get(request, address)

    @property
    def _web(self) -> Web:
        return self._open()[0]

    @property
    def _hosts(self) -> Hosts:
        return self._open()[1]

    def _open(self) -> tuple[Web, Hosts]:
        """The HTTP side, made when it is first asked for: who gathers files only never loads it."""
        if self._edge is None:
            from streams.fetch.adapters.web import Web  # noqa: PLC0415
            from streams.fetch.hosts import Hosts, lookup  # noqa: PLC0415

            web = Web(self._settings, self._blobs, self._clock)
            self._edge = web, Hosts(web, self._pace, self._settings, self._lookup or lookup)
        return self._edge
