"""The fetch edge: local files in bulk on a thread, servers as asyncio tasks.

A request waits for its host in a queue, and becomes a task when it may be sent: see `streams/fetch/host_queue.py`.

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
from schemas.records import FetchRequest, Record
from streams.clock import now_ms
from streams.edges.base import EdgeBase, Finished, Source, framed
from streams.fetch import Fetcher, FetchSettings, StoreError
from streams.fetch.adapters import BulkAdapter
from streams.fetch.host_queue import Entry, HostQueue
from streams.store import BodyStore
from streams.store.errors import StoreError as BodyStoreError
from streams.topology.routing import Router

BULK = 64
"""Local files that the thread reads at a time."""
AHEAD = 512
"""Maximum number of objects that wait for essence before fetching pauses."""
WAITING = 16_384
"""Maximum number of requests that were taken and are not answered."""
RESOLVING = 2_048
"""Maximum number of hosts that are resolved at a time; most of them wait for a name server or for an address in use."""

Taken = tuple[Logged, FetchRequest]
"""A request and its position."""


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
        self._queue: HostQueue[Taken] = HostQueue(self._fetcher.pace, settings.patience)
        self._ahead = AHEAD
        """Objects that may still be fetched before essence has caught up."""
        self._exchanges = self._resolving = self._reading = 0
        """Requests for objects, and to resolve hosts, under way; files on the threads."""
        self._timer: asyncio.TimerHandle | None = None

    def launch(self, ready: int = 0) -> None:
        """Take as many requests as there is room for, and start those whose hosts are free; `ready` objects wait for essence."""
        self._ahead = AHEAD - ready
        room = min(self._ahead, WAITING - self.flying())
        if room <= 0 or self._reading >= BULK * 4:
            self._start()
            return
        bulk: dict[BulkAdapter, list[Taken]] = {}
        for logged in self.take(room):
            request = self.decoded(logged, FetchRequest)
            if request is None:
                continue
            adapter = self._bulk_adapter(request)
            if adapter is not None:
                bulk.setdefault(adapter, []).append((logged, request))
            else:
                resolve, pause = request.kind == "resolve", request.pause / 1000
                self._queue.add(Entry((logged, request), request.host, request.address, pause, resolve))
        for adapter, batch in bulk.items():
            for start in range(0, len(batch), BULK):
                self._spawn(self._read(adapter, batch[start : start + BULK]))
        self._start()

    def _start(self) -> None:
        """Start the requests whose hosts are free, as far as there is room; come back when the next one is."""
        while (room := self._has_room()) and (entry := self._queue.next()) is not None:
            if entry.resolve:
                self._resolving += 1
            else:
                self._exchanges += 1
            self._spawn(self._fetch(entry))
        for entry, wait in self._queue.late():
            self._answer(entry.item, self._fetcher.deferred(entry.item[1], wait))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        free = self._queue.next_time()
        if room and free is not None:
            delay = max(0.0, free - self._fetcher.pace.now())
            self._timer = asyncio.get_running_loop().call_later(delay, self._start)

    def _has_room(self) -> bool:
        """Return whether one more exchange may begin. Waiting requests are not counted."""
        return self._exchanges < min(self._settings.concurrency, self._ahead) and self._resolving < RESOLVING

    def _bulk_adapter(self, request: FetchRequest) -> BulkAdapter | None:
        """Return the adapter that answers a request with others of its kind; None: it is answered alone."""
        if request.kind == "resolve" or (scheme_of(request.url).realm != "machine" and not request.local):
            return None
        adapter = self._fetcher.adapter(request)
        return adapter if isinstance(adapter, BulkAdapter) else None

    def settle(self) -> None:
        """Sync the bodies: see `EdgeBase.settle`."""
        self._folder.sync()

    def shut(self, partition: int) -> None:
        """Stop work on a partition: what waits is not requested here any more (`EdgeBase.shut`)."""
        super().shut(partition)
        self._queue.drop(lambda taken: taken[0].partition != partition)

    def taken(self) -> None:
        """Pause before each host and address: the former owner may have sent it a request a moment ago (`EdgeBase.taken`)."""
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

    async def _fetch(self, entry: Entry[Taken]) -> None:
        try:
            records = await self._fetcher.fetch(entry.item[1])
        finally:
            if entry.resolve:
                self._resolving -= 1
            else:
                self._exchanges -= 1
            self._queue.ended(entry)
        if self._fetcher.store_error is not None:
            self.error = self._fetcher.store_error
            self.wake()
            return
        self._answer(entry.item, records)
        self._start()

    def _answer(self, taken: Taken, records: list[Record]) -> None:
        logged, _ = taken
        frames = framed(records, self._router, self.partitions)
        self.done(Finished(self.name, self.topic, logged.partition, logged.offset, frames))

    async def _read(self, adapter: BulkAdapter, batch: list[Taken]) -> None:
        loop = asyncio.get_running_loop()
        self._reading += len(batch)
        try:
            finished = await loop.run_in_executor(self._threads, self._read_all, adapter, batch)
        except StoreError as error:
            self.error = error
            self.wake()
            return
        finally:
            self._reading -= len(batch)
        for one in finished:
            self.done(one)

    def _read_all(self, adapter: BulkAdapter, batch: list[Taken]) -> list[Finished]:
        finished = []
        for (logged, _), records in zip(batch, adapter.read_all([request for _, request in batch]), strict=True):
            frames = framed(records, self._router, self.partitions)
            finished.append(Finished(self.name, self.topic, logged.partition, logged.offset, frames))
        return finished

    async def close(self) -> None:
        """Cancel requests in flight; the next run repeats them."""
        self._folder.stop()
        if self._timer is not None:
            self._timer.cancel()
        self._queue.drop(lambda _: False)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fetcher.close()
        await asyncio.to_thread(self._threads.shutdown)
