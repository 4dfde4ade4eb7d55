"""Rows of a stage in one partition, on a Faust table: RocksDB locally, its changelog on Kafka (law 5).

Strategy: reads and scans go to the partition's store directly, which Faust's tables hide behind an unordered mapping. Writes go
there too, so that the next read sees them, and are recorded; they are sent to the changelog when the record is decided.

Laws:
- The changelog gets the writes of a record in order (a key written twice: its last value, in its last position), and those of one
  record before those of the next.
- Every put is sent, whether or not the store had the row: a redelivery supplies rows that the changelog may lack.
- Derived rows are not sent: they are rebuilt from the others when a partition is assigned.
- A record that failed leaves no rows: `undo` restores the store, and nothing was sent.
- A failing store is distinguished from a failing record: the process ends, and the next one fills its store from the changelog.
- RocksDB may be ahead of the changelog by writes that a killed worker had not sent; `client_workarounds.tables` then empties it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from faust.types import TP
from rocksdict import DbClosedError, ReadOptions

from streams.kafka.client.cursors import Cursors, prefix_end
from streams.kafka.client.topic_identity import BASE
from streams.kafka.decide.sending import Outgoing, RecordPosition

if TYPE_CHECKING:
    from faust.tables.base import Collection


class TableRows:
    """`schemas.ports.Rows` for one record. `cursors` belong to the partition, and tell which rows are derived."""

    def __init__(self, table: Collection, partition: int, cursors: Cursors) -> None:
        self._table = table
        self._partition = partition
        self._cursors = cursors
        self._changelog: str = table.changelog_topic.get_topic_name()
        store: Any = table.data
        self._store = store._db_for_partition(partition)  # noqa: SLF001 - no public way to one partition, in order
        self._own: bytes = store.offset_key
        self._before: dict[bytes, bytes | None] = {}
        self._written: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        value: bytes | None = self._store.get(key)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row."""
        self._note(key, value)
        self._set(key, value)

    def delete(self, key: bytes) -> None:
        """Delete a row."""
        self._note(key, None)
        self._store.delete(key)

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Yield rows by prefix, in order, as of the beginning of the scan."""
        queue = self._cursors.kept(prefix) and after <= prefix
        start = self._cursors.start(prefix) if queue else max(prefix, after)
        if start is None or limit == 0:
            return
        seen = False
        # Kept in a variable: the iterator refers to it until its end.
        within = _within(prefix)
        for key, value in self._store.items(from_key=start, read_opt=within):
            if key in (self._own, after):
                continue
            if queue and not seen:
                self._cursors.found(prefix, key)
            seen = True
            yield key, value
            limit -= 1
            if limit == 0:
                return
        if queue and not seen:
            self._cursors.found(prefix, None)

    def undo(self) -> None:
        """Restore the store to its state before the first write."""
        for key, value in self._before.items():
            if value is None:
                self._store.delete(key)
            else:
                self._set(key, value)
        self._before.clear()
        self._written.clear()

    def written(self) -> list[Outgoing]:
        """Return the writes for the changelog; `durable` is called once they are acknowledged."""
        topic, partition = self._changelog, self._partition
        return [Outgoing(topic, key, value, partition) for key, value in self._written.items() if not self._cursors.kept(key)]

    def _set(self, key: bytes, value: bytes) -> None:
        self._store.put(key, value)
        if self._cursors.kept(key):
            self._cursors.put(key)

    def _note(self, key: bytes, value: bytes | None) -> None:
        if key not in self._before:
            self._before[key] = self.get(key)
        self._written.pop(key, None)
        self._written[key] = value


def origin_bases(table: Collection, partition: int, topics: Iterable[str]) -> dict[str, int]:
    """Return what is added to the offsets of topics that were made again (`client/topic_reset.py`), by topic."""
    store: Any = table.data
    rows = store._db_for_partition(partition)  # noqa: SLF001 - as above
    found = {name: rows.get(BASE + name.encode()) for name in topics}
    return {name: int(value) for name, value in found.items() if value}


class StoppedError(Exception):
    """Derived rows are no longer needed: the partition was revoked."""


class RestoredRows(TableRows):
    """Rows of a partition while its derived rows are rebuilt: many, neither sent nor undone. For one thread.

    Once another thread has set `stopped`, the next access raises StoppedError.
    """

    def __init__(self, table: Collection, partition: int, cursors: Cursors) -> None:
        super().__init__(table, partition, cursors)
        self.count = 0
        """Number of rows accessed."""
        self.stopped = threading.Event()

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """As `TableRows.scan`."""
        for row in super().scan(prefix, after, limit):
            self._look()
            yield row

    def _note(self, key: bytes, value: bytes | None) -> None:
        """Record nothing, but count the access."""
        self._look()

    def _look(self) -> None:
        self.count += 1
        if self.stopped.is_set():
            raise StoppedError


def of_store(error: Exception) -> bool:
    """Whether the error comes from the store or from memory shortage rather than from the record.

    RocksDB's own errors have no class of their own.
    """
    return type(error) is Exception or isinstance(error, (DbClosedError, OSError, MemoryError))


def durable(table: Collection, places: Iterable[RecordPosition]) -> None:
    """Store the changelog offsets of rows that were sent, so that the next recovery begins after them."""
    data: Any = table.data
    topic = table.changelog_topic.get_topic_name()
    for partition, offset in dict(sorted(places)).items():
        data.set_persisted_offset(TP(topic, partition), offset)


def _within(prefix: bytes) -> ReadOptions:
    """Return options that end a scan at the end of the prefix, so that it does not cross tombstones after it."""
    options = ReadOptions()
    if (end := prefix_end(prefix)) is not None:
        options.set_iterate_upper_bound(end)
    return options
