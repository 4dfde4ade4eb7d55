"""Start cursors of the queues in a partition, so that a scan for the first row skips tombstones.

Cause: a deleted row stays in RocksDB as a tombstone until compaction, and a scan from the start of a queue crosses all of them: 266
lookups/s at the end of a long queue, against 172,000 from a cursor.

Laws:
- No row of a prefix is below its cursor. A scan moves the cursor to the first row that it found; a row put below the cursor moves
  it back.
- Cursors are kept in memory: a newly assigned partition begins without any.
"""

from __future__ import annotations

from collections import Counter

MANY = 4_096
"""Cursors kept for one partition; a lookup whose cursor was evicted costs a scan."""


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the least key greater than all keys of a prefix; None if there is none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


class Cursors:
    """The cursors of one partition, for the prefixes of its queues."""

    def __init__(self, queues: tuple[bytes, ...]) -> None:
        self._queues = queues
        self._first: dict[bytes, bytes | None] = {}
        """First row by prefix; None for an empty queue."""
        self._lengths: Counter[int] = Counter()

    def kept(self, key: bytes) -> bool:
        """Whether this is a row of a queue, or a prefix of such rows."""
        return key.startswith(self._queues)

    def start(self, prefix: bytes) -> bytes | None:
        """Return the key at which a scan for rows of the prefix begins; None if there are none."""
        return self._first.get(prefix, prefix)

    def found(self, prefix: bytes, first: bytes | None) -> None:
        """Record the first row that a scan of the whole prefix found; None: it was empty."""
        if prefix not in self._first:
            if len(self._first) >= MANY:
                oldest = next(iter(self._first))
                del self._first[oldest]
                self._lengths[len(oldest)] -= 1
            self._lengths[len(prefix)] += 1
        self._first[prefix] = first

    def put(self, key: bytes) -> None:
        """Update the cursors for a row that is put."""
        for length, used in self._lengths.items():
            prefix = key[:length]
            if used and prefix in self._first:
                first = self._first[prefix]
                self._first[prefix] = key if first is None else min(first, key)
