"""Cache of records between the turn that appended them and the edge that reads them: neither read from the log nor decoded again.

Laws:
- It is a cache over the log: records in the log are passed on once, in order; an offset that is not cached is read from the log.
- It is bounded: records that arrive while it is full, and all after them until it is empty, are read from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from schemas.ports import Logged
from streams.edges.base import Source

COUNT = 8_192
"""Maximum number of cached records of one partition."""
BYTES = 16 << 20
"""Approximate maximum bytes of all cached keys and values."""


class EdgeCache:
    """A `Source` over another one, the log. For one thread."""

    def __init__(self, log: Source) -> None:
        self._log = log
        self._ready: dict[tuple[str, int], deque[Logged]] = {}
        self._bytes = 0

    def keep(self, written: Iterable[Logged]) -> None:
        """Cache the records that a committed turn appended, in the order of offsets."""
        for one in written:
            ready = self._ready.setdefault((one.topic, one.partition), deque())
            behind = not ready or ready[-1].offset + 1 == one.offset
            if behind and len(ready) < COUNT and self._bytes < BYTES:
                ready.append(one)
                self._bytes += _size(one)

    def ends(self, topic: str) -> Sequence[int]:
        """As `Source.ends`."""
        return self._log.ends(topic)

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Logged]:
        """As `Source.read`, but a cached record is returned once; fewer than `limit` do not mean that there are no more."""
        ready = self._ready.get((topic, partition))
        while ready and ready[0].offset < offset:
            self._drop(ready)
        if not ready:
            return self._log.read(topic, partition, offset, limit)
        if ready[0].offset > offset:
            return self._log.read(topic, partition, offset, min(limit, ready[0].offset - offset))
        return [self._drop(ready) for _ in range(min(limit, len(ready)))]

    def _drop(self, ready: deque[Logged]) -> Logged:
        one = ready.popleft()
        self._bytes -= _size(one)
        return one


def _size(one: Logged) -> int:
    return len(one.key) + len(one.value or b"")
