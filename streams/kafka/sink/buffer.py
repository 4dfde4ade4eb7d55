"""Records of a partition that a sink has read but not written yet."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from schemas.ports import Logged

BATCH = 500
"""Records of one request to a server: enough to outweigh its flush to disk, few enough to prepare the next meanwhile."""
LINGER = 0.1
"""Seconds that a smaller batch waits for more records."""
GATHERED, GATHER, LULL = 2_000, 5.0, 0.5
"""Batch limits of an engine with expensive commits: records of a partition; seconds since the first; idle seconds.

A commit costs more than its content, since each creates an index segment to be merged later. GATHER is the longest that the first
record waits while more arrive; LULL without further records is enough.
"""
HELD, HELD_BYTES = 2 * GATHERED, 16 << 20
"""Records of a partition that may wait for the index, and their bytes."""


class Read(NamedTuple):
    """A record and its headers."""

    logged: Logged
    headers: Any


class Part:
    """An assigned partition. `whole`: the engine has expensive commits."""

    def __init__(self, start: int, *, whole: bool = False) -> None:
        self._whole = whole
        self.records: list[Read] = []
        self.size = 0
        self.since = 0.0
        self.latest = 0.0
        """Arrival times (monotonic) of the first and last waiting record: `since`, `latest`."""
        self.acknowledged = start
        """Offset below which the index has everything."""
        self.applied = start
        """Offset that the index has stored."""
        self.told = 0
        """Offset that the group has committed."""
        self.end = 0
        """End of the partition when it was read to its end: no record lies between the last one read and this offset."""
        self.task: Future[Mapping[int, int]] | None = None
        self.begun = 0.0
        """Time (monotonic) when the request under way was begun."""
        self.paused = False

    def take(self, read: Read) -> None:
        """Add a record."""
        self.latest = time.monotonic()
        if not self.records:
            self.since = self.latest
        self.records.append(read)
        self.size += len(read.logged.value or b"")

    def batch(self) -> list[Read]:
        """Remove and return the records that have waited longest."""
        most = GATHERED if self._whole else BATCH
        batch, self.records = self.records[:most], self.records[most:]
        # The remaining records arrived later than the first one did: their wait starts now.
        self.since = time.monotonic()
        self.size -= sum(len(read.logged.value or b"") for read in batch)
        return batch

    def ripe(self) -> bool:
        """Whether a request to a server is due: enough records, or LINGER seconds have passed."""
        return bool(self.records) and (len(self.records) >= BATCH or time.monotonic() - self.since >= LINGER)

    def passing(self) -> bool:
        """Whether the index has more than its stored offset says."""
        return self.acknowledged > self.applied

    @property
    def done(self) -> int:
        """Offset that may be committed; once idle it includes transaction markers after the last record."""
        resting = self.task is None and not self.records and not self.passing()
        return max(self.applied, self.end) if resting else self.applied

    def untold(self) -> bool:
        """Whether the offset that may be committed is above the committed one."""
        return self.done > self.told

    def full(self, share: float = 1.0) -> bool:
        """Whether the waiting records reach this share of a limit."""
        return len(self.records) >= share * HELD or self.size >= share * HELD_BYTES


def is_commit_due(parts: Collection[Part]) -> bool:
    """Whether an expensive commit is due for the records of all partitions (see GATHERED), or one partition is full."""
    waiting = [part for part in parts if part.records]
    if not waiting:
        return False
    now = time.monotonic()
    return (
        any(len(part.records) >= GATHERED or part.full() for part in waiting)
        or now - min(part.since for part in waiting) >= GATHER
        or now - max(part.latest for part in waiting) >= LULL
    )
