"""Cache of records that this process appended and its stages have not read yet, as objects: a hop needs no read and no decoding.

It is a cache over the log and follows its transactions: a rollback removes records, and records that another process appended are
not in it; a reader that misses an offset reads the log.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from schemas.records import Record
from streams.store import Store, Transaction

LENGTH = 4_096
"""Maximum number of cached records of one partition; others are read from the log."""


class CachedRecord(NamedTuple):
    """A record as it was appended; `record` is None if it has not been decoded."""

    offset: int
    key: bytes
    value: bytes | None
    record: Record | None


class TurnCache:
    """Cache of all partitions of all topics, with the committed offsets of the deciding stages."""

    def __init__(self) -> None:
        self._recent: dict[tuple[str, int], deque[CachedRecord]] = {}
        self._added: list[tuple[tuple[str, int], deque[CachedRecord] | None]] = []
        """Partitions to which a record was added since the last commit, with the content that it replaced."""
        self._advanced: list[tuple[tuple[str, str, int], int]] = []
        self.committed: dict[tuple[str, str, int], int] = {}
        self._read: set[tuple[str, int]] = set()

    def add(self, topic: str, partition: int, offset: int, key: bytes, value: bytes, record: Record | None) -> None:
        """Add a record that was appended in the open transaction."""
        at = (topic, partition)
        recent, before = self._recent.get(at), None
        if recent is None:
            recent = self._recent[at] = deque()
        elif recent and recent[-1].offset + 1 != offset:
            # Another process, or staged records, appended in between: those are read from the log.
            before, recent = recent, deque()
            self._recent[at] = recent
        recent.append(CachedRecord(offset, key, value, record))
        self._added.append((at, before))

    def advance(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Set the offset up to which a stage has read."""
        at = (group, topic, partition)
        self._advanced.append((at, self.committed.get(at, 0)))
        self.committed[at] = offset
        self._read.add((topic, partition))

    def read(self, tx: Transaction, store: Store, topic: str, partition: int, start: int, limit: int) -> list[CachedRecord]:
        """Return at most `limit` records from `start` on: cached ones, or else from the log."""
        recent = self._recent.get((topic, partition))
        if recent:
            first = recent[0].offset
            if first <= start <= recent[-1].offset:
                skip = start - first
                return [recent[i] for i in range(skip, min(skip + limit, len(recent)))]
            if start < first:
                older = self._from_log(store, topic, partition, start, min(limit, first - start))
                if older or first > store.ends(topic)[partition]:
                    # The records in between were published in this transaction: they are read after its commit.
                    return older
                # Below the cached records nothing is left: it was compacted away.
                return [recent[i] for i in range(min(limit, len(recent)))]
        if start >= tx.ends(topic)[partition]:
            return []
        return self._from_log(store, topic, partition, start, limit)

    @staticmethod
    def _from_log(store: Store, topic: str, partition: int, start: int, limit: int) -> list[CachedRecord]:
        return [CachedRecord(r.offset, r.key, r.value, None) for r in store.read(topic, partition, start, limit)]

    def mark(self) -> tuple[int, int]:
        """Return a mark for `rollback`."""
        return len(self._added), len(self._advanced)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Remove the records that were added since the mark."""
        while len(self._added) > mark[0]:
            at, replaced = self._added.pop()
            self._recent[at].pop()
            if replaced is not None:
                self._recent[at] = replaced
        while len(self._advanced) > mark[1]:
            reader, before = self._advanced.pop()
            self.committed[reader] = before

    def commit(self) -> None:
        """Drop records that all stages have read, and those beyond the maximum."""
        self._added.clear()
        self._advanced.clear()
        for at in self._read:
            recent = self._recent.get(at)
            if recent:
                # A topic may have several readers: records that the slowest has read are dropped.
                offset = min(o for (_, topic, partition), o in self.committed.items() if (topic, partition) == at)
                while recent and recent[0].offset < offset:
                    recent.popleft()
        self._read.clear()
        for recent in self._recent.values():
            if len(recent) > LENGTH:
                recent.clear()
