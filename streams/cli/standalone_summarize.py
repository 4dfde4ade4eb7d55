"""Essence alone: files through the sandboxed children, their summaries on standard output in the order of the files.

Selection over the listing of a folder, and reading, are those of `gather`; a file that is named is selected by that. A member
that brings its child down is skipped, as the runner does it, and its summary says why.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from typing import BinaryIO, TypeVar

import msgspec

from processors.essence.selection import select
from processors.identity import file_path, file_url, frontier_key
from schemas.jsonform import line
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Rejected, Root, Summary, Validators
from schemas.soif import dumps
from schemas.soif_summary import to_template
from streams.cli.common import USAGE, Failure, counted, give, note, printable
from streams.cli.rootnames import root_of
from streams.cli.wiring import essence_settings, own_additions
from streams.clock import now_ms
from streams.config.settings import Settings
from streams.edges.parse_job import END, Chunk, Job, alone, blamed, pack
from streams.edges.tries import MEMBERS, Tries
from streams.fetch import FetchError, fetch_local, reopened
from streams.sandbox.early import PRELOAD, WORK
from streams.sandbox.pool import Pool
from streams.sandbox.values import Done, Failed, Limits, Lost

T = TypeVar("T")

PIECE = 1 << 20
MOST = 16
"""Files that go to a child together: each task has a price of its own, whatever the file."""
AHEAD = 8
"""Groups of files a child that are read ahead of the one whose turn it is to be told: one file may take as long as a hundred."""
KEPT = 1 << 17
"""Bytes of what is to be told of a file, or of small ones together, that wait in memory for their turn; more waits in a file."""
HEAD = struct.Struct(">?I")


class Told:
    """What is to be told of some files, in order."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=KEPT)  # noqa: SIM115 - closed once it was told, or forgotten
        self.ended = 0
        """Files of which all was said."""
        self.left: list[str] = []
        """The rule by which each file was left out that none named."""

    def add(self, data: bytes, *, error: bool = False) -> None:
        """Add some output, or a note. Raises OSError."""
        self._file.write(HEAD.pack(error, len(data)) + data)

    def forget(self) -> None:
        """Let go of it untold."""
        self._file.close()

    def tell(self) -> None:
        """Tell it, once."""
        self._file.seek(0)
        with self._file as file:
            while head := file.read(HEAD.size):
                error, size = HEAD.unpack(head)
                data = file.read(size)
                if error:
                    note(data.decode())
                else:
                    give(data)


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
        self._left: Counter[str] = Counter()
        """How much each rule of selection has left out."""
        self._turns = asyncio.Semaphore(2 * settings.children)
        """For those that wait for a child alone, each with its file open."""

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
        if self._left:
            rules = ", ".join(f"{rule} {count:,}" for rule, count in self._left.most_common())
            note(f"{counted(self._left.total(), 'entry', 'entries')} left out by the rules of selection ({rules})")
        return self._whole

    def _missed(self, text: str) -> None:
        note(printable(text))
        self._whole = False

    async def _run(self, roots: list[Root]) -> None:
        children = self._settings.children
        async with Pool(WORK, children, self._limits, PRELOAD, self._added.ordered()) as pool:
            waiting: deque[asyncio.Task[list[Told]]] = deque()
            try:
                for some in grouped((root, url) for root in roots for url in self._files(root.url)):
                    waiting.append(asyncio.create_task(self._some(pool, some)))
                    await asyncio.sleep(0)  # it begins now, whatever the next folder takes to be listed
                    while len(waiting) > children * AHEAD or (waiting and waiting[0].done()):
                        await self._tell_all(waiting.popleft())
                while waiting:
                    await self._tell_all(waiting.popleft())
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
        self._left.update(dropped.values())
        for name, is_folder in listing:
            if name not in dropped:
                yield from self._files(file_url(folder + name, folder=is_folder))

    async def _some(self, pool: Pool, asked: Sequence[tuple[Root, str]]) -> list[Told]:
        """What some files give, in their order: small ones go to a child together, large ones to any that is free."""
        objs = await asyncio.to_thread(lambda: [obj for each in asked if (obj := self._read(*each))])
        made: list[Told] = []
        for large, run in groupby(objs, key=lambda obj: bool(obj.blob)):
            some = list(run)
            found = await self._together(pool, some) if len(some) > 1 and not large else None
            made += [found] if found else await asyncio.gather(*(self._in_turn(pool, obj) for obj in some))
        return made

    def _hear(self, objs: Sequence[FetchedObject], told: Told) -> Callable[[bytes], None]:
        """What takes the frames of some objects; it raises ValueError for what none of them can have given."""
        known = {obj.url for obj in objs}

        def hear(frame: bytes) -> None:
            if frame == END:
                told.ended += 1
                return
            record = alone(frame)
            if (record.object_url if isinstance(record, Summary) else record.url) not in known:
                raise ValueError("not a frame: what no object but another can give")
            self._tell(record, told)

        return hear

    async def _together(self, pool: Pool, objs: Sequence[FetchedObject]) -> Told | None:
        """What small files give; None where one of them ends the child, or takes more than is its due: each is tried alone then."""
        told = Told()
        request = pack(Chunk(self._packed, 1, tuple(map(Job, objs)), alone=True))
        try:
            outcome = await pool.run(request, None, self._hear(objs, told), Tries().clock)
        except ValueError:
            outcome = None
        if isinstance(outcome, Done) and told.ended == len(objs):
            return told
        told.forget()
        return None

    async def _in_turn(self, pool: Pool, obj: FetchedObject) -> Told:
        async with self._turns:
            return await self._one(pool, obj)

    async def _one(self, pool: Pool, obj: FetchedObject) -> Told:
        """What one file gives."""
        url, tries, why, told = obj.url, Tries(), "", Told()
        # One more for the object itself, and some for children that were lost or killed.
        for _ in range(MEMBERS + 5):
            told.forget()
            told = Told()
            request = pack(Chunk(self._packed, 1, (Job(obj, tries.skip, stop=tries.stop, ends=tries.ends),), alone=True))
            try:
                with self._body(obj) as body:
                    outcome = await pool.run(request, body.fileno() if body else None, self._hear((obj,), told), tries.clock)
            except (ValueError, FetchError) as error:
                why = str(error)
                break
            except OSError as error:
                why = error.strerror or str(error)
                break
            why = outcome.reason
            if isinstance(outcome, Done):
                return told
            if isinstance(outcome, Failed):
                note("\n".join(map(printable, f"{url}: {outcome.traceback}".splitlines())))
            if not isinstance(outcome, Lost) and not tries.spared(outcome):
                if "" in tries.skip:
                    break
                tries.failed_at(blamed(outcome.culprit)[1], outcome, self._limits)
        self._missed(f"{url}: {why}")
        told.forget()
        return Told()

    @contextmanager
    def _body(self, obj: FetchedObject) -> Iterator[BinaryIO | None]:
        """What an object is read from, where it is too large to travel with it: its file, as it was. Raises OSError, FetchError."""
        if not obj.blob or obj.root is None:
            yield None
            return
        host = frontier_key(obj.url)
        request = FetchRequest(url=obj.url, host=host, version=obj.version, time=obj.time, root=obj.root)
        with reopened(request, obj.validators or Validators()) as body:
            yield body

    def _read(self, root: Root, url: str) -> FetchedObject | None:
        now = now_ms()
        request = FetchRequest(url=url, host=frontier_key(url), version=now, time=now, root=root)
        answers = fetch_local(request, Passing(), now, self._settings.fetch.max_file)
        obj = next((a for a in answers if isinstance(a, FetchedObject) and a.outcome == "fetched"), None)
        if obj is None:
            reason = next((str(reason) for a in answers if (reason := getattr(a, "reason", ""))), "cannot be read")
            self._missed(f"{url}: {reason}")
        return obj

    def _tell(self, record: Summary | Rejected | CrawlEvent, told: Told) -> None:
        if isinstance(record, Rejected):
            told.add(printable(f"{record.url}{'#' * bool(record.path)}{record.path}: {record.reason}").encode(), error=True)
        elif isinstance(record, CrawlEvent) and record.url in self._named:
            told.add(printable(f"{record.url}: refused: {record.reason}").encode(), error=True)
        elif isinstance(record, CrawlEvent):
            told.left += [record.reason] * max(1, len(record.links))
        elif self._json:
            told.add(line({"url": record.url, "type": record.type, "attributes": dict(record.attributes)}).encode() + b"\n")
        else:
            told.add(dumps([to_template(record)]))

    async def _tell_all(self, some: asyncio.Task[list[Told]]) -> None:
        for told in await some:
            told.tell()
            self._left.update(told.left)


def grouped(files: Iterable[T]) -> Iterator[list[T]]:
    """Files that go to a child together: one at first, more as they go on, so that few files have all children work too."""
    left, given = iter(files), 0
    while some := list(islice(left, min(MOST, 1 + given // MOST))):
        given += len(some)
        yield some


def _plain(entry: os.DirEntry[bytes]) -> bool:
    """Whether an entry is a file, a folder or a link, as `gather` takes them."""
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
