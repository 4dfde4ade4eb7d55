"""Latest version by OID, in memory up to a limit and beyond it in an unnamed temporary file.

Strategy: a temporary SQLite database, which disappears with the connection, however the process ends.

Law: the newest entry of an OID has the highest counter, and of several with the same counter is the last noted, as in an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import apsw

from streams.store.errors import translated

CACHE = 32 << 10
"""kB of memory: about 300,000 OIDs."""
WHERE = "a temporary file (TMPDIR says where)"


class LatestVersions:
    """A number for each OID, from its entry with the highest counter."""

    def __init__(self, cache: int = CACHE) -> None:
        self._connection = apsw.Connection("")
        for pragma in (f"cache_size=-{cache}", "journal_mode=OFF", "synchronous=OFF"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE newest (oid TEXT PRIMARY KEY, counter INT, said INT) WITHOUT ROWID")

    def note(self, said: Iterable[tuple[str, int, int]]) -> None:
        """Store (OID, counter, number) entries; the highest counter of an OID wins. Raises DiskFull, StoreError."""
        with _translated_errors(), self._connection:
            self._connection.executemany(
                "INSERT INTO newest VALUES (?, ?, ?) ON CONFLICT (oid) DO UPDATE"
                " SET counter = excluded.counter, said = excluded.said WHERE excluded.counter >= counter",
                said,
            )

    def add(self, oids: Iterable[str]) -> set[str]:
        """Store OIDs, each with the number 0; return those that were not stored before. Raises DiskFull, StoreError."""
        with _translated_errors(), self._connection:
            said = ((oid,) for oid in oids)
            added = self._connection.executemany("INSERT INTO newest VALUES (?, 0, 0) ON CONFLICT DO NOTHING RETURNING oid", said)
            found: set[str] = {oid for (oid,) in added}
        return found

    def get(self, oid: str) -> int | None:
        """Return the number stored for an OID, or None. Raises DiskFull, StoreError."""
        with _translated_errors():
            found: int | None = self._connection.execute("SELECT said FROM newest WHERE oid = ?", (oid,)).get
            return found

    def count(self, said: int) -> int:
        """Return how many OIDs have that number stored. Raises DiskFull, StoreError."""
        with _translated_errors():
            found: int = self._connection.execute("SELECT count(*) FROM newest WHERE said = ?", (said,)).get
            return found

    def close(self) -> None:
        """Close the database, which discards it."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translated(error, WHERE) from error
