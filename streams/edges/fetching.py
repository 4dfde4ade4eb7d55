"""The fetch edge: local files in bulk on a thread, servers as asyncio tasks.

Delivery: the answer to a request is committed with its offset. A request in flight when the process dies is made again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from processors.identity import file_path, file_url
from schemas.ports import Logged
from schemas.records import FetchRequest
from streams.clock import now_ms
from streams.edges.base import EdgeBase, Finished, Source, framed
from streams.faults import fault
from streams.fetch import Fetcher, FetchSettings, StoreError, fetch_local
from streams.fetch.adapters.local import OWN
from streams.fetch.adapters.places import Places
from streams.fetch.answers import Answers
from streams.store import FolderBlobs
from streams.topology.routing import Router

BULK = 64
"""Local files that the thread reads in one go."""
AHEAD = 512
"""Objects that wait for essence at the most before no more are fetched."""


class UnsyncedBlobs:
    """Blobs whose `put` leaves the flushing to the turn that commits the record."""

    def __init__(self, blobs: FolderBlobs) -> None:
        self._blobs = blobs

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `Blobs.put`, but durable with the next sync only."""
        return self._blobs.write(body)

    def open(self, digest: str) -> BinaryIO:
        """As `Blobs.open`."""
        return self._blobs.open(digest)


class FetchEdge(EdgeBase):
    """Requests in, answers out. Where bodies cannot be stored it ends."""

    def __init__(
        self, source: Source, folder: Path, blobs: FolderBlobs, settings: FetchSettings, partitions: int, router: Router
    ) -> None:
        """`folder` is the data folder."""
        super().__init__("fetch", "fetches", source, partitions, ordered=False)
        self._folder = blobs
        self._blobs = UnsyncedBlobs(blobs)
        self._settings = settings
        self._router = router
        self._fetcher = Fetcher(settings, self._blobs, now_ms)
        self._threads = ThreadPoolExecutor(2, "fetch")
        self._tasks: set[asyncio.Task[None]] = set()
        # A run that gathers what it writes would never end.
        self._own = tuple(file_url(os.fsencode(way(folder)), folder=True) for way in (os.path.abspath, os.path.realpath))
        found = os.stat(folder)
        self._identity = frozenset({(found.st_dev, found.st_ino)})

    def launch(self, ready: int = 0) -> None:
        """Begin with as many requests as there is room for; `ready` objects wait for essence already."""
        room = min(AHEAD - ready, self._settings.concurrency + BULK * 4 - self.flying())
        if room <= 0:
            return
        local: list[tuple[Logged, FetchRequest]] = []
        for logged in self.take(room):
            request = self.decoded(logged, FetchRequest)
            if request is None:
                continue
            if request.url.startswith("file:"):
                local.append((logged, request))
            else:
                self._spawn(self._fetch(logged, request))
        for start in range(0, len(local), BULK):
            self._spawn(self._read(local[start : start + BULK]))

    def settle(self) -> None:
        """As `EdgeBase.settle`: the bodies."""
        self._folder.sync()

    def taken(self) -> None:
        """As `EdgeBase.taken`: whoever had them may have asked their addresses a moment ago."""
        self._fetcher.wait()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error  # a bug of ours: without this line its requests would fly for ever
            self.wake()

    async def _fetch(self, logged: Logged, request: FetchRequest) -> None:
        records = await self._fetcher.fetch(request)
        if self._fetcher.store_error is not None:
            self.error = self._fetcher.store_error
            self.wake()
            return
        frames = framed(records, self._router, self.partitions)
        self.done(Finished(self.name, self.topic, logged.partition, logged.offset, frames))

    async def _read(self, batch: list[tuple[Logged, FetchRequest]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            finished = await loop.run_in_executor(self._threads, self._read_all, batch)
        except StoreError as error:
            self.error = error
            self.wake()
            return
        for one in finished:
            self.done(one)

    def _read_all(self, batch: list[tuple[Logged, FetchRequest]]) -> list[Finished]:
        finished = []
        with Places(self._identity) as places:
            for logged, request in batch:
                fault("fetch.read")
                if self._is_own(request):
                    records = Answers(request, now_ms()).refused(OWN)
                else:
                    records = fetch_local(request, self._blobs, now_ms(), self._settings.max_file, places)
                frames = framed(records, self._router, self.partitions)
                finished.append(Finished(self.name, self.topic, logged.partition, logged.offset, frames))
        return finished

    def _is_own(self, request: FetchRequest) -> bool:
        """Whether a file or folder is in the data folder; of a root, whatever links its path goes by."""
        if request.url.startswith(self._own):
            return True
        if request.depth:
            return False
        try:
            real = os.path.realpath(file_path(request.url))
        except ValueError:  # no path at all: the adapter says so
            return False
        return file_url(real, folder=True).startswith(self._own)

    async def close(self) -> None:
        """Cut off what is in flight: it is asked for again by the next run."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fetcher.close()
        await asyncio.to_thread(self._threads.shutdown)
