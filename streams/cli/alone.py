"""Essence alone: files through the sandboxed children, their summaries on standard output in the order of the files.

Selection over the listing of a folder, and reading, are those of `gather`; a file that is named is selected by that. A member
that brings its child down is skipped, as the runner does it, and its summary says why.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import BinaryIO, TypeVar

import msgspec

from processors.identity import file_path, file_url, frontier_key
from processors.select import select
from schemas.jsonform import line
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Rejected, Root, Summary
from schemas.soif import dumps
from schemas.soif_summary import to_template
from streams.cli.common import USAGE, Failure, give, note, printable, put
from streams.cli.rootnames import root_of
from streams.cli.wiring import essence_settings, own_additions
from streams.clock import now_ms
from streams.edges.tries import MEMBERS, Tries
from streams.essence_job import END, Chunk, Job, alone, blamed, pack
from streams.fetch import fetch_local
from streams.sandbox.early import PRELOAD, WORK
from streams.sandbox.pool import Pool
from streams.sandbox.values import Done, Failed, Limits, Lost
from streams.settings import Settings

T = TypeVar("T")

PIECE = 1 << 20
MOST = 16
"""Files that go to a child together: each task has a price of its own, whatever the file."""
AHEAD = 16
"""Groups of files a child that are read ahead of the one whose turn it is to be told: one file may take as long as a hundred."""
HELD = 64 << 20
"""Bytes of what is ready before its turn; above that, nobody reads on."""


class Passing:
    """In place of a blob store: a body is hashed, and stays where it is."""

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `Blobs.put`."""
        sha256, md5, length = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        while piece := body.read(PIECE):
            sha256.update(piece)
            md5.update(piece)
            length += len(piece)
        return sha256.hexdigest(), md5.hexdigest(), length

    def open(self, digest: str) -> BinaryIO:
        """Nothing is here. Raises FileNotFoundError."""
        raise FileNotFoundError(digest)


class Alone:
    """One call of `harvest summarize`."""

    def __init__(self, settings: Settings, *, json: bool) -> None:
        self._settings = settings
        self._added = own_additions(settings)
        self._essence = essence_settings(settings, settings.gatherer, self._added)
        self._packed = msgspec.msgpack.encode(self._essence)
        self._limits = msgspec.convert(settings.sandbox.model_dump(), Limits)
        self._json = json
        self._whole = True
        self._named: set[str] = set()
        self._turns = asyncio.Semaphore(2 * settings.children)
        """For those that wait for a child alone, each with its file open."""
        self._held = 0
        """Bytes that are ready, and not told yet."""

    def run(self, paths: Sequence[str]) -> bool:
        """Summarize; says whether every file could be read."""
        roots = []
        for path in paths:
            try:
                roots.append(root_of(path, self._settings, None, None))
            except Failure as failure:
                if failure.code == USAGE:
                    raise
                self._missed(str(failure))
        self._named = {root.url for root in roots}
        if roots:
            asyncio.run(self._run(roots))
        return self._whole

    def _missed(self, text: str) -> None:
        note(printable(text))
        self._whole = False

    async def _run(self, roots: list[Root]) -> None:
        children = self._settings.children
        async with Pool(WORK, children, self._limits, PRELOAD, self._added.ordered()) as pool:
            waiting: deque[asyncio.Task[list[bytes]]] = deque()
            try:
                for some in grouped((root, url) for root in roots for url in self._files(root.url)):
                    waiting.append(asyncio.create_task(self._some(pool, some)))
                    while len(waiting) > children * (2 if self._held > HELD else AHEAD) or (waiting and waiting[0].done()):
                        self._give(await waiting.popleft())
                while waiting:
                    self._give(await waiting.popleft())
            finally:
                # Whoever reads may have enough: nobody waits for these any more, and the pool closes.
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)

    def _files(self, url: str) -> Iterator[str]:
        """The files of a root that are selected, in order of name, folder by folder."""
        if not url.endswith("/"):
            yield url
            return
        folder = file_path(url)
        try:
            with os.scandir(folder) as found:
                listing = sorted((e.name, e.is_dir(follow_symlinks=False)) for e in found if _plain(e))
        except OSError as error:
            self._missed(f"{os.fsdecode(folder)}: {error.strerror}")
            return
        dropped = select(listing, self._essence.select)
        for name, is_folder in listing:
            if name not in dropped:
                yield from self._files(file_url(folder + name, folder=is_folder))

    async def _some(self, pool: Pool, asked: Sequence[tuple[Root, str]]) -> list[bytes]:
        """The frames that some files give, in their order: small ones go to a child together, large ones to any that is free."""
        objs = await asyncio.to_thread(lambda: [obj for each in asked if (obj := self._read(*each))])
        made: list[bytes] = []
        for large, run in groupby(objs, key=lambda obj: bool(obj.blob)):
            some = list(run)
            found = await self._together(pool, some) if len(some) > 1 and not large else None
            if found is None:
                each = await asyncio.gather(*(self._in_turn(pool, obj) for obj in some))
                found = [frame for frames in each for frame in frames]
            made += found
            self._held += sum(map(len, found))
        return made

    async def _together(self, pool: Pool, objs: Sequence[FetchedObject]) -> list[bytes] | None:
        """What small files give; None where one of them ends the child, or takes more than is its due: each is tried alone then."""
        frames: list[bytes] = []
        request = pack(Chunk(self._packed, 1, tuple(map(Job, objs)), alone=True))
        outcome = await pool.run(request, None, frames.append, Tries().clock)
        if not isinstance(outcome, Done) or frames.count(END) != len(objs):
            return None
        return [frame for frame in frames if frame != END]

    async def _in_turn(self, pool: Pool, obj: FetchedObject) -> list[bytes]:
        async with self._turns:
            return await self._one(pool, obj)

    async def _one(self, pool: Pool, obj: FetchedObject) -> list[bytes]:
        """What one file gives."""
        url, tries, outcome = obj.url, Tries(), None
        # One more for the object itself, and some for children that were lost or killed.
        for _ in range(MEMBERS + 5):
            frames: list[bytes] = []
            request = pack(Chunk(self._packed, 1, (Job(obj, tries.skip, stop=tries.stop),), alone=True))
            try:
                body = open(file_path(url), "rb") if obj.blob else None  # noqa: ASYNC230, SIM115 - local, and closed below
            except OSError as error:
                self._missed(f"{url}: {error.strerror}")
                return []
            try:
                outcome = await pool.run(request, body.fileno() if body else None, frames.append, tries.clock)
            finally:
                if body:
                    body.close()
            if isinstance(outcome, Done):
                return [frame for frame in frames if frame != END]
            if isinstance(outcome, Failed):
                note(f"{url}: {outcome.traceback}")
            if not isinstance(outcome, Lost) and not tries.spared(outcome):
                if "" in tries.skip:
                    break
                tries.failed_at(blamed(outcome.culprit)[1], outcome, self._limits)
        self._missed(f"{url}: {outcome.reason if outcome else ''}")
        return []

    def _read(self, root: Root, url: str) -> FetchedObject | None:
        now = now_ms()
        request = FetchRequest(url=url, host=frontier_key(url), version=now, time=now, root=root)
        answers = fetch_local(request, Passing(), now, self._settings.fetch.max_file)
        obj = next((a for a in answers if isinstance(a, FetchedObject) and a.outcome == "fetched"), None)
        if obj is None:
            reason = next((str(reason) for a in answers if (reason := getattr(a, "reason", ""))), "cannot be read")
            self._missed(f"{url}: {reason}")
        return obj

    def _give(self, frames: list[bytes]) -> None:
        self._held -= sum(map(len, frames))
        for record in map(alone, frames):
            if isinstance(record, Rejected):
                note(printable(f"{record.url}{'#' * bool(record.path)}{record.path}: {record.reason}"))
            elif isinstance(record, CrawlEvent) and record.kind == "refused" and record.url in self._named:
                note(printable(f"{record.url}: refused: {record.reason}"))
            elif isinstance(record, Summary) and self._json:
                put(line({"url": record.url, "type": record.type, "attributes": dict(record.attributes)}))
            elif isinstance(record, Summary):
                give(dumps([to_template(record)]))


def grouped(files: Iterable[T]) -> Iterator[list[T]]:
    """Files that go to a child together: one at first, more as they go on, so that few files have all children work too."""
    left, given = iter(files), 0
    while some := list(islice(left, min(MOST, 1 + given // MOST))):
        given += len(some)
        yield some


def _plain(entry: os.DirEntry[bytes]) -> bool:
    """Whether an entry is a file, a folder or a link, as `gather` takes them."""
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
