"""Measures records/s of the embedded log against bare apsw with the same pragmas, each at its best batch size.

The baseline is what a plain program does: one table, one prepared INSERT, executemany, one transaction for each batch. Rounds of
the two alternate, so that a busy machine slows both; the best round of each counts.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from streams.store import Store
from streams.store.schema import connect

BATCHES = (256, 1_000, 4_000)
CHANCE = random.Random(1994)
WORDS = ["".join(CHANCE.choices("abcdefghijklmnoprstuvw", k=CHANCE.randint(2, 10))).encode() for _ in range(3_000)]
RECORDS = [b" ".join(CHANCE.choices(WORDS, k=200))[:1_000] for _ in range(2_000)]
"""Different texts: the store compresses what it appends."""
KEY = b"k" * 40
PARTITIONS = 4


def _record(number: int) -> bytes:
    return RECORDS[number % len(RECORDS)]


class LogRatio(NamedTuple):
    """Records/s of both, with records of 1 kB."""

    ours: float
    bare: float

    @property
    def ratio(self) -> float:
        """The rate of the log divided by that of bare apsw."""
        return self.ours / self.bare


def bare(folder: Path, records: int, batch: int) -> float:
    """Seconds that a plain program takes to write the records."""
    connection = connect(folder / "bare.sqlite", readonly=False, timeout=5.0)
    try:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE log(id INTEGER PRIMARY KEY, time INTEGER, key BLOB, value BLOB)")
        start = time.perf_counter()
        for first in range(0, records, batch):
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany("INSERT INTO log VALUES(?, ?, ?, ?)", [(i, i, KEY, _record(i)) for i in range(first, first + batch)])
            cursor.execute("COMMIT")
        return time.perf_counter() - start
    finally:
        connection.close()


def ours(folder: Path, records: int, batch: int) -> float:
    """Seconds that the store takes to append the records, to its partitions in turn."""
    with Store(folder / "store", {"topic": PARTITIONS}, runner=True) as store:
        start = time.perf_counter()
        for first in range(0, records, batch):
            with store.transaction() as tx:
                for i in range(first, first + batch):
                    tx.append("topic", i % PARTITIONS, KEY, _record(i), i)
        return time.perf_counter() - start


def log_ratio(records: int = 40_000, rounds: int = 3, where: Path | None = None) -> LogRatio:
    """Measure both in alternating rounds, in a folder inside `where` (default: the current folder)."""

    def rate(writer: Callable[[Path, int, int], float], batch: int) -> float:
        count = records // batch * batch
        # On the disk of the clone, not in a /tmp that may be in memory: the measurement includes fsync.
        with tempfile.TemporaryDirectory(dir=where or Path.cwd()) as folder:
            return count / writer(Path(folder), count, batch)

    found = [(rate(ours, batch), rate(bare, batch)) for _ in range(rounds) for batch in BATCHES]
    return LogRatio(max(o for o, _ in found), max(b for _, b in found))


def rows_rate(updates: int = 30_000, batch: int = 256) -> float:
    """Updates/s of a stage's rows (60-byte keys, 100-byte values): one get and two puts each, committed in batches."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, Store(Path(folder), runner=True) as store:
        start = time.perf_counter()
        for first in range(0, updates, batch):
            with store.transaction() as tx:
                rows = tx.rows("stage", 0)
                for i in range(first, first + batch):
                    # Multiplication by a large odd number gives keys in no order.
                    key = b"u|http://host.example.org:80|%032x" % (i * 0x9E3779B97F4A7C15 % 2**128)
                    rows.get(key)
                    rows.put(key, _record(i)[:100])
                    rows.put(b"q|" + key, b"")
        return updates / (time.perf_counter() - start)


if __name__ == "__main__":
    result = log_ratio()
    sys.stdout.write(f"log: {result.ours:,.0f} records/s, bare apsw {result.bare:,.0f}, ratio {result.ratio:.2f}\n")
    sys.stdout.write(f"rows: {rows_rate():,.0f} updates/s (a get and two puts each)\n")
