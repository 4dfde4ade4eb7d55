"""Records that the consumer delivered, until the edge takes them (`streams.edges.base.Source`).

A record is retained until it is finished: if it cannot be processed, or the broker rejects its outputs, it becomes a dead letter
with its bytes and headers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from schemas.codec import DecodeError
from schemas.ports import Logged
from schemas.wire import SINGLE, Wire

if TYPE_CHECKING:
    from confluent_kafka import Message

Headers = list[tuple[str, str | bytes | None]]
FULL = 4_096
FULL_BYTES = 32 << 20
"""Limits of waiting records (FULL) and their bytes: above either, the consumer is paused."""


class Buffer:
    """Records of all open partitions that were read and not begun."""

    def __init__(self, topic: str, partitions: int, wire: Wire = SINGLE) -> None:
        """`topic` is the name in the topology, without the prefix; `wire` is the format of values on the broker."""
        self._topic = topic
        self._wire = wire
        self._ends = [0] * partitions
        self._waiting: dict[int, deque[Logged]] = {}
        self._done: dict[int, frozenset[int]] = {}
        self._taken: dict[tuple[int, int], Logged] = {}
        self._headers: dict[tuple[int, int], Headers] = {}
        self._count = self._bytes = 0
        self._reached: dict[int, int] = {}
        """End offset of each partition that was read to its end."""

    def open(self, partition: int, offset: int, done: frozenset[int]) -> None:
        """Open a partition at an offset; the finished records above it (`done`) are skipped."""
        self._waiting[partition] = deque()
        self._done[partition] = done
        self._ends[partition] = offset

    def shut(self, partition: int) -> None:
        """Close a partition that another worker reads now, and drop its records."""
        self._reached.pop(partition, None)
        for logged in self._waiting.pop(partition, ()):
            self._leaves(logged)
        for known in (self._taken, self._headers):
            for place in [place for place in known if place[0] == partition]:
                del known[place]

    def add(self, message: Message) -> None:
        """Add a record that arrived."""
        partition, offset, value = message.partition() or 0, message.offset() or 0, message.value()
        if partition not in self._waiting or offset in self._done[partition]:
            return
        if value is not None:
            # A value that cannot be decoded stays as it is: the edge rejects it, with its bytes.
            with suppress(DecodeError):
                value = self._wire.plain(value)
        logged = Logged(self._topic, partition, offset, message.timestamp()[1], message.key() or b"", value)
        self._waiting[partition].append(logged)
        self._ends[partition] = offset + 1
        self._count += 1
        self._bytes += len(value or b"")
        if headers := message.headers():
            self._headers[partition, offset] = list(headers.items() if isinstance(headers, dict) else headers)

    def reach(self, partition: int, end: int) -> None:
        """Mark a partition as read up to `end`: no record lies between the last one added and this offset."""
        if partition in self._waiting:
            self._reached[partition] = end

    def reached(self) -> Mapping[int, int]:
        """Return the end offsets of partitions with no waiting records, each once; transaction markers may lie before an end."""
        found = {partition: end for partition, end in self._reached.items() if not self._waiting[partition]}
        for partition in found:
            del self._reached[partition]
        return found

    @property
    def full(self) -> bool:
        """Whether either limit of waiting records is reached."""
        return self._count >= FULL or self._bytes >= FULL_BYTES

    def ends(self, topic: str) -> Sequence[int]:
        """Return, for each partition, the offset after the last record that arrived."""
        return self._ends

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Logged]:
        """Remove and return at most `limit` waiting records from `offset` on."""
        waiting = self._waiting[partition]
        found: list[Logged] = []
        while waiting and len(found) < limit:
            logged = waiting.popleft()
            self._leaves(logged)
            if logged.offset >= offset:
                self._taken[partition, logged.offset] = logged
                found.append(logged)
        return found

    def taken(self, partition: int, offset: int) -> Logged | None:
        """Return a record that was taken and is not finished; None if its partition was closed."""
        return self._taken.get((partition, offset))

    def headers(self, partition: int, offset: int) -> Headers:
        """Return the headers of such a record."""
        return self._headers.get((partition, offset), [])

    def finished(self, partition: int, offset: int) -> None:
        """Release a finished record."""
        self._taken.pop((partition, offset), None)
        self._headers.pop((partition, offset), None)

    def _leaves(self, logged: Logged) -> None:
        self._count -= 1
        self._bytes -= len(logged.value or b"")
