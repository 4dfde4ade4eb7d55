"""What a consumer brought an edge, until the edge takes it (`streams.edges.base.Source`).

A record stays known until it is finished: one that cannot be processed, or whose outputs the broker refuses, becomes a dead letter
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
"""Records, and bytes of them, that wait to be taken: then no more are asked for."""


class Buffer:
    """The records of all open partitions that were read and not begun."""

    def __init__(self, topic: str, partitions: int, wire: Wire = SINGLE) -> None:
        """`topic` as the topology has it, whatever stands before it on the broker; `wire` is how values stand there."""
        self._topic = topic
        self._wire = wire
        self._ends = [0] * partitions
        self._waiting: dict[int, deque[Logged]] = {}
        self._done: dict[int, frozenset[int]] = {}
        self._taken: dict[tuple[int, int], Logged] = {}
        self._headers: dict[tuple[int, int], Headers] = {}
        self._count = self._bytes = 0
        self._reached: dict[int, int] = {}
        """Where partitions ended when they were read to their ends."""

    def open(self, partition: int, offset: int, done: frozenset[int]) -> None:
        """A partition is read from an offset on; what is done above that is left out."""
        self._waiting[partition] = deque()
        self._done[partition] = done
        self._ends[partition] = offset

    def shut(self, partition: int) -> None:
        """A partition is read by somebody else."""
        self._reached.pop(partition, None)
        for logged in self._waiting.pop(partition, ()):
            self._leaves(logged)
        for known in (self._taken, self._headers):
            for place in [place for place in known if place[0] == partition]:
                del known[place]

    def add(self, message: Message) -> None:
        """A record has come."""
        partition, offset, value = message.partition() or 0, message.offset() or 0, message.value()
        if partition not in self._waiting or offset in self._done[partition]:
            return
        if value is not None:
            # What is no record stays as it is: the edge refuses it, with its bytes.
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
        """A partition is read to its end: there is no record between the last that came and this offset."""
        if partition in self._waiting:
            self._reached[partition] = end

    def reached(self) -> Mapping[int, int]:
        """The ends of partitions of which nothing waits, each told once; records of transactions have markers behind them."""
        found = {partition: end for partition, end in self._reached.items() if not self._waiting[partition]}
        for partition in found:
            del self._reached[partition]
        return found

    @property
    def full(self) -> bool:
        """Whether enough is waiting."""
        return self._count >= FULL or self._bytes >= FULL_BYTES

    def ends(self, topic: str) -> Sequence[int]:
        """The next offset of each partition that has not come yet."""
        return self._ends

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Logged]:
        """At most `limit` records from `offset` on; they wait no more."""
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
        """A record that was taken and is not finished; None if its partition went."""
        return self._taken.get((partition, offset))

    def headers(self, partition: int, offset: int) -> Headers:
        """The headers of such a record."""
        return self._headers.get((partition, offset), [])

    def finished(self, partition: int, offset: int) -> None:
        """A record need be known no more."""
        self._taken.pop((partition, offset), None)
        self._headers.pop((partition, offset), None)

    def _leaves(self, logged: Logged) -> None:
        self._count -= 1
        self._bytes -= len(logged.value or b"")
