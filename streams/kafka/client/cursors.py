"""Where the queues of a partition begin, so that a look at the first row of one does not cross the rows that were taken from it.

Cause: what is deleted stays in RocksDB as a tombstone until it is merged away, and a scan from the start of a queue crosses all
of them: 266 looks/s at the end of a long queue, against 172,000 from a cursor.

Laws:
- No row of a prefix is below its cursor. A cursor moves on to what a scan found first; a row that is put below it moves it back.
- They are memory: a partition that is taken begins without.
"""

from __future__ import annotations

from collections import Counter

MANY = 4_096
"""Cursors kept for one partition; one that is forgotten costs a scan."""


def behind(prefix: bytes) -> bytes | None:
    """The least key that is greater than all keys of a prefix; None if there is none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


class Cursors:
    """The cursors of one partition, for the prefixes of its queues."""

    def __init__(self, queues: tuple[bytes, ...]) -> None:
        self._queues = queues
        self._first: dict[bytes, bytes | None] = {}
        """By prefix, its first row, or None where it has none."""
        self._lengths: Counter[int] = Counter()

    def kept(self, key: bytes) -> bool:
        """Whether this is a row of a queue, or a prefix of such rows."""
        return key.startswith(self._queues)

    def start(self, prefix: bytes) -> bytes | None:
        """From where on to look for rows of a prefix; None: there are none."""
        return self._first.get(prefix, prefix)

    def found(self, prefix: bytes, first: bytes | None) -> None:
        """A scan of the whole prefix began with this row; None: it was empty."""
        if prefix not in self._first:
            if len(self._first) >= MANY:
                oldest = next(iter(self._first))
                del self._first[oldest]
                self._lengths[len(oldest)] -= 1
            self._lengths[len(prefix)] += 1
        self._first[prefix] = first

    def put(self, key: bytes) -> None:
        """A row comes, or comes back."""
        for length, used in self._lengths.items():
            prefix = key[:length]
            if used and prefix in self._first:
                first = self._first[prefix]
                self._first[prefix] = key if first is None else min(first, key)
