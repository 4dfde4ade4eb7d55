"""A connection's cache of the database: topics, ends, rows, staged counts, and whether they are still current.

Other processes append to topics and create new ones, so that the cache is valid only while SQLite's `data_version` shows no commit
of another connection. After any failure everything is dropped and read again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from streams.store.errors import StoreError, translated
from streams.store.locks import LockFile
from streams.store.rows import TableRows
from streams.store.schema import (
    COUNT_TABLE,
    DROP_TABLE,
    EMPTY_TABLE,
    FORGET_SLOT,
    PARTITION_BITS,
    ROW_TABLE,
    TOPIC_TABLE,
    VERSION,
    in_log,
    log_table,
    slot,
)
from streams.store.values import Values

ROWS_CACHE = 16 * 1024 * 1024
"""Bytes of committed rows to cache per stage, divided by the highest partition count of all topics at their first use. The row of a
URL is written when it is discovered, and read when its answer arrives, behind all that were discovered before: at 500 bytes per
URL there is room for at least 16,000 of them.
"""


class Topic:
    """The id of a topic and its partition count."""

    __slots__ = ("id", "partitions")

    def __init__(self, number: int, partitions: int) -> None:
        self.id = number
        self.partitions = partitions


class State:
    """The cache of one connection (see the module). `turn`: the lock at which writers queue; None for a read-only store."""

    def __init__(self, connection: apsw.Connection, path: Path, turn: LockFile | None, rows_cache: int = ROWS_CACHE) -> None:
        self._rows_cache = rows_cache
        self.connection = connection
        self.cursor = connection.cursor()
        self.path = path
        self._turn = turn
        self.values = Values(connection, former=connection.pragma("user_version") < VERSION, writes=turn is not None)
        self._version = -1
        self._topics: dict[str, Topic] = {}
        self._ends: dict[int, int] = {}
        self._rows: dict[tuple[str, int], TableRows] = {}
        self._staged: dict[str, Counter[int]] = {}

    def fetch(self, sql: str, *bindings: str | int | bytes) -> list[Any]:
        """Execute a statement and return all its rows. Raises StoreError, DiskFull."""
        try:
            return self.cursor.execute(sql, bindings).fetchall()
        except apsw.Error as error:
            raise translated(error, str(self.path), self.connection.system_errno) from error

    def records(self, template: str, number: int, *bindings: str | int | bytes) -> list[tuple[Any, ...]]:
        """Return the records of a partition that a SELECT finds (`Values.ask`). Raises StoreError, DiskFull."""
        try:
            return self.values.ask(self.cursor.execute, template, log_table(number), bindings)
        except apsw.Error as error:
            raise translated(error, str(self.path), self.connection.system_errno) from error

    def begin(self) -> None:
        """Start a transaction that may write. Raises apsw.BusyError if another writer exceeds the time-out."""
        if self._turn is None:
            raise StoreError(f"{self.path}: opened for reading only")
        # SQLite's writers poll, and one that begins again at once starves the others: so writers queue at a kernel lock.
        with self._turn.held():
            self.cursor.execute("BEGIN IMMEDIATE")
        self.refresh()

    def abort(self) -> None:
        """Roll back the transaction, unless SQLite has done so itself, and drop everything that may come from it."""
        try:
            if self.connection.in_transaction:
                self.cursor.execute("ROLLBACK")
        finally:
            self._version = -1
            self.values.forget()
            for rows in self._rows.values():
                rows.detach()
            self._rows.clear()
            self._staged.clear()

    def rebuild(self) -> None:
        """Write the whole file anew, without free pages (VACUUM), so that it gives back those of later. Raises apsw.Error."""
        if self._turn is None:
            raise StoreError(f"{self.path}: opened for reading only")
        with self._turn.held():
            self.connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            # The copy is a file: in memory it might be too large.
            self.connection.execute("PRAGMA temp_store=FILE")
            try:
                self.connection.execute("VACUUM")
            finally:
                self.connection.execute("PRAGMA temp_store=MEMORY")
        self._version = -1

    def refresh(self) -> None:
        """Read topics and ends again, and drop cached rows, if another connection has committed since."""
        ((version,),) = self.fetch("PRAGMA data_version")
        if version != self._version:
            topics = self.fetch("SELECT name, id, partitions FROM topics ORDER BY name")
            self._topics = {name: Topic(number, partitions) for name, number, partitions in topics}
            self._ends = dict(self.fetch("SELECT slot, next FROM ends"))
            for rows in self._rows.values():
                rows.forget()
            self.values.forget()
            self._staged.clear()
            self._version = version

    def topics(self) -> dict[str, int]:
        """Return the partition counts by topic, ordered by name, as of the last refresh."""
        return {name: topic.partitions for name, topic in self._topics.items()}

    def slot(self, topic: str, partition: int) -> int:
        """Return the slot number of a partition. Raises KeyError for an unknown topic or partition."""
        found = self._topics[topic]
        if not 0 <= partition < found.partitions:
            raise KeyError(f"{topic}/{partition}")
        return found.id << PARTITION_BITS | partition

    def slots(self, topic: str) -> range:
        """Return the slot numbers of a topic's partitions. Raises KeyError for an unknown topic."""
        found = self._topics[topic]
        first = slot(found.id, 0)
        return range(first, first + found.partitions)

    def name(self, number: int) -> tuple[str, int]:
        """Return the topic and the partition of a slot."""
        partition = number & ((1 << PARTITION_BITS) - 1)
        return next(n for n, t in self._topics.items() if t.id == number >> PARTITION_BITS), partition

    def group(self, number: int) -> str:
        """Return the name of the values of a slot's topic; those of all Brokers have the same."""
        return self.name(number)[0].partition(".")[0]

    def end(self, number: int) -> int:
        """Return the next offset of a partition, as of the last refresh."""
        return self._ends.get(number, 0)

    def create(self, topics: dict[str, int]) -> None:
        """Create the topics that do not exist yet, inside a transaction."""
        for name, partitions in topics.items():
            if not 1 <= partitions < 1 << PARTITION_BITS:
                raise StoreError(f"topic {name}: {partitions} partitions")
            made = self.fetch(
                "INSERT INTO topics(name, partitions) VALUES(?, ?) ON CONFLICT DO NOTHING RETURNING id", name, partitions
            )
            for number in (slot(made[0][0], p) for p in range(partitions if made else 0)):
                self.fetch(in_log(TOPIC_TABLE, number))
        self._version = -1

    def forget(self, topics: Sequence[str], stages: Sequence[str]) -> int:
        """Delete topics, and the rows and offsets of stages, inside a transaction; return the number of records.

        What is not there is passed over. Other stages' offsets in these topics are deleted, too: an id of a topic is used again.
        """
        dropped = 0
        for number in [at for name in topics if name in self._topics for at in self.slots(name)]:
            dropped += self.fetch(in_log(COUNT_TABLE, number))[0][0]
            self.fetch(in_log(EMPTY_TABLE, number))
            self.fetch(in_log(DROP_TABLE, number))
            for statement in FORGET_SLOT:
                self.fetch(statement, number)
        for name in topics:
            self.fetch("DELETE FROM topics WHERE name=?", name)
        for name in stages:
            for (space,) in self.fetch("SELECT id FROM spaces WHERE name=?", name):
                # First emptied, so that triggers see what goes.
                for statement in (EMPTY_TABLE, DROP_TABLE):
                    self.fetch(statement.format(log=f"rows_{space}"))
            self.fetch("DELETE FROM spaces WHERE name=?", name)
            self.fetch("DELETE FROM offsets WHERE name=?", name)
        self._rows = {at: rows for at, rows in self._rows.items() if at[0] not in stages}
        self._staged.clear()
        self._version = -1
        return dropped

    def rows(self, name: str, partition: int) -> TableRows:
        """Return the rows of a stage in a partition, creating their table if needed, inside a transaction."""
        rows = self._rows.get((name, partition))
        if rows is None:
            table = self.table(name, partition) or self._make_table(name, partition)
            most = max((topic.partitions for topic in self._topics.values()), default=1)
            rows = self._rows[name, partition] = TableRows(self.connection, self.values, name, table, self._rows_cache // most)
        return rows

    def table(self, name: str, partition: int) -> str | None:
        """Return the table name of a stage in a partition; None if it never wrote."""
        found = self.cursor.execute("SELECT id FROM spaces WHERE name=? AND partition=?", (name, partition)).get
        return None if found is None else f"rows_{found}"

    def _make_table(self, name: str, partition: int) -> str:
        self.cursor.execute("INSERT INTO spaces(name, partition) VALUES(?, ?)", (name, partition))
        table = f"rows_{self.connection.last_insert_rowid()}"
        self.cursor.execute(ROW_TABLE.format(table=table))
        return table

    def offsets(self, group: str, number: int) -> tuple[int, frozenset[int]]:
        """Return the committed offsets of a group in a partition."""
        found = self.fetch("SELECT next, done FROM offsets WHERE name=? AND slot=?", group, number)
        return (found[0][0], unpacked(found[0][1])) if found else (0, frozenset())

    def staged(self, owner: str) -> Counter[int]:
        """Return a copy of the number of records that an owner has staged, by slot."""
        if owner not in self._staged:
            sql = "SELECT slot, count(*) FROM staged WHERE owner=? GROUP BY slot"
            self._staged[owner] = Counter(dict(self.fetch(sql, owner)))
        return self._staged[owner].copy()

    def committed(self, ends: dict[int, int], staged: dict[str, Counter[int]]) -> None:
        """Update the cache after a commit of this connection."""
        self._ends.update(ends)
        for owner, counts in staged.items():
            if counts.total():
                self._staged[owner] = counts
            else:
                self._staged.pop(owner, None)


def packed(offsets: frozenset[int]) -> bytes:
    """Encode offsets as bytes: 8 each, in order."""
    return array("q", sorted(offsets)).tobytes()


def unpacked(data: bytes) -> frozenset[int]:
    """Decode the offsets that `packed` encoded."""
    return frozenset(array("q", data))
