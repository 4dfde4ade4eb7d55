"""Standalone Essence: summarizes files in sandboxed children, and prints the summaries in the order of the files.

Reading, and selection over the listing of a folder, are those of `gather`; a file that is named is always selected. A member
that crashes its child is skipped, as in the runner, and its summary gives the reason.
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
from streams.cli.common import USAGE, Failure, counted, note, printable, write_bytes
from streams.cli.rootnames import root_of
from streams.cli.wiring import essence_settings, own_additions
from streams.clock import now_ms
from streams.config.settings import Settings
from streams.edges.parse_job import END, Chunk, Job, find_culprit, pack, single_record
from streams.edges.tries import MEMBERS, RetryState
from streams.fetch import FetchError, fetch_local, reopened
from streams.sandbox.early import PRELOAD, WORK
from streams.sandbox.pool import Pool
from streams.sandbox.values import Done, Failed, Lost, SandboxLimits

T = TypeVar("T")

PIECE = 1 << 20
MOST = 16
"""Files that go to a child together: each task has a fixed cost, whatever the file."""
AHEAD = 8
"""Groups of files per child that are read ahead of the next one to print: one file may take as long as a hundred."""
KEPT = 1 << 17
"""Bytes of output of a file, or of small ones together, that wait in memory for their turn; more waits in a temporary file."""
HEAD = struct.Struct(">?I")


class BufferedOutput:
    """Buffered output of some files, in order."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=KEPT)  # noqa: SIM115 - closed once it was told, or forgotten
        self.ended = 0
        """Number of completed files."""
        self.left: list[str] = []
        """Selection rules that left out files, one for each file left out."""

    def add(self, data: bytes, *, error: bool = False) -> None:
        """Add output or, with `error`, a note. Raises OSError."""
        self._file.write(HEAD.pack(error, len(data)) + data)

    def forget(self) -> None:
        """Discard the output."""
        self._file.close()

    def tell(self) -> None:
        """Print the output, once."""
        self._file.seek(0)
        with self._file as file:
            while head := file.read(HEAD.size):
                error, size = HEAD.unpack(head)
                data = file.read(size)
                if error:
                    note(data.decode())
                else:
                    write_bytes(data)


class DiscardingBlobs:
    """Replacement for a blob store: hashes a body, and leaves it where it is."""

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """See `Blobs.put`."""
        sha256, md5, length = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        while piece := body.read(PIECE):
            sha256.update(piece)
            md5.update(piece)
            length += len(piece)
        return sha256.hexdigest(), md5.hexdigest(), length

    def open(self, digest: str) -> BinaryIO:
        """Raise FileNotFoundError: nothing is stored here."""
        raise FileNotFoundError(digest)


class StandaloneSummarize:
    """One call of `harvest summarize`."""

    def __init__(self, settings: Settings, *, json: bool) -> None:
        self._settings = settings
        self._added = own_additions(settings)
        self._essence = essence_settings(settings, settings.gatherer, self._added)
        self._packed = msgspec.msgpack.encode(self._essence)
        self._limits = msgspec.convert(settings.sandbox.model_dump(), SandboxLimits)
        self._json = json
        self._whole = True
        self._named: set[str] = set()
        self._left: Counter[str] = Counter()
        """Number of files that each selection rule left out."""
        self._turns = asyncio.Semaphore(2 * settings.children)
        """Limits the files that wait, opened, for a child of their own."""

    def run(self, paths: Sequence[str]) -> bool:
        """Summarize; return whether every file could be read."""
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
            waiting: deque[asyncio.Task[list[BufferedOutput]]] = deque()
            try:
                for some in grouped((root, url) for root in roots for url in self._files(root.url)):
                    waiting.append(asyncio.create_task(self._some(pool, some)))
                    await asyncio.sleep(0)  # starts the task before the next folder is listed, however long that takes
                    while len(waiting) > children * AHEAD or (waiting and waiting[0].done()):
                        await self._tell_all(waiting.popleft())
                while waiting:
                    await self._tell_all(waiting.popleft())
            finally:
                # The reader may have closed the pipe: nobody needs these any more, and the pool closes.
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)

    def _files(self, url: str) -> Iterator[str]:
        """Yield the selected files of a root, in order of name, folder by folder."""
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

    async def _some(self, pool: Pool, asked: Sequence[tuple[Root, str]]) -> list[BufferedOutput]:
        """Return the output of some files, in their order: small ones share a child, each large one gets any free child."""
        objs = await asyncio.to_thread(lambda: [obj for each in asked if (obj := self._read(*each))])
        made: list[BufferedOutput] = []
        for large, run in groupby(objs, key=lambda obj: bool(obj.blob)):
            some = list(run)
            found = await self._together(pool, some) if len(some) > 1 and not large else None
            made += [found] if found else await asyncio.gather(*(self._in_turn(pool, obj) for obj in some))
        return made

    def _hear(self, objs: Sequence[FetchedObject], told: BufferedOutput) -> Callable[[bytes], None]:
        """Return a handler for the frames of some objects; it raises ValueError for a frame of any other object."""
        known = {obj.url for obj in objs}

        def hear(frame: bytes) -> None:
            if frame == END:
                told.ended += 1
                return
            record = single_record(frame)
            if (record.object_url if isinstance(record, Summary) else record.url) not in known:
                raise ValueError("not a frame: what no object but another can give")
            self._tell(record, told)

        return hear

    async def _together(self, pool: Pool, objs: Sequence[FetchedObject]) -> BufferedOutput | None:
        """Return the output of small files; None if one ends the child, or exceeds its limits: each is then tried alone."""
        told = BufferedOutput()
        request = pack(Chunk(self._packed, 1, tuple(map(Job, objs)), alone=True))
        try:
            outcome = await pool.run(request, None, self._hear(objs, told), RetryState().clock)
        except ValueError:
            outcome = None
        if isinstance(outcome, Done) and told.ended == len(objs):
            return told
        told.forget()
        return None

    async def _in_turn(self, pool: Pool, obj: FetchedObject) -> BufferedOutput:
        async with self._turns:
            return await self._one(pool, obj)

    async def _one(self, pool: Pool, obj: FetchedObject) -> BufferedOutput:
        """Return the output of one file."""
        url, tries, why, told = obj.url, RetryState(), "", BufferedOutput()
        # One more for the object itself, and some for children that were lost or killed.
        for _ in range(MEMBERS + 5):
            told.forget()
            told = BufferedOutput()
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
                tries.failed_at(find_culprit(outcome.culprit)[1], outcome, self._limits)
        self._missed(f"{url}: {why}")
        told.forget()
        return BufferedOutput()

    @contextmanager
    def _body(self, obj: FetchedObject) -> Iterator[BinaryIO | None]:
        """Yield the file of an object too large to travel with it, unchanged since then; else None. Raises OSError, FetchError."""
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
        answers = fetch_local(request, DiscardingBlobs(), now, self._settings.fetch.max_file)
        obj = next((a for a in answers if isinstance(a, FetchedObject) and a.outcome == "fetched"), None)
        if obj is None:
            reason = next((str(reason) for a in answers if (reason := getattr(a, "reason", ""))), "cannot be read")
            self._missed(f"{url}: {reason}")
        return obj

    def _tell(self, record: Summary | Rejected | CrawlEvent, told: BufferedOutput) -> None:
        if isinstance(record, Rejected):
            told.add(printable(f"{record.url}{'#' * bool(record.path)}{record.path}: {record.reason}").encode(), error=True)
        elif isinstance(record, CrawlEvent) and record.url in self._named:
            told.add(printable(f"{record.url}: refused: {record.reason}").encode(), error=True)
        elif isinstance(record, CrawlEvent):
            told.left += [record.reason] * max(1, len(record.links))
        elif self._json:
            told.add(line(_shown(record)).encode() + b"\n")
        else:
            told.add(dumps([to_template(record)]))

    async def _tell_all(self, some: asyncio.Task[list[BufferedOutput]]) -> None:
        for told in await some:
            told.tell()
            self._left.update(told.left)


def grouped(files: Iterable[T]) -> Iterator[list[T]]:
    """Yield groups of files for a child: of one file at first, then growing, so that few files occupy all children too."""
    left, given = iter(files), 0
    while some := list(islice(left, min(MOST, 1 + given // MOST))):
        given += len(some)
        yield some


def _shown(record: Summary) -> dict[str, object]:
    """Return a summary as the JSON object of one line."""
    named = {"url": record.url, "type": record.type, "content-type": record.content_type}
    return {**named, "attributes": dict(record.attributes)}


def _plain(entry: os.DirEntry[bytes]) -> bool:
    """Return whether an entry is a file, a folder or a link, the kinds that `gather` reads."""
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
