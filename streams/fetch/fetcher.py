"""Fetcher: the entry point of the fetch edge. Takes a request and returns the records that answer it.

Strategy: each request is a task; the pace decides when it is sent, an adapter interprets the response. No behavior of a server, a
file or a name server raises an exception here.

Delivery: the records of an answer belong together, and to the offset of their request. A request that is cancelled, or interrupted
by a crash, has no answer and is repeated; both answers have the same version, so that the second replaces the first (law 3).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from processors.schemes import scheme_of
from schemas.ports import Blobs
from schemas.records import FetchRequest, Record
from streams.fetch.adapters import MAPPED, Adapter, Adapters, Lookup, Tools
from streams.fetch.answers import Answers, FetchError, StoreError
from streams.fetch.pace import Pace, TooLongError
from streams.fetch.settings import FetchSettings

_log = logging.getLogger(__name__)


class Fetcher:
    """Answers requests, hundreds at once. An async context manager; without `with`, call `close()` at the end."""

    def __init__(
        self,
        settings: FetchSettings,
        blobs: Blobs,
        clock: Callable[[], int],
        *,
        lookup: Lookup | None = None,
        pace: Pace | None = None,
        own: Path | None = None,
    ) -> None:
        """`clock` returns ms since the epoch; `own`: the data folder. Raises ValueError for a malformed network."""
        settings.networks  # noqa: B018 - parsed here, so that the mistake is seen before anything is fetched
        self._clock = clock
        self.pace = pace or Pace(settings.pause)
        """Request slots of hosts and addresses."""
        self._adapters = Adapters(Tools(settings, blobs, clock, self.pace, asyncio.Semaphore(settings.concurrency), lookup, own))
        self.store_error: StoreError | None = None
        """Set when the blob store or the spool failed (a full disk): the runner has to stop, whatever the answer was."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections and threads."""
        await self._adapters.close()

    def adapter(self, request: FetchRequest) -> Adapter:
        """Return the adapter of a request. Raises FetchError for a scheme that has none."""
        return self._adapters.of(MAPPED if request.local else scheme_of(request.url).name)

    def wait(self) -> None:
        """Delay the next request to each address by one full pause: another process may have sent one a moment ago."""
        self.pace.wait()

    def deferred(self, request: FetchRequest, wait: float) -> list[Record]:
        """Return the records that answer a request which would wait for `wait` seconds."""
        return Answers(request, self._clock()).deferred(int(wait * 1000))

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request. Raises only CancelledError."""
        answers = Answers(request, self._clock())
        try:
            adapter = self.adapter(request)
            return await (adapter.resolve if request.kind == "resolve" else adapter.fetch)(request)
        except TooLongError as error:
            return answers.deferred(int(error.wait * 1000))
        except FetchError as failure:
            # Only `resolved` answers a request of this kind: the frontier would wait for it forever.
            return answers.resolved("", None, failure) if request.kind == "resolve" else answers.failed(failure)
        except StoreError as error:
            self.store_error = error
            return answers.failed(FetchError(f"cannot be stored: {error.strerror}", retryable=True))
        except Exception as error:  # noqa: BLE001 - the last door
            # A bug of this program: log its traceback, and answer the request, without which the frontier would wait forever.
            _log.exception("fetching %s", request.url)
            ours = FetchError(f"error in the fetch edge: {type(error).__name__}: {error}", retryable=False)
            return answers.resolved("", None, ours) if request.kind == "resolve" else answers.failed(ours)
