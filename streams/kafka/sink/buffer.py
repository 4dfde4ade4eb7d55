"""What a sink has read of a partition and not written yet."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from schemas.ports import Logged

BATCH = 500
"""Records of one request to a server: enough to outweigh its flush to disk, and few enough that the next is made meanwhile."""
LINGER = 0.1
"""Seconds that fewer wait for more."""
GATHERED, GATHER, LULL = 2_000, 5.0, 0.5
"""For an engine whose commits cost more than what is in them, since each makes a piece of an index, to be merged with others:
records of one partition; seconds that the first of all waits while more come; seconds after the last, which is then enough."""
HELD, HELD_BYTES = 2 * GATHERED, 16 << 20
"""Records of a partition that may wait for the index, and their bytes."""


class Read(NamedTuple):
    """A record as it was read, with its headers."""

    logged: Logged
    headers: Any


class Part:
    """A partition that this member has. `whole`: for an engine whose commits cost much."""

    def __init__(self, start: int, *, whole: bool = False) -> None:
        self._whole = whole
        self.records: list[Read] = []
        self.size = 0
        self.since = 0.0
        self.latest = 0.0
        """When the first of them came, and the last."""
        self.acknowledged = start
        """The offset below which the index has all ..."""
        self.applied = start
        """... the one that the index knows of ..."""
        self.told = 0
        """... and the one that the group knows of."""
        self.end = 0
        """Where the partition ended when it was read to its end: there is no record between the last that came and this."""
        self.task: Future[Mapping[int, int]] | None = None
        self.paused = False

    def take(self, read: Read) -> None:
        """Let a record wait."""
        self.latest = time.monotonic()
        if not self.records:
            self.since = self.latest
        self.records.append(read)
        self.size += len(read.logged.value or b"")

    def batch(self) -> list[Read]:
        """The records that waited longest, which wait no more."""
        most = GATHERED if self._whole else BATCH
        batch, self.records = self.records[:most], self.records[most:]
        # What stays came later than the first did: it waits for more from now on.
        self.since = time.monotonic()
        self.size -= sum(len(read.logged.value or b"") for read in batch)
        return batch

    def ripe(self) -> bool:
        """Whether what waits is a request to a server: there is enough of it, or it has waited for more long enough."""
        return bool(self.records) and (len(self.records) >= BATCH or time.monotonic() - self.since >= LINGER)

    def passing(self) -> bool:
        """Whether the index has more than it knows of."""
        return self.acknowledged > self.applied

    @property
    def done(self) -> int:
        """The offset that the group may know of: behind the last record markers of transactions may stand, which no index has."""
        resting = self.task is None and not self.records and not self.passing()
        return max(self.applied, self.end) if resting else self.applied

    def untold(self) -> bool:
        """Whether more is done than the group knows of."""
        return self.done > self.told

    def full(self, share: float = 1.0) -> bool:
        """Whether so much waits that no more is wanted."""
        return len(self.records) >= share * HELD or self.size >= share * HELD_BYTES


def gathered(parts: Collection[Part]) -> bool:
    """Whether what waits in all partitions is enough for a commit that costs much (see GATHERED), or one has no room for more."""
    waiting = [part for part in parts if part.records]
    if not waiting:
        return False
    now = time.monotonic()
    return (
        any(len(part.records) >= GATHERED or part.full() for part in waiting)
        or now - min(part.since for part in waiting) >= GATHER
        or now - max(part.latest for part in waiting) >= LULL
    )
