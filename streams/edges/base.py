"""What the edges share: windows over their inputs, and finished work on its way into the log.

An edge knows nothing of the log: it reads what a `Source` gives it, and whoever runs it takes away what it finished (`drain`,
where a transaction commits all; `finished` and `finish`, where each record is acknowledged by itself).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from schemas.codec import DecodeError, decode, encode
from schemas.ports import Logged, Origin
from schemas.records import MAX_REASON, FetchedObject, Record
from streams.clock import now_ms
from streams.edges.parse_job import Frame
from streams.edges.window import Window
from streams.store import Offsets
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import REJECTED
from streams.topology.routing import Router, poisoned_letter

R = TypeVar("R", bound=Record)

SPAN = 8_192
"""Records beyond the lowest unfinished one that an edge reads ahead: one that takes a minute holds up nobody for that long."""

DECODED = ("crawl", "rejected")
"""Topics whose records are looked at when an edge writes them; the others are decoded by who reads them."""


class Finished(NamedTuple):
    """What became of one input record: its outputs, those that were staged before, and where it stands."""

    stage: str
    topic: str
    partition: int
    offset: int
    frames: list[Frame]
    staged: str = ""
    """Owner of the records staged for it; empty: none."""


class Staging(NamedTuple):
    """Records to be kept back until their object is finished; none: those kept back are dropped."""

    owner: str
    frames: list[Frame]
    at: tuple[int, int] = (0, 0)
    """Partition and offset of the object."""


class Source(Protocol):
    """Where an edge reads its input: the store, or what came from a broker."""

    def ends(self, topic: str) -> Sequence[int]:
        """The next offset of each partition, as far as it is known."""
        ...

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Logged]:
        """At most `limit` records from `offset` on, in order; what was trimmed away is left out."""
        ...


class EdgeBase(ABC):
    """The windows of one edge over the partitions of its input that are open, and what it has finished but not committed.

    `partitions` is how many each topic has.
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
        """The partition that gave the last record."""

    @abstractmethod
    def launch(self, ready: int = 0) -> None:
        """Begin with as much as there is room for; `ready` outputs wait for their reader already."""

    def settle(self) -> None:
        """Make durable what finished records refer to, where they refer to anything; in any thread. Raises OSError."""
        return

    def taken(self) -> None:
        """Partitions came from somebody else; most edges keep nothing that this would change."""
        return

    def check(self) -> None:
        """Raises what ended the edge, in a thread or a task."""
        if self.error is not None:
            raise self.error

    def open(self, partition: int, committed: Offsets) -> None:
        """Begin to work on a partition, at what was committed of it."""
        self.windows[partition] = Window(committed, SPAN, ordered=self._ordered)

    def shut(self, partition: int) -> None:
        """Somebody else works on a partition from now on; what is in flight of it goes on, and counts for nothing."""
        self.windows.pop(partition, None)
        self._moved.discard(partition)

    def take(self, limit: int) -> list[Logged]:
        """At most `limit` records to begin with, from all partitions in turn, also where there is room for one at a time."""
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
        """How many records of its input it has not begun with."""
        ends = self.source.ends(self.topic)
        return sum(ends[p] - window.position for p, window in self.windows.items())

    def flying(self) -> int:
        """How many records it works on, or holds back for one of the same key."""
        return sum(window.flying for window in self.windows.values())

    def busy(self) -> bool:
        """Whether it works on anything, has finished anything that is not committed, or has anything left to read."""
        return bool(self.finished) or self.flying() > 0 or self.backlog() > 0

    def done(self, finished: Finished) -> None:
        """A record is finished."""
        self.finished.append(finished)
        self.wake()

    def decoded(self, logged: Logged, kind: type[R]) -> R | None:
        """An input record; one that is none is refused, and gives None."""
        try:
            record = logged.record or decode(logged.value or b"")
            if isinstance(record, kind):
                return record
            raise DecodeError(f"a {type(record).__name__}")
        except DecodeError as error:
            self.refuse(logged, error)
            return None

    def refuse(self, logged: Logged, error: Exception, reason: str = "", beside: Sequence[Frame] = ()) -> None:
        """An input that cannot be worked on becomes a dead letter with its bytes, and is finished; `beside`: what else it gives."""
        origin = Origin(logged.topic, logged.partition, logged.offset)
        letter = poisoned_letter(self.name, error, origin, logged.key, logged.value, now_ms())
        with suppress(DecodeError):
            record = decode(logged.value or b"")
            if isinstance(record, FetchedObject):
                why = reason[:MAX_REASON] or letter.reason
                letter = msgspec.structs.replace(letter, url=record.url, version=record.version, reason=why)
        key = REJECTED.key(letter).encode()
        frame = Frame(REJECTED.name, partition_of(key, self.partitions), key, encode(letter))
        self.done(Finished(self.name, self.topic, logged.partition, logged.offset, [frame, *beside]))

    def drain(self) -> list[Finished]:
        """What was finished, for the transaction that is being made."""
        finished, self.finished = self.finished, []
        for one in finished:
            self.finish(one)
        return finished

    def finish(self, one: Finished) -> None:
        """A record is finished, and its outputs are in the log, or in the transaction that is being made."""
        window = self.windows.get(one.partition)
        if window is not None and window.finish(one.offset):
            self._moved.add(one.partition)

    def drain_staging(self) -> list[Staging]:
        """What is to be staged in the transaction that is being made."""
        staging, self.staging = self.staging, []
        return staging

    def offsets(self) -> list[tuple[str, str, int, Offsets]]:
        """What to commit with that: (stage, topic, partition, offsets)."""
        return [(self.name, self.topic, p, self.windows[p].offsets()) for p in sorted(self._moved)]

    def confirm(self) -> None:
        """The transaction stands."""
        self._moved.clear()


def framed(records: Iterable[Record], router: Router, partitions: int) -> list[Frame]:
    """Records on their way into the log."""
    frames = []
    for record in records:
        topic, key, _ = router.route(record)
        frames.append(Frame(topic, partition_of(key, partitions), key, encode(record), record))
    return frames
