"""Rows of a stage in one partition, on a Faust table: RocksDB here, its changelog on Kafka (law 5).

Strategy: reads and scans go to the partition's store itself, which Faust's tables hide behind a mapping without order. Writes go
there too, so that the next read sees them, and are remembered; the changelog gets them when the record is decided.

Laws:
- The changelog gets the writes of a record in their order (a key written twice: its last value, in its last place), and those of
  one record before those of the next.
- What is put is sent, whether the store had it or not: on redelivery the changelog gets what it may have missed.
- A record that failed leaves no row behind: `undo` restores the store, and nothing was sent.
- RocksDB may be ahead of the changelog by what a killed worker had not sent; `mends.tables` begins without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faust.tables.base import Collection


class TableRows:
    """`schemas.ports.Rows`, for the time of one record."""

    def __init__(self, table: Collection, partition: int) -> None:
        self._table = table
        self._partition = partition
        store: Any = table.data
        self._store = store._db_for_partition(partition)  # noqa: SLF001 - no public way to one partition, in order
        self._own: bytes = store.offset_key
        self._before: dict[bytes, bytes | None] = {}
        self._written: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        value: bytes | None = self._store.get(key)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row."""
        self._note(key, value)
        self._store.put(key, value)

    def delete(self, key: bytes) -> None:
        """Delete a row."""
        self._note(key, None)
        self._store.delete(key)

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Rows by prefix, in order; as they were when the scan began."""
        for key, value in self._store.items(from_key=max(prefix, after)):
            if not key.startswith(prefix) or limit == 0:
                return
            if key not in (self._own, after):
                limit -= 1
                yield key, value

    def undo(self) -> None:
        """Restore the store to what it was before the first write."""
        for key, value in self._before.items():
            if value is None:
                self._store.delete(key)
            else:
                self._store.put(key, value)
        self._before.clear()
        self._written.clear()

    def send(self) -> list[Awaitable[Any]]:
        """Hand what was written to the producer; each answer is awaited by who must know it durable."""
        send = self._table.send_changelog
        return [send(self._partition, key, value, "raw", "raw") for key, value in self._written.items()]

    def _note(self, key: bytes, value: bytes | None) -> None:
        if key not in self._before:
            self._before[key] = self._store.get(key)
        self._written.pop(key, None)
        self._written[key] = value
