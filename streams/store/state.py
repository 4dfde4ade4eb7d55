"""What one connection knows of the database: topics, ends, rows, staged counts, and when that knowledge is stale.

Other processes append to topics and make new ones, so that all of it is good only for as long as SQLite's `data_version` says
that no other connection has committed. After any failure everything is forgotten and read again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from streams.store.errors import StoreError, translated
from streams.store.locks import LockFile
from streams.store.rows import TableRows
from streams.store.schema import PARTITION_BITS, TOPIC_TABLE, in_log, slot

ROWS_CACHE = 16 * 1024 * 1024
"""Bytes of committed rows kept in memory for one stage, divided by the most partitions of any topic as of their first use. The row
of a URL is written when it is found and read when its answer comes, behind all that were found before: at 500 bytes a URL this is
room for 16,000 of them at the least."""


class Topic:
    """A topic's number and its count of partitions."""

    __slots__ = ("id", "partitions")

    def __init__(self, number: int, partitions: int) -> None:
        self.id = number
        self.partitions = partitions


class State:
    """See the module. `turn` is the lock that writers queue at; None for a store that only reads."""

    def __init__(self, connection: apsw.Connection, path: Path, turn: LockFile | None, rows_cache: int = ROWS_CACHE) -> None:
        self._rows_cache = rows_cache
        self.connection = connection
        self.cursor = connection.cursor()
        self.path = path
        self._turn = turn
        self._version = -1
        self._topics: dict[str, Topic] = {}
        self._ends: dict[int, int] = {}
        self._rows: dict[tuple[str, int], TableRows] = {}
        self._staged: dict[str, Counter[int]] = {}

    def fetch(self, sql: str, *bindings: str | int | bytes) -> list[Any]:
        """All rows that a statement gives. Raises StoreError, DiskFull."""
        try:
            return self.cursor.execute(sql, bindings).fetchall()
        except apsw.Error as error:
            raise translated(error, str(self.path), self.connection.system_errno) from error

    def begin(self) -> None:
        """Start a transaction that may write. Raises apsw.BusyError where another writer outlasts the time-out."""
        if self._turn is None:
            raise StoreError(f"{self.path}: opened for reading only")
        # SQLite's writers poll, and one that begins again at once starves the others: they queue at a lock of the kernel's.
        with self._turn.held():
            self.cursor.execute("BEGIN IMMEDIATE")
        self.refresh()

    def abort(self) -> None:
        """Undo the transaction, where SQLite has not done so itself, and forget all that may be of it."""
        try:
            if self.connection.in_transaction:
                self.cursor.execute("ROLLBACK")
        finally:
            self._version = -1
            for rows in self._rows.values():
                rows.detach()
            self._rows.clear()
            self._staged.clear()

    def refresh(self) -> None:
        """Read topics and ends again, and forget rows, if another connection has committed since."""
        ((version,),) = self.fetch("PRAGMA data_version")
        if version != self._version:
            topics = self.fetch("SELECT name, id, partitions FROM topics ORDER BY name")
            self._topics = {name: Topic(number, partitions) for name, number, partitions in topics}
            self._ends = dict(self.fetch("SELECT slot, next FROM ends"))
            for rows in self._rows.values():
                rows.forget()
            self._staged.clear()
            self._version = version

    def topics(self) -> dict[str, int]:
        """Partition count by topic, in order of the name, as last refreshed."""
        return {name: topic.partitions for name, topic in self._topics.items()}

    def slot(self, topic: str, partition: int) -> int:
        """The number of a partition. Raises KeyError for an unknown topic or partition."""
        found = self._topics[topic]
        if not 0 <= partition < found.partitions:
            raise KeyError(f"{topic}/{partition}")
        return found.id << PARTITION_BITS | partition

    def slots(self, topic: str) -> range:
        """The numbers of a topic's partitions. Raises KeyError for an unknown topic."""
        found = self._topics[topic]
        first = slot(found.id, 0)
        return range(first, first + found.partitions)

    def name(self, number: int) -> tuple[str, int]:
        """The topic and the partition of a slot."""
        partition = number & ((1 << PARTITION_BITS) - 1)
        return next(n for n, t in self._topics.items() if t.id == number >> PARTITION_BITS), partition

    def end(self, number: int) -> int:
        """The next offset of a partition, as last refreshed."""
        return self._ends.get(number, 0)

    def create(self, topics: dict[str, int]) -> None:
        """Make the topics that are not there yet, inside a transaction."""
        for name, partitions in topics.items():
            if not 1 <= partitions < 1 << PARTITION_BITS:
                raise StoreError(f"topic {name}: {partitions} partitions")
            made = self.fetch(
                "INSERT INTO topics(name, partitions) VALUES(?, ?) ON CONFLICT DO NOTHING RETURNING id", name, partitions
            )
            for number in (slot(made[0][0], p) for p in range(partitions if made else 0)):
                self.fetch(in_log(TOPIC_TABLE, number))
        self._version = -1

    def rows(self, name: str, partition: int) -> TableRows:
        """The rows of a stage in a partition, their table made if need be, inside a transaction."""
        rows = self._rows.get((name, partition))
        if rows is None:
            table = self.table(name, partition) or self._make_table(name, partition)
            most = max((topic.partitions for topic in self._topics.values()), default=1)
            rows = self._rows[name, partition] = TableRows(self.connection, table, self._rows_cache // most)
        return rows

    def table(self, name: str, partition: int) -> str | None:
        """The table of a stage in a partition; None if it never wrote."""
        found = self.cursor.execute("SELECT id FROM spaces WHERE name=? AND partition=?", (name, partition)).get
        return None if found is None else f"rows_{found}"

    def _make_table(self, name: str, partition: int) -> str:
        self.cursor.execute("INSERT INTO spaces(name, partition) VALUES(?, ?)", (name, partition))
        table = f"rows_{self.connection.last_insert_rowid()}"
        self.cursor.execute(f"CREATE TABLE {table}(key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL)")
        return table

    def offsets(self, group: str, number: int) -> tuple[int, frozenset[int]]:
        """What a group has committed of a partition."""
        found = self.fetch("SELECT next, done FROM offsets WHERE name=? AND slot=?", group, number)
        return (found[0][0], unpacked(found[0][1])) if found else (0, frozenset())

    def staged(self, owner: str) -> Counter[int]:
        """How many records an owner has staged, by slot: a copy."""
        if owner not in self._staged:
            sql = "SELECT slot, count(*) FROM staged WHERE owner=? GROUP BY slot"
            self._staged[owner] = Counter(dict(self.fetch(sql, owner)))
        return self._staged[owner].copy()

    def committed(self, ends: dict[int, int], staged: dict[str, Counter[int]]) -> None:
        """Take over what our own transaction has changed."""
        self._ends.update(ends)
        for owner, counts in staged.items():
            if counts.total():
                self._staged[owner] = counts
            else:
                self._staged.pop(owner, None)


def packed(offsets: frozenset[int]) -> bytes:
    """Offsets as bytes: 8 each, in order."""
    return array("q", sorted(offsets)).tobytes()


def unpacked(data: bytes) -> frozenset[int]:
    """The offsets that `packed` wrote."""
    return frozenset(array("q", data))
