"""The state of one stage in one partition: ordered bytes over one table (law 5, `schemas.ports.Rows`).

Writes wait in memory until the transaction commits: `pending` holds them, reads look there first, and scans merge them in.
What is committed is cached in two generations of bounded size (a full young one becomes the old one, whose leftovers go).
Of a table that was empty at first it is known what was never written (`Seen`): most of what a first run asks for is not there, and
each question to SQLite costs a turn at the interpreter's lock.

Laws:
- The cache holds only what is committed; an aborted transaction drops `pending` and nothing else.
- Each write leaves what it replaced in the transaction's journal, so that the writes since a mark can be undone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import apsw

from streams.store.errors import translated
from streams.store.seen import Seen, is_stem


class _Missing:
    """The type of MISSING."""


MISSING: Final = _Missing()

Cached = bytes | _Missing | None
Journal = list[Callable[[], None] | tuple["TableRows", bytes, Cached] | int]
"""How to take back the writes of a transaction, last first: a callable; a row's key and what was pending for it; or the slot
that a record was appended to."""

_SELECT, _SCAN, _INSERT, _DELETE = "SELECT value FROM ", "SELECT key, value FROM ", "INSERT INTO ", "DELETE FROM "
_ANY = "SELECT 1 FROM "

CHUNK_MIN = 32
CHUNK_MAX = 1_024
ENTRY_COST = 150
"""Bytes that a cached row costs besides its key and value (two bytes objects and a slot in a dict)."""


def successor(prefix: bytes) -> bytes | None:
    """The least key greater than all that start with `prefix`; None where there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


class TableRows:
    """Rows over one table. Writing needs a transaction (`attach`); what it wrote is seen by its own reads at once.

    Reading raises StoreError where the file cannot be read.
    """

    def __init__(self, connection: apsw.Connection, table: str, cache_bytes: int) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self._get = _SELECT + table + " WHERE key=?"
        self._from = _SCAN + table + " WHERE key>=? ORDER BY key LIMIT ?"
        self._between = _SCAN + table + " WHERE key>=? AND key<? ORDER BY key LIMIT ?"
        self._upsert = _INSERT + table + "(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value=excluded.value"
        self._delete = _DELETE + table + " WHERE key=?"
        self._pending: dict[bytes, bytes | None] = {}
        self._order: list[bytes] | None = None
        self._journal: Journal | None = None
        self._young: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}
        self._young_bytes = 0
        self._half = cache_bytes // 2
        # What only reads asks once: nothing is worth finding out for it.
        empty = cache_bytes and not self._ask(_ANY + table + " LIMIT 1", ())
        self._seen: Seen | None = Seen() if empty else None
        """All keys that the table may hold; None where that is not known."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        value: Cached = self._pending.get(key, MISSING)
        if value is MISSING:
            value = self._young.get(key, MISSING)
            if value is MISSING:
                return self._fetch(key)
        return value  # type: ignore[return-value]

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key, once the transaction commits."""
        self._write(key, value)

    def delete(self, key: bytes) -> None:
        """Drop a key, if it is there, once the transaction commits."""
        self._write(key, None)

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Rows whose key starts with `prefix` and is greater than `after`, in order of the key; at most `limit` (-1: all).

        Read in chunks, each of which sees the writes made before it.
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
        """As a scan, where the table holds nothing of it."""
        written = ((key, self._pending[key]) for key in self._pending_between(low, high))
        return list(islice(((key, value) for key, value in written if value is not None), limit if limit >= 0 else None))

    def _chunk(self, low: bytes, high: bytes | None, size: int) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """The rows from `low` on, `size` of the table at most, with pending writes; and where the next chunk begins."""
        query, bounds = (self._from, (low, size)) if high is None else (self._between, (low, high, size))
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
        """What the table gives. Raises StoreError: no stage is to take an error of the disk for one of its record's."""
        try:
            return self._execute(query, bounds).fetchall()
        except apsw.Error as error:
            raise translated(error, self._connection.filename, self._connection.system_errno) from error

    def _pending_between(self, low: bytes, high: bytes | None) -> list[bytes]:
        if not self._pending:
            return []
        # Kept in order from the first scan on only: most stages never scan.
        if self._order is None:
            self._order = sorted(self._pending)
        end = len(self._order) if high is None else bisect_left(self._order, high)
        return self._order[bisect_left(self._order, low) : end]

    def _fetch(self, key: bytes) -> bytes | None:
        value: Cached = self._old.get(key, MISSING)
        if value is MISSING:
            if self._seen is not None and not self._seen.may_hold(key):
                return None
            ((value,),) = self._ask(self._get, (key,)) or ((None,),)
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
        """Take part in a transaction, whose journal this is."""
        self._journal = journal

    def undo(self, key: bytes, before: Cached) -> None:
        """Take back one write: what was pending for the key before it."""
        if not isinstance(before, _Missing):
            self._pending[key] = before
            return
        del self._pending[key]
        if self._order is not None:
            del self._order[bisect_left(self._order, key)]

    def flush(self, cursor: apsw.Cursor) -> None:
        """Write what is pending to the table, in order of the key."""
        # Sorted: neighbours share pages, and the sort costs less than the page look-ups it saves.
        rows = sorted(self._pending)
        pending = self._pending
        if self._seen is not None:
            self._seen.add(rows)
        cursor.executemany(self._upsert, [(k, pending[k]) for k in rows if pending[k] is not None])
        cursor.executemany(self._delete, [(k,) for k in rows if pending[k] is None])

    def committed(self) -> None:
        """The transaction committed: what was pending is known now."""
        for key, value in self._pending.items():
            self._remember(key, value)
        self.detach()

    def forget(self) -> None:
        """Drop what is cached: another connection may have changed it."""
        self._young, self._old, self._young_bytes = {}, {}, 0
        self._seen = None

    def detach(self) -> None:
        """The transaction is over: forget what was pending."""
        self._pending, self._order, self._journal = {}, None, None
