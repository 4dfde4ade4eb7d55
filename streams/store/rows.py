"""The state of one stage in one partition: ordered bytes over one table (law 5, `schemas.ports.Rows`).

Writes stay in memory (`pending`) until the transaction commits; reads look there first, and scans merge them in. Committed rows
are cached in two generations of bounded size (a full young one replaces the old one, which is dropped). For a table that was empty
at the start, `Seen` records which keys were written: most look-ups of a first run are for absent keys, and each query to SQLite
costs a wait for the interpreter lock.

Laws:
- The cache contains only committed rows; an aborted transaction drops `pending` and nothing else.
- `prefetch` only fills the cache; which rows a later `get` returns does not depend on it.
- Each write records what it replaced in the transaction's journal, so that the writes since a mark can be undone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any, Final

import apsw

from streams.store.errors import translated
from streams.store.seen import Seen, is_stem
from streams.store.values import Values


class _Missing:
    """The type of MISSING."""


MISSING: Final = _Missing()

Cached = bytes | _Missing | None
Journal = list[Callable[[], None] | tuple["TableRows", bytes, Cached] | int]
"""Undo entries of a transaction, applied last first: a callable; or a row's key and its previous pending value; or the slot to
which a record was appended.
"""

_GET = "SELECT {value} WHERE key=?"
_FROM = "SELECT key, {value} WHERE key>=? ORDER BY key LIMIT ?"
_BETWEEN = "SELECT key, {value} WHERE key>=? AND key<? ORDER BY key LIMIT ?"
_UPSERT = """INSERT INTO {table}(key, value, form) VALUES(?, ?, ?)
    ON CONFLICT(key) DO UPDATE SET value=excluded.value, form=excluded.form"""
_DELETE = "DELETE FROM {table} WHERE key=?"
_ANY = "SELECT 1 FROM {table} LIMIT 1"

MANY = 250
"""Rows that one statement reads by their keys."""
CHUNK_MIN = 32
CHUNK_MAX = 1_024
ENTRY_COST = 150
"""Bytes of memory per cached row in addition to its key and value (two bytes objects and a slot in a dict)."""


def successor(prefix: bytes) -> bytes | None:
    """Return the smallest key greater than all that start with `prefix`; None if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


class TableRows:
    """Rows over one table. Writing requires a transaction (`attach`); reads see its pending writes at once.

    Reading raises StoreError if the file cannot be read.
    """

    def __init__(self, connection: apsw.Connection, values: Values, stage: str, table: str, cache_bytes: int) -> None:
        self._connection = connection
        self._values = values
        self._group = f"rows.{stage.partition('.')[0]}"
        self._table = table
        self._execute = connection.cursor().execute
        self._pending: dict[bytes, bytes | None] = {}
        self._order: list[bytes] | None = None
        self._journal: Journal | None = None
        self._young: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}
        self._young_bytes = 0
        self._half = cache_bytes // 2
        # Without a cache the rows are only read, once: then `Seen` is not worth its cost.
        empty = cache_bytes and not self._execute(_ANY.format(table=table)).fetchall()
        self._seen: Seen | None = Seen() if empty else None
        """All keys that the table may contain; None if that is unknown."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        value: Cached = self._pending.get(key, MISSING)
        if value is MISSING:
            value = self._young.get(key, MISSING)
            if value is MISSING:
                return self._fetch(key)
        return value  # type: ignore[return-value]

    def prefetch(self, keys: Collection[bytes]) -> None:
        """Read the rows of these keys in as few statements as possible, so that `get` has them in memory. For hundreds of keys."""
        wanted = [key for key in keys if self._is_unread(key)]
        for start in range(0, len(wanted) if len(wanted) > 1 else 0, MANY):
            some = wanted[start : start + MANY]
            found = dict(self._ask(f"SELECT key, {{value}} WHERE key IN ({','.join('?' * len(some))})", tuple(some)))
            for key in some:
                self._remember(key, found.get(key))

    def _is_unread(self, key: bytes) -> bool:
        """Return whether `get` would have to query the table."""
        if key in self._pending or key in self._young or key in self._old:
            return False
        return self._seen is None or self._seen.may_hold(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key, once the transaction commits."""
        self._write(key, value)

    def delete(self, key: bytes) -> None:
        """Delete a key, if it exists, once the transaction commits."""
        self._write(key, None)

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Yield rows whose key starts with `prefix` and is greater than `after`, in order of the key; at most `limit` (-1: all).

        Reads in chunks; each chunk includes the writes made before it was read.
        """
        start = after + b"\0" if after >= prefix else prefix
        high = successor(prefix)
        if self._seen is not None and is_stem(prefix) and not self._seen.may_hold(prefix):
            yield from self._only_pending(start, high, limit)
            return
        low: bytes | None = start
        chunk = CHUNK_MIN if limit < 0 else min(limit, CHUNK_MAX)
        while low is not None and limit != 0:
            found, low = self._chunk(low, high, chunk)
            if limit > 0:
                found = found[:limit]
                limit -= len(found)
            yield from found
            chunk = min(max(chunk * 2, CHUNK_MIN), CHUNK_MAX)

    def _only_pending(self, low: bytes, high: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the result of a scan for which the table contains no rows."""
        written = ((key, self._pending[key]) for key in self._pending_between(low, high))
        return list(islice(((key, value) for key, value in written if value is not None), limit if limit >= 0 else None))

    def _chunk(self, low: bytes, high: bytes | None, size: int) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Return up to `size` rows of the table from `low` on, merged with pending writes, and the start of the next chunk."""
        query, bounds = (_FROM, (low, size)) if high is None else (_BETWEEN, (low, high, size))
        found = self._ask(query, bounds)
        more: bytes | None = found[-1][0] + b"\0" if len(found) == size else None
        changed = self._pending_between(low, high if more is None else more)
        if changed:
            merged = dict(found)
            for key in changed:
                value = self._pending[key]
                if value is None:
                    merged.pop(key, None)
                else:
                    merged[key] = value
            found = sorted(merged.items())
        return found, more

    def _ask(self, query: str, bounds: tuple[bytes | int | None, ...]) -> list[Any]:
        """Query the table. Raises StoreError, so that a stage does not attribute a disk error to one of its records."""
        try:
            return self._values.ask(self._execute, query, self._table, bounds)
        except apsw.Error as error:
            raise translated(error, self._connection.filename, self._connection.system_errno) from error

    def _pending_between(self, low: bytes, high: bytes | None) -> list[bytes]:
        if not self._pending:
            return []
        # Sorted from the first scan on: most stages never scan.
        if self._order is None:
            self._order = sorted(self._pending)
        end = len(self._order) if high is None else bisect_left(self._order, high)
        return self._order[bisect_left(self._order, low) : end]

    def _fetch(self, key: bytes) -> bytes | None:
        value: Cached = self._old.get(key, MISSING)
        if value is MISSING:
            if self._seen is not None and not self._seen.may_hold(key):
                return None
            ((value,),) = self._ask(_GET, (key,)) or ((None,),)
        self._remember(key, value)  # type: ignore[arg-type]
        return value  # type: ignore[return-value]

    def _remember(self, key: bytes, value: bytes | None) -> None:
        self._young[key] = value
        self._young_bytes += len(key) + len(value or b"") + ENTRY_COST
        if self._young_bytes > self._half:
            self._old, self._young, self._young_bytes = self._young, {}, 0

    def _write(self, key: bytes, value: bytes | None) -> None:
        pending = self._pending
        if self._journal is None:
            raise RuntimeError("rows can be written in a transaction only")
        before: Cached = pending.get(key, MISSING)
        self._journal.append((self, key, before))
        if self._order is not None and before is MISSING:
            insort(self._order, key)
        pending[key] = value

    def attach(self, journal: Journal) -> None:
        """Take part in a transaction with this journal."""
        self._journal = journal

    def undo(self, key: bytes, before: Cached) -> None:
        """Undo one write; `before`: the key's previous pending value."""
        if not isinstance(before, _Missing):
            self._pending[key] = before
            return
        del self._pending[key]
        if self._order is not None:
            del self._order[bisect_left(self._order, key)]

    def encoded(self) -> list[tuple[bytes, bytes | None, int | None]]:
        """Return the pending rows as they are stored, in order of the key, for `flush`."""
        # Sorted: adjacent keys share pages, and the sort costs less than the page look-ups it saves.
        encode, group, table = self._values.encode, self._group, self._table
        return [(key, *encode(group, table, self._pending[key])) for key in sorted(self._pending)]

    def flush(self, cursor: apsw.Cursor, rows: list[tuple[bytes, bytes | None, int | None]]) -> None:
        """Write the pending rows to the table; `rows`: as `encoded` returned them."""
        if self._seen is not None:
            self._seen.add([key for key, _, _ in rows])
        cursor.executemany(_UPSERT.format(table=self._table), [row for row in rows if row[1] is not None])
        cursor.executemany(_DELETE.format(table=self._table), [(key,) for key, value, _ in rows if value is None])

    def committed(self) -> None:
        """Cache the pending rows after the transaction committed."""
        for key, value in self._pending.items():
            self._remember(key, value)
        self.detach()

    def forget(self) -> None:
        """Drop the cache, since another connection may have changed the table."""
        self._young, self._old, self._young_bytes = {}, {}, 0
        self._seen = None

    def detach(self) -> None:
        """Drop the pending rows at the end of the transaction."""
        self._pending, self._order, self._journal = {}, None, None
