"""Records on their way from a turn to an edge, as they were appended: neither the log nor the decoder is asked for them again.

Laws:
- It is a cache over the log: what stands there is handed on once, in order; where an offset is not here, the log is read.
- It is bounded: what comes while it is full, and all behind that until it is empty, is read from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from schemas.ports import Logged
from streams.edges.base import Source

COUNT = 8_192
"""Records of one partition that wait at the most."""
BYTES = 16 << 20
"""Bytes of all that wait, keys and values, about."""


class EdgeCache:
    """A `Source` over another one, the log. One thread."""

    def __init__(self, log: Source) -> None:
        self._log = log
        self._ready: dict[tuple[str, int], deque[Logged]] = {}
        self._bytes = 0

    def keep(self, written: Iterable[Logged]) -> None:
        """What a turn appended, and stands, in the order of offsets."""
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
        """As `Source.read`, but what is given from here is given once; fewer than `limit` do not mean that there are no more."""
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
