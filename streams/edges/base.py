"""Base of the edges: windows over their inputs, and finished results on their way into the log.

An edge does not know the log: it reads from a `Source`, and its runner takes the finished results (`drain`, where a transaction
commits all of them; `finished` and `finish`, where each record is acknowledged by itself).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from processors.collector import is_collected, unused
from schemas.codec import DecodeError, decode, encode
from schemas.ports import Logged, Origin
from schemas.records import MAX_REASON, FetchedObject, Record
from streams.clock import now_ms
from streams.edges.parse_job import Frame
from streams.edges.window import Window
from streams.store import Offsets
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import CRAWL, REJECTED, Topic
from streams.topology.routing import Router, poisoned_letter

R = TypeVar("R", bound=Record)

SPAN = 8_192
"""Records beyond the lowest unfinished one that an edge reads ahead: a slow record does not hold up the others."""

DECODED = ("crawl", "rejected")
"""Topics whose records an edge decodes when it writes them; others are decoded by their readers."""


class Finished(NamedTuple):
    """Result of one input record: its outputs, those staged before, and its position."""

    stage: str
    topic: str
    partition: int
    offset: int
    frames: list[Frame]
    staged: str = ""
    """Owner of the records staged for it; empty: none."""


class Staging(NamedTuple):
    """Records to keep back until their object is finished; none: the ones kept back are dropped."""

    owner: str
    frames: list[Frame]
    at: tuple[int, int] = (0, 0)
    """Partition and offset of the object."""


class Source(Protocol):
    """Input of an edge: the store, or a buffer of records from a broker."""

    def ends(self, topic: str) -> Sequence[int]:
        """Return the next offset of each partition, as far as it is known."""
        ...

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Logged]:
        """Return at most `limit` records from `offset` on, in order, without those that were trimmed."""
        ...


class EdgeBase(ABC):
    """The windows of one edge over the open partitions of its input, and its finished, uncommitted results.

    `partitions`: the number of partitions of each topic.
    """

    def __init__(self, name: str, topic: str, source: Source, partitions: int, *, ordered: bool) -> None:
        self.name = name
        self.topic = topic
        self.source = source
        self.partitions = partitions
        self._ordered = ordered
        self.windows: dict[int, Window] = {}
        self.finished: list[Finished] = []
        self.staging: list[Staging] = []
        self.wake: Callable[[], object] = lambda: None
        self.error: BaseException | None = None
        self._moved: set[int] = set()
        self._served = -1
        """The partition of the last record."""

    @abstractmethod
    def launch(self, ready: int = 0) -> None:
        """Start as much work as there is room for; `ready` outputs are already waiting for their reader."""

    def settle(self) -> None:
        """Make durable what finished records refer to, if anything; may run in any thread. Raises OSError."""
        return

    def taken(self) -> None:
        """Note that partitions were taken over from another process; most edges have no state that this changes."""
        return

    def check(self) -> None:
        """Raise the error that ended the edge, in a thread or a task."""
        if self.error is not None:
            raise self.error

    def open(self, partition: int, committed: Offsets) -> None:
        """Start work on a partition at its committed offsets."""
        self.windows[partition] = Window(committed, SPAN, ordered=self._ordered)

    def shut(self, partition: int) -> None:
        """Stop work on a partition that another process has taken over; results in flight are discarded."""
        self.windows.pop(partition, None)
        self._moved.discard(partition)

    def take(self, limit: int) -> list[Logged]:
        """Return at most `limit` records to start, from all partitions in turn, even if there is room for one at a time only."""
        taken: list[Logged] = []
        order = sorted(self.windows)
        behind = bisect_right(order, self._served)
        for seen, p in enumerate(order[behind:] + order[:behind]):
            share = -(-(limit - len(taken)) // (len(order) - seen))
            if share > 0:
                read = partial(self.source.read, self.topic, p)
                found = self.windows[p].take(share, read)
                self._served = p if found else self._served
                taken += found
        return taken

    def backlog(self) -> int:
        """Return the number of input records that have not been started."""
        ends = self.source.ends(self.topic)
        return sum(ends[p] - window.position for p, window in self.windows.items())

    def flying(self) -> int:
        """Return the number of records in work, or held back for another record of the same key."""
        return sum(window.flying for window in self.windows.values())

    def busy(self) -> bool:
        """Return whether anything is in work, finished and uncommitted, or unread."""
        return bool(self.finished) or self.flying() > 0 or self.backlog() > 0

    def done(self, finished: Finished) -> None:
        """Add a finished result."""
        self.finished.append(finished)
        self.wake()

    def decoded(self, logged: Logged, kind: type[R]) -> R | None:
        """Return an input record; a value that is not one is refused, and gives None."""
        try:
            record = logged.record or decode(logged.value or b"")
            if isinstance(record, kind):
                return record
            raise DecodeError(f"a {type(record).__name__}")
        except DecodeError as error:
            self.refuse(logged, error)
            return None

    def refuse(self, logged: Logged, error: Exception, reason: str = "", beside: Sequence[Frame] = ()) -> None:
        """Turn an input that cannot be processed into a dead letter with its bytes, and finish it; `beside`: further outputs.

        Another Gatherer's stream is fetched again: without its summaries, later changes would not be all that is missing.
        """
        origin = Origin(logged.topic, logged.partition, logged.offset)
        letter = poisoned_letter(self.name, error, origin, logged.key, logged.value, now_ms())
        with suppress(DecodeError):
            record = decode(logged.value or b"")
            if isinstance(record, FetchedObject):
                why = reason[:MAX_REASON] or letter.reason
                letter = msgspec.structs.replace(letter, url=record.url, version=record.version, reason=why)
                beside = beside or ([self.frame(CRAWL, unused(record))] if is_collected(record) else [])
        frame = self.frame(REJECTED, letter)
        self.done(Finished(self.name, self.topic, logged.partition, logged.offset, [frame, *beside]))

    def frame(self, topic: Topic[Any], record: Record) -> Frame:
        """Return a record as a frame of a topic."""
        key = topic.key(record).encode()
        return Frame(topic.name, partition_of(key, self.partitions), key, encode(record), record)

    def drain(self) -> list[Finished]:
        """Take the finished results, for the transaction in progress."""
        finished, self.finished = self.finished, []
        for one in finished:
            self.finish(one)
        return finished

    def finish(self, one: Finished) -> None:
        """Mark a record as finished: its outputs are in the log, or in the transaction in progress."""
        window = self.windows.get(one.partition)
        if window is not None and window.finish(one.offset):
            self._moved.add(one.partition)

    def drain_staging(self) -> list[Staging]:
        """Take the records to stage in the transaction in progress."""
        staging, self.staging = self.staging, []
        return staging

    def offsets(self) -> list[tuple[str, str, int, Offsets]]:
        """Return the offsets to commit with it: (stage, topic, partition, offsets)."""
        return [(self.name, self.topic, p, self.windows[p].offsets()) for p in sorted(self._moved)]

    def confirm(self) -> None:
        """Note that the transaction is committed."""
        self._moved.clear()


def framed(records: Iterable[Record], router: Router, partitions: int) -> list[Frame]:
    """Return the frames of records on their way into the log."""
    frames = []
    for record in records:
        topic, key, _ = router.route(record)
        frames.append(Frame(topic, partition_of(key, partitions), key, encode(record), record))
    return frames
