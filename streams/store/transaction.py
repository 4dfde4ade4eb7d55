"""One batch of a runner: records, rows, staged records and offsets become durable together, or not at all.

`with store.transaction() as tx:` takes the store's write lock (so that no other process changes the ends), collects all writes in
memory, and writes them when the block ends; an exception inside the block, or in writing, undoes everything. Before that, nothing
is visible to other readers, nor to `store.read`.

Laws:
- The offsets of a partition have no gaps: they are assigned under the write lock and released again with a failed transaction.
- `rollback_to(mark())` restores the transaction as it was at the mark: the writes of one record can be undone when its processor
  raised.
- Delivery: exactly once for all that is written in the same transaction as the offset of its input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from streams.faults import fault
from streams.store.errors import StoreError, translated
from streams.store.rows import Journal, TableRows
from streams.store.schema import in_log, log_table
from streams.store.state import State, packed

PUT = "INSERT INTO {log}(offset, time, key, value, form) VALUES(?, ?, ?, ?, ?)"
ENDS = "INSERT INTO ends(slot, next) VALUES(?, ?) ON CONFLICT(slot) DO UPDATE SET next=excluded.next"
DONE = """INSERT INTO offsets(name, slot, next, done) VALUES(?, ?, ?, ?)
    ON CONFLICT(name, slot) DO UPDATE SET next=excluded.next, done=excluded.done"""
STAGE = "INSERT INTO staged(owner, slot, time, key, value, form) VALUES(?, ?, ?, ?, ?, ?)"
PUBLISH = """INSERT INTO {log}(offset, time, key, value, form)
    SELECT ? + row_number() OVER (ORDER BY seq) - 1, time, key, value, form FROM staged WHERE owner=? AND slot=? ORDER BY seq"""
UNSTAGE = "DELETE FROM staged WHERE owner=?"

Appended = tuple[int, int, bytes, bytes | None]
"""A record of a partition: offset, time, key, value."""
K = TypeVar("K")
V = TypeVar("V")


class Offsets(NamedTuple):
    """The progress of a consumer group in a partition: all offsets below `next`, and those in `done` above it."""

    next: int = 0
    done: frozenset[int] = frozenset()


class Staged(NamedTuple):
    """A record that waits for its owner's `publish`."""

    owner: str
    slot: int
    time: int
    key: bytes
    value: bytes | None


class Release(NamedTuple):
    """An order to append an owner's staged records from `first` on (an offset by slot), or to delete them (no slots)."""

    owner: str
    first: Mapping[int, int]


class Transaction:
    """A transaction (see the module). Created by `Store.transaction`; for one `with` statement in one thread."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._journal: Journal = []
        self._records: dict[int, list[Appended]] = {}
        self._next: dict[int, int] = {}
        self._offsets: dict[tuple[str, int], Offsets] = {}
        self._rows: dict[tuple[str, int], TableRows] = {}
        self._staging: list[Staged | Release] = []
        self._staged: dict[str, Counter[int]] = {}

    def __enter__(self) -> Self:
        if self._state.connection.in_transaction:
            raise RuntimeError("a transaction of this store is open already")
        try:
            self._state.begin()
        except BaseException as error:
            self._fail(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._commit()
        else:
            self._fail(error)

    def append(self, topic: str, partition: int, key: bytes, value: bytes | None, time_ms: int) -> int:
        """Append a record; return its offset. Raises KeyError for an unknown topic or partition."""
        at = self._state.slot(topic, partition)
        offset = self._next.get(at)
        if offset is None:
            offset = self._state.end(at)
        self._next[at] = offset + 1
        records = self._records.get(at)
        if records is None:
            records = self._records[at] = []
        records.append((offset, time_ms, key, value))
        self._journal.append(at)
        return offset

    def ends(self, topic: str) -> list[int]:
        """Return the next offset of each partition, including the appends of this transaction. Raises KeyError."""
        return [self._next.get(at, self._state.end(at)) for at in self._state.slots(topic)]

    def rows(self, name: str, partition: int) -> TableRows:
        """Return the rows of a stage in a partition, readable and writable until the transaction ends."""
        rows = self._rows.get((name, partition))
        if rows is None:
            rows = self._rows[name, partition] = self._state.rows(name, partition)
            rows.attach(self._journal)
        return rows

    def offsets(self, group: str, topic: str, partition: int) -> Offsets:
        """Return the progress of a group in a partition; (0, nothing) if it never committed."""
        at = self._state.slot(topic, partition)
        return self._offsets.get((group, at)) or Offsets(*self._state.offsets(group, at))

    def commit_offset(self, group: str, topic: str, partition: int, offsets: Offsets) -> None:
        """Set the progress of a group in a partition."""
        self._set(self._offsets, (group, self._state.slot(topic, partition)), offsets)

    def stage(self, owner: str, topic: str, partition: int, key: bytes, value: bytes | None, time_ms: int) -> None:
        """Hold a record back, over any number of transactions, until `publish(owner)` moves it into the log."""
        at = self._state.slot(topic, partition)
        counts = self._counts(owner)
        self._set(counts, at, counts[at] + 1)
        self._order(Staged(owner, at, time_ms, key, value))

    def publish(self, owner: str) -> int:
        """Append all staged records of an owner, in the order of staging; return their number."""
        counts = +self._counts(owner)
        first: dict[int, int] = {}
        for at, count in counts.items():
            offset = self._next.get(at, self._state.end(at))
            first[at] = offset
            self._set(self._next, at, offset + count)
        self._order(Release(owner, first))
        self._set(self._staged, owner, Counter())
        return counts.total()

    def unstage(self, owner: str) -> None:
        """Delete all staged records of an owner."""
        self._order(Release(owner, {}))
        self._set(self._staged, owner, Counter())

    def mark(self) -> int:
        """Return a mark of the present state for `rollback_to`."""
        return len(self._journal)

    def rollback_to(self, mark: int) -> None:
        """Undo all writes since the mark: records, rows, staged records, offsets."""
        journal = self._journal
        while len(journal) > mark:
            entry = journal.pop()
            if isinstance(entry, int):
                self._next[entry] = self._records[entry].pop()[0]
            elif isinstance(entry, tuple):
                entry[0].undo(entry[1], entry[2])
            else:
                entry()

    def _order(self, order: Staged | Release) -> None:
        self._staging.append(order)
        self._journal.append(self._unorder)

    def _unorder(self) -> None:
        self._staging.pop()

    def _counts(self, owner: str) -> Counter[int]:
        if owner not in self._staged:
            self._staged[owner] = self._state.staged(owner)
        return self._staged[owner]

    def _set(self, table: dict[K, V], key: K, value: V) -> None:
        """Set an entry, and record its previous state in the journal."""
        if key in table:
            before = table[key]
            self._journal.append(lambda: table.__setitem__(key, before))
        else:
            self._journal.append(lambda: table.__delitem__(key))
        table[key] = value

    def _commit(self) -> None:
        try:
            if not self._state.connection.in_transaction:
                # SQLite rolls back by itself after a disk error; without a transaction, each statement would commit separately.
                raise StoreError(f"{self._state.path}: the transaction was undone, the disk may be failing")
            self._write()
            fault("log.commit")
            self._state.cursor.execute("COMMIT")
            fault("log.committed")
            for rows in self._rows.values():
                rows.committed()
            self._state.committed(self._next, self._staged)
        except BaseException as error:
            self._fail(error)
            raise

    def _write(self) -> None:
        cursor, values = self._state.cursor, self._state.values
        records = {at: self._encoded(at, appended) for at, appended in self._records.items()}
        rows = [(table, table.encoded()) for table in self._rows.values()]
        staging = [self._packed(order) if isinstance(order, Staged) else order for order in self._staging]
        values.write(cursor)
        for table, pending in rows:
            table.flush(cursor, pending)
        fault("log.write")
        for at, appended in records.items():
            cursor.executemany(in_log(PUT, at), appended)
        for order in staging:
            if not isinstance(order, Release):
                cursor.execute(STAGE, order)
            else:
                for at, first in order.first.items():
                    cursor.execute(in_log(PUBLISH, at), (first, order.owner, at))
                cursor.execute(UNSTAGE, (order.owner,))
        values.sweep(cursor)
        cursor.executemany(ENDS, self._next.items())
        cursor.executemany(DONE, [(group, at, o.next, packed(o.done)) for (group, at), o in self._offsets.items()])

    def _encoded(self, at: int, records: list[Appended]) -> list[tuple[int, int, bytes, bytes | None, int | None]]:
        """Return the records of a partition as they are stored."""
        encode, group, table = self._state.values.encode, self._state.group(at), log_table(at)
        return [(offset, time, key, *encode(group, table, value)) for offset, time, key, value in records]

    def _packed(self, order: Staged) -> tuple[str, int, int, bytes, bytes | None, int | None]:
        """Return a staged record as it is stored: it shares nothing, since it is not of the log yet."""
        return (*order[:-1], *self._state.values.pack(self._state.group(order.slot), order.value))

    def _fail(self, error: BaseException) -> None:
        """Undo everything; raise the exception that replaces the error, if there is one."""
        errno = self._state.connection.system_errno
        self._state.abort()
        better = translated(error, str(self._state.path), errno)
        if better is not error:
            raise better from error
