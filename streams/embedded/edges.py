"""What the edges of an embedded runner share: finished work on its way into the log, and windows over their inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from schemas.codec import DecodeError, decode, encode
from schemas.ports import Logged, Origin
from schemas.records import MAX_REASON, FetchedObject, Record
from streams.clock import now_ms
from streams.embedded.window import Window
from streams.essence_job import Frame
from streams.routing import Router, poisoned
from streams.store import Offsets, Store
from streams.store.murmur2 import partition as partition_of
from streams.topology import REJECTED

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


class EdgeBase:
    """The windows of one edge over all partitions of its input, and what it has finished but not committed."""

    def __init__(self, name: str, topic: str, store: Store, partitions: int, *, ordered: bool) -> None:
        self.name = name
        self.topic = topic
        self.store = store
        self.partitions = partitions
        committed = store.offsets(name)
        self.windows = [Window(committed.get((topic, p), Offsets()), SPAN, ordered=ordered) for p in range(partitions)]
        self.finished: list[Finished] = []
        self.staging: list[Staging] = []
        self.wake: Callable[[], object] = lambda: None
        self._moved: set[int] = set()

    def take(self, limit: int) -> list[Logged]:
        """At most `limit` records to begin with, from all partitions in turn."""
        taken: list[Logged] = []
        for p, window in enumerate(self.windows):
            share = -(-(limit - len(taken)) // (self.partitions - p))
            if share > 0:
                taken += window.take(share, lambda offset, n, p=p: self.store.read(self.topic, p, offset, n))  # type: ignore[misc]
        return taken

    def backlog(self) -> int:
        """How many records of its input it has not begun with."""
        ends = self.store.ends(self.topic)
        return sum(end - window.position for end, window in zip(ends, self.windows, strict=True))

    def busy(self) -> bool:
        """Whether it works on anything, has finished anything that is not committed, or has anything left to read."""
        return bool(self.finished) or any(w.flying for w in self.windows) or self.backlog() > 0

    def done(self, finished: Finished) -> None:
        """A record is finished."""
        self.finished.append(finished)
        self.wake()

    def decoded(self, logged: Logged, kind: type[R]) -> R | None:
        """An input record; one that is none is refused, and gives None."""
        try:
            record = decode(logged.value or b"")
            if isinstance(record, kind):
                return record
            raise DecodeError(f"a {type(record).__name__}")
        except DecodeError as error:
            self.refuse(logged, error)
            return None

    def refuse(self, logged: Logged, error: Exception, reason: str = "") -> None:
        """An input that cannot be worked on becomes a dead letter with its bytes, and is finished."""
        origin = Origin(logged.topic, logged.partition, logged.offset)
        letter = poisoned(self.name, error, origin, logged.key, logged.value, now_ms())
        with suppress(DecodeError):
            record = decode(logged.value or b"")
            if isinstance(record, FetchedObject):
                why = reason[:MAX_REASON] or letter.reason
                letter = msgspec.structs.replace(letter, url=record.url, version=record.version, reason=why)
        key = REJECTED.key(letter).encode()
        frame = Frame(REJECTED.name, partition_of(key, self.partitions), key, encode(letter))
        self.done(Finished(self.name, self.topic, logged.partition, logged.offset, [frame]))

    def drain(self) -> list[Finished]:
        """What was finished, for the transaction that is being made."""
        finished, self.finished = self.finished, []
        for one in finished:
            self.windows[one.partition].finish(one.offset)
            self._moved.add(one.partition)
        return finished

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
