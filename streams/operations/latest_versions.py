"""What is newest of each OID, for as many OIDs as a topic has: memory for some of them, the others in a file that has no name.

Strategy: a temporary database of SQLite's, which goes with the connection, however the process ends.

Law: the newest is the one of the highest counter, of several the last noted, as an index has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import apsw

from streams.store.errors import translated

CACHE = 32 << 10
"""kB of memory: some 300,000 OIDs."""
WHERE = "a temporary file (TMPDIR says where)"


class Newest:
    """What was noted of OIDs, a number each."""

    def __init__(self, cache: int = CACHE) -> None:
        self._connection = apsw.Connection("")
        for pragma in (f"cache_size=-{cache}", "journal_mode=OFF", "synchronous=OFF"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE newest (oid TEXT PRIMARY KEY, counter INT, said INT) WITHOUT ROWID")

    def note(self, said: Iterable[tuple[str, int, int]]) -> None:
        """OIDs, each with a counter and what is to be kept of it. Raises DiskFull, StoreError."""
        with _told(), self._connection:
            self._connection.executemany(
                "INSERT INTO newest VALUES (?, ?, ?) ON CONFLICT (oid) DO UPDATE"
                " SET counter = excluded.counter, said = excluded.said WHERE excluded.counter >= counter",
                said,
            )

    def get(self, oid: str) -> int | None:
        """What is kept of an OID. Raises DiskFull, StoreError."""
        with _told():
            found: int | None = self._connection.execute("SELECT said FROM newest WHERE oid = ?", (oid,)).get
            return found

    def count(self, said: int) -> int:
        """Of how many OIDs that is kept. Raises DiskFull, StoreError."""
        with _told():
            found: int = self._connection.execute("SELECT count(*) FROM newest WHERE said = ?", (said,)).get
            return found

    def close(self) -> None:
        """Forget all."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translated(error, WHERE) from error
