"""The fetch edge: local files in bulk on a thread, servers as asyncio tasks.

Delivery: the answer to a request is committed with its offset. A request in flight when the process dies is repeated.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from processors.schemes import scheme_of
from schemas.ports import Logged
from schemas.records import FetchRequest
from streams.clock import now_ms
from streams.edges.base import EdgeBase, Finished, Source, framed
from streams.fetch import Fetcher, FetchSettings, StoreError
from streams.fetch.adapters import BulkAdapter
from streams.store import BodyStore
from streams.store.errors import StoreError as BodyStoreError
from streams.topology.routing import Router

BULK = 64
"""Local files that the thread reads at a time."""
AHEAD = 512
"""Maximum number of objects that wait for essence before fetching pauses."""


class UnsyncedBlobs:
    """Blobs whose `put` leaves flushing to the turn that commits the record."""

    def __init__(self, blobs: BodyStore) -> None:
        self._blobs = blobs

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `Blobs.put`, but durable only after the next sync. Raises OSError."""
        try:
            return self._blobs.write(body)
        except BodyStoreError as error:
            # Bodies that wait were to be stored first.
            raise OSError(errno.EIO, str(error)) from None

    def open(self, digest: str) -> BinaryIO:
        """As `Blobs.open`."""
        return self._blobs.open(digest)


class FetchEdge(EdgeBase):
    """Requests in, answers out. It ends if bodies cannot be stored."""

    def __init__(
        self, source: Source, folder: Path, blobs: BodyStore, settings: FetchSettings, partitions: int, router: Router
    ) -> None:
        """`folder` is the data folder."""
        super().__init__("fetch", "fetches", source, partitions, ordered=False)
        self._folder = blobs
        self._blobs = UnsyncedBlobs(blobs)
        self._settings = settings
        self._router = router
        self._fetcher = Fetcher(settings, self._blobs, now_ms, own=folder)
        self._threads = ThreadPoolExecutor(2, "fetch")
        self._tasks: set[asyncio.Task[None]] = set()

    def launch(self, ready: int = 0) -> None:
        """Start as many requests as there is room for; `ready` objects are already waiting for essence."""
        room = min(AHEAD - ready, self._settings.concurrency + BULK * 4 - self.flying())
        if room <= 0:
            return
        bulk: dict[BulkAdapter, list[tuple[Logged, FetchRequest]]] = {}
        for logged in self.take(room):
            request = self.decoded(logged, FetchRequest)
            if request is None:
                continue
            adapter = self._bulk_adapter(request)
            if adapter is not None:
                bulk.setdefault(adapter, []).append((logged, request))
            else:
                self._spawn(self._fetch(logged, request))
        for adapter, batch in bulk.items():
            for start in range(0, len(batch), BULK):
                self._spawn(self._read(adapter, batch[start : start + BULK]))

    def _bulk_adapter(self, request: FetchRequest) -> BulkAdapter | None:
        """Return the adapter that answers a request with others of its kind; None: it is answered alone."""
        if request.kind == "resolve" or (scheme_of(request.url).realm != "machine" and not request.local):
            return None
        adapter = self._fetcher.adapter(request)
        return adapter if isinstance(adapter, BulkAdapter) else None

    def settle(self) -> None:
        """Sync the bodies: see `EdgeBase.settle`."""
        self._folder.sync()

    def taken(self) -> None:
        """Pause before each address: the former owner may have sent it a request a moment ago (`EdgeBase.taken`)."""
        self._fetcher.wait()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error  # an internal error: without this line its requests would stay in flight forever
            self.wake()

    async def _fetch(self, logged: Logged, request: FetchRequest) -> None:
        records = await self._fetcher.fetch(request)
        if self._fetcher.store_error is not None:
            self.error = self._fetcher.store_error
            self.wake()
            return
        frames = framed(records, self._router, self.partitions)
        self.done(Finished(self.name, self.topic, logged.partition, logged.offset, frames))

    async def _read(self, adapter: BulkAdapter, batch: list[tuple[Logged, FetchRequest]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            finished = await loop.run_in_executor(self._threads, self._read_all, adapter, batch)
        except StoreError as error:
            self.error = error
            self.wake()
            return
        for one in finished:
            self.done(one)

    def _read_all(self, adapter: BulkAdapter, batch: list[tuple[Logged, FetchRequest]]) -> list[Finished]:
        finished = []
        for (logged, _), records in zip(batch, adapter.read_all([request for _, request in batch]), strict=True):
            frames = framed(records, self._router, self.partitions)
            finished.append(Finished(self.name, self.topic, logged.partition, logged.offset, frames))
        return finished

    async def close(self) -> None:
        """Cancel requests in flight; the next run repeats them."""
        self._folder.stop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fetcher.close()
        await asyncio.to_thread(self._threads.shutdown)
