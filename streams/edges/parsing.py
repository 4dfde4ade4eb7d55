"""The essence edge: objects go to sandboxed children, their records come back as frames.

Strategy: small objects travel to a child several at a time, so that it has work during a turn of the runner; each is still judged
by itself, since a frame ends each. Large objects travel alone, as an open file.

Laws:
- If one object crashes, times out or runs out of memory, the records of its neighbours stay, or are produced again; the member in
  progress is skipped, and the object is tried again. Essence itself records the outcome (law 8): a rejection and a summary
  with the reason.
- An object that fails even when it is not opened, whose body is missing or damaged, or that is not a record, becomes a dead letter.
  The frontier is informed of a lost body, so that the next run fetches it again.
- One object has `SandboxLimits.whole` seconds of children, over all tries. Members that hold a child until the deadline are
  skipped; too many of them end the object: records made before stay, the rest is listed as given up (Partial; see `tries`).
- Frames of one object become visible together, with its offset. What does not fit in memory is staged meanwhile, and children whose
  frames are not taken wait.
- A frame about another object than the child's is refused (`frame_validation`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from processors.essence.stage import EssenceSettings
from processors.identity import frontier_key
from schemas.codec import cache_encoding, decode
from schemas.ports import Logged
from schemas.records import LOST, CrawlEvent, FetchedObject, Summary
from streams.clock import now_ms
from streams.edges.base import DECODED, EdgeBase, Finished, Source, Staging
from streams.edges.extensions import Extensions
from streams.edges.frame_validation import FrameValidator
from streams.edges.parse_job import DAMAGED, END, Chunk, Frame, Job, find_culprit, pack, unpack
from streams.edges.work import Work
from streams.faults import fault
from streams.sandbox.early import PRELOAD, WORK
from streams.sandbox.pool import Pool
from streams.sandbox.task import Clock
from streams.sandbox.values import Done, Failed, Flooded, Lost, Outcome, SandboxError, SandboxLimits
from streams.store import BodyStore
from streams.store.errors import DamagedBody
from streams.topology.flow import CRAWL

CHUNK_COUNT = 32
CHUNK_BYTES = 1 << 20
"""Number of objects that travel together, and their bytes: enough to keep a child busy during a turn of the runner."""
STAGED_BYTES = 4 << 20
"""Bytes of one object's frames that are kept in memory."""
HELD_BYTES = 64 << 20
"""Bytes that may wait for the runner; beyond that the children wait."""
LOSSES = 10
"""Times that an object is lost through no fault of its own before the edge gives up."""


class CorruptChildError(ValueError):
    """A message that a child sends only if its memory was overwritten."""


class EssenceEdge(EdgeBase):
    """Objects in, their records out. `log` receives the tracebacks of internal errors."""

    def __init__(
        self,
        source: Source,
        blobs: BodyStore,
        settings: EssenceSettings,
        partitions: int,
        children: int,
        limits: SandboxLimits,
        log: Callable[[str], None],
        *,
        own: Extensions = Extensions(),  # noqa: B008 - a frozen value
        carry: bool = False,
    ) -> None:
        """With `carry`, frames that are not staged carry their records, for a runner that uses them at once."""
        super().__init__("essence", "objects", source, partitions, ordered=True)
        self._blobs = blobs
        self._settings = msgspec.msgpack.encode(settings)
        self._gatherer = settings.gatherer
        self._limits = limits
        self._carry = carry
        self._held = 0
        """Bytes that wait to be taken."""
        self._blocked: list[asyncio.Future[None]] = []
        """Children that wait until bytes have been taken."""
        self._children = children
        self._log = log
        self._pool = Pool(WORK, children, limits, PRELOAD, own.ordered())
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: list[Work] = []
        self._starting: asyncio.Task[None] | None = None
        self._started = False
        self.saw: Callable[[Outcome], None] = lambda _: None
        """Called with the outcome of each chunk."""
        self._closing = False

    def start(self) -> None:
        """Start the children in the background: they take a second to load, and the first objects take one to arrive."""
        self._starting = asyncio.get_running_loop().create_task(self._pool.start())
        self._starting.add_done_callback(self._on_started)

    def _on_started(self, starting: asyncio.Task[None]) -> None:
        if starting.cancelled() or self._closing:
            return
        self.error = starting.exception()
        self._started = self.error is None
        self._relaunch()
        self.wake()

    def _relaunch(self) -> None:
        """Call `launch` from callbacks, whose exceptions the event loop would only print."""
        try:
            self.launch()
        except Exception as error:  # noqa: BLE001 - handed to the runner, which raises it
            self.error = error

    def ready(self) -> bool:
        """Return whether the children have started, and the edge has not failed."""
        return self._started and self.error is None

    def waiting(self) -> int:
        """Return the number of objects that no child has yet."""
        return self.backlog() + len(self._waiting)

    def saturated(self) -> bool:
        """Return whether every child has a chunk, and another one waiting."""
        return len(self._tasks) >= 2 * self._children

    def launch(self, ready: int = 0) -> None:
        """Keep every child busy, with one more chunk waiting for each."""
        while self._started and len(self._tasks) < 2 * self._children and self._held < HELD_BYTES:
            if len(self._waiting) < CHUNK_COUNT:
                self._waiting += filter(None, map(self._work, self.take(CHUNK_COUNT * 2)))
            chunk = self._next_chunk()
            if not chunk:
                return
            self._spawn(chunk)

    def _work(self, logged: Logged) -> Work | None:
        obj = self.decoded(logged, FetchedObject)
        return Work(logged, obj, FrameValidator(obj, self._gatherer, self.partitions)) if obj is not None else None

    def _next_chunk(self) -> list[Work]:
        chunk: list[Work] = []
        size = 0
        while self._waiting and len(chunk) < CHUNK_COUNT and size < CHUNK_BYTES:
            work = self._waiting[0]
            if work.alone:
                return chunk or [self._waiting.pop(0)]
            chunk.append(self._waiting.pop(0))
            size += work.length
        return chunk

    def _spawn(self, chunk: list[Work]) -> None:
        task = asyncio.get_running_loop().create_task(self._run(chunk))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error
        elif not self._closing:
            self._relaunch()  # not only after the next turn: a waiting child is lost time
        self.wake()

    async def _run(self, chunk: list[Work]) -> None:
        """Run one chunk in a child, and again the part that a failure left over."""
        while chunk := await self._opened(chunk):
            body = chunk[0].body if chunk[0].alone else None
            clock = chunk[0].clock if len(chunk) == 1 else Clock()
            try:
                number = body.fileno() if body else None
                outcome = await self._pool.run(self._request(chunk), number, self._receiver(chunk), clock)
            except CorruptChildError as error:
                outcome = Failed(str(error), "")
            finally:
                for work in chunk:
                    work.close()
            self.saw(outcome)
            chunk = self._left(chunk, outcome, clock)

    async def _opened(self, chunk: list[Work]) -> list[Work]:
        """Open the bodies of a chunk, and return the objects that have theirs; the others become dead letters."""
        there = await asyncio.gather(*map(self._open, chunk), return_exceptions=True)
        if failures := [one for one in there if isinstance(one, BaseException)]:
            for work in chunk:
                work.close()
            raise failures[0]
        return [work for work, found in zip(chunk, there, strict=True) if found]

    async def _open(self, work: Work) -> bool:
        """Open the body of an object in the blob store; return False if it is missing. Raises OSError, StoreError."""
        if not work.blob:
            return True
        try:
            if self._blobs.remote:
                work.body = await asyncio.to_thread(self._blobs.open, work.blob)
            else:
                work.body = self._blobs.open(work.blob)
        except FileNotFoundError as error:
            self._lose(work, error)
            return False
        return True

    def _lose(self, work: Work, error: Exception) -> None:
        """Replace an object whose body is missing or damaged by a dead letter, and inform the frontier."""
        reason = f"{LOST}: {error}" if isinstance(error, DamagedBody) else LOST
        self.refuse(work.logged, error, reason, [self._lost(work.obj)])

    def _lost(self, obj: FetchedObject) -> Frame:
        """Return the event that makes the frontier fetch an object again."""
        host = frontier_key(obj.url)
        event = CrawlEvent(kind="failed", host=host, time=now_ms(), url=obj.url, version=obj.version, root=obj.root, reason=LOST)
        return self.frame(CRAWL, event)

    def _request(self, chunk: list[Work]) -> bytes:
        jobs = tuple(Job(work.obj, work.skip, self._small(work), work.stop, work.ends) for work in chunk)
        return pack(Chunk(self._settings, self.partitions, jobs, self._carry, check=True))

    @staticmethod
    def _small(work: Work) -> bytes | None:
        """Return a body from the blob store that travels with the request."""
        return work.body.read() if work.body and not work.alone else None

    def _receiver(self, chunk: list[Work]) -> Callable[[bytes], asyncio.Future[None] | None]:
        """Return the receiver of the frames of a chunk: objects end one after the other."""
        position = 0

        def receive(data: bytes) -> asyncio.Future[None] | None:
            nonlocal position
            if position == len(chunk):
                raise CorruptChildError("a frame behind the last object")
            work = chunk[position]
            if data == END:
                work.ended = True
                position += 1
                self._deliver(work)
                return self._room()
            if work.damaged or (data == DAMAGED and (not work.blob or work.frames or work.staged)):
                raise CorruptChildError("a body that is damaged gives nothing")
            if data == DAMAGED:
                work.damaged = True
                return None
            try:
                frame = self._unpacked(data, work.belief)
            except ValueError as error:
                raise CorruptChildError(str(error)) from error
            work.frames.append(frame)
            work.size += len(data)
            if work.size > STAGED_BYTES:
                self._stage(work)
            return self._room()

        return receive

    def _room(self) -> asyncio.Future[None] | None:
        """Return None while there is room for more bytes; else a future that is done when there is."""
        if self._held < HELD_BYTES:
            return None
        blocked = asyncio.get_running_loop().create_future()
        self._blocked.append(blocked)
        return blocked

    def drain_staging(self) -> list[Staging]:
        """Take the records to stage; the runner has taken the finished results before."""
        self._held = 0
        blocked, self._blocked = self._blocked, []
        for one in blocked:
            if not one.done():
                one.set_result(None)
        return super().drain_staging()

    def _unpacked(self, data: bytes, belief: FrameValidator) -> Frame:
        """Decode and validate a frame from a child. Raises ValueError for a frame that a sound child does not send."""
        frame = unpack(data)
        frame = frame._replace(record=decode(frame.value)) if frame.topic in DECODED else frame
        belief.check(frame)
        if isinstance(frame.record, Summary):
            cache_encoding(frame.record, frame.value)
        return frame

    def _stage(self, work: Work) -> None:
        fault("essence.stage")
        self.staging.append(Staging(work.owner, work.frames, (work.logged.partition, work.logged.offset)))
        self._held += work.size
        work.frames, work.size, work.staged = [], 0, True
        self.wake()

    def _deliver(self, work: Work) -> None:
        fault("essence.deliver")
        if work.damaged:
            self._blobs.discard(work.blob)
            self._lose(work, ValueError("its body is not the one that was stored"))
            return
        if work.staged and work.frames:
            self._stage(work)
        self._held += work.size
        at = work.logged
        self.done(Finished(self.name, self.topic, at.partition, at.offset, work.frames, work.owner if work.staged else ""))

    def _left(self, chunk: list[Work], outcome: Outcome, clock: Clock) -> list[Work]:
        """Return the objects to try again: none, or the one that failed, with the member at fault to be skipped."""
        left = [work for work in chunk if not work.ended]
        if not left:
            return []
        if isinstance(outcome, Done):
            outcome = Failed("a child ended without ending its objects", "")
        for work in left:
            if work.staged:
                self.staging.append(Staging(work.owner, []))
            work.frames, work.size, work.staged, work.damaged = [], 0, False, False
        number, culprit = (0, "") if isinstance(outcome, Lost) else find_culprit(outcome.culprit)
        failed = chunk[number] if number < len(chunk) and not chunk[number].ended else left[0]
        if isinstance(outcome, Failed):
            self._log(f"essence of {failed.logged.key.decode(errors='replace')}: {outcome.traceback}")
        # The object that failed runs alone, the others wait their turn.
        self._waiting[:0] = [work for work in left if work is not failed]
        if isinstance(outcome, Lost):
            failed.lost += 1
            if failed.lost > LOSSES:
                raise SandboxError(f"nothing can be parsed: {outcome.detail}")
        elif not self._spared(failed, outcome, alone=len(chunk) == 1):
            if "" in failed.skip:
                self.refuse(failed.logged, RuntimeError(outcome.reason), outcome.reason)
                return []
            failed.clock = clock
            failed.failed_at(culprit, outcome, self._limits)
        return [failed]

    def _spared(self, failed: Work, outcome: Outcome, *, alone: bool) -> bool:
        """Return whether an object is tried again unchanged."""
        # The chunk as a whole gave too much: whether this object does is seen when it runs alone.
        return failed.spared(outcome) or (isinstance(outcome, Flooded) and outcome.which == "total" and not alone)

    async def close(self) -> None:
        """Cancel the objects in progress; the next run parses them again."""
        self._closing = True
        self._blobs.stop()
        for task in (tasks := [*self._tasks, *filter(None, [self._starting])]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._pool.close()
