"""The database file of a feed: its tables, how it is opened, and what it knows about itself.

- `changes`: one row for each OID, numbered in the order of its last change; an update deletes the row and adds one at the end. A
  summary has the place of its template in a member; a removal has its template in the row.
- `members`: ready pieces of compressed streams (`compression.py`), each with templates of one part. The newest template of an OID
  is in the member with the highest id. Ids are never used again.
- `stale`: OIDs with templates in members that a change has superseded.
- `partitions`: how far each partition of the topic was read (`partitions.py`).
- `parts`: number of the last change, and of summaries, by the first hex digit of the OID.
- `state`: one row. `epoch` is the identity of the order; `horizon` the highest number of a removal that is no longer known.

Commits are flushed (synchronous=FULL): a number that a reader has as its mark must not be given to another change after a power
failure.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from sinks.feed.errors import FeedDamaged, FeedMissing, FeedMoved, translated

PARTS = 16
"""Parts, by the first hex digit of the OID."""
FORMAT = 2
APPLICATION = 0x48525646
"""`application_id` of the file: "HRVF"."""
BUSY_S = 60.0
"""Seconds that a writer waits for another one."""
CACHE_KIB = 8_192

TABLES = f"""
CREATE TABLE state(epoch TEXT NOT NULL, gatherer TEXT NOT NULL, number INTEGER NOT NULL, horizon INTEGER NOT NULL,
                   touched INTEGER NOT NULL);
CREATE TABLE partitions(partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, until INTEGER, whole INTEGER NOT NULL DEFAULT 0,
                        touched INTEGER NOT NULL);
CREATE TABLE parts(part INTEGER PRIMARY KEY, number INTEGER NOT NULL, summaries INTEGER NOT NULL);
CREATE TABLE changes(number INTEGER PRIMARY KEY, oid BLOB NOT NULL UNIQUE, part INTEGER NOT NULL, version INTEGER NOT NULL,
                     digest BLOB NOT NULL, time INTEGER NOT NULL, url TEXT NOT NULL, member INTEGER, start INTEGER, size INTEGER,
                     removal BLOB);
CREATE INDEX changes_member ON changes(member) WHERE member IS NOT NULL;
CREATE INDEX removals ON changes(number) WHERE removal IS NOT NULL;
CREATE TABLE members(id INTEGER PRIMARY KEY AUTOINCREMENT, part INTEGER NOT NULL, templates INTEGER NOT NULL,
                     stale INTEGER NOT NULL, size INTEGER NOT NULL, crc INTEGER NOT NULL, factor INTEGER NOT NULL,
                     data BLOB NOT NULL);
CREATE INDEX members_part ON members(part, id);
CREATE TABLE stale(member INTEGER NOT NULL, oid BLOB NOT NULL, PRIMARY KEY (member, oid)) WITHOUT ROWID;
CREATE INDEX stale_oid ON stale(oid);
PRAGMA application_id={APPLICATION};
PRAGMA user_version={FORMAT};
"""


class State(NamedTuple):
    """What a feed knows about itself."""

    epoch: str
    gatherer: str
    number: int
    horizon: int
    touched: int
    """Time (ms) of the last batch, also of an empty one."""


def open_database(path: Path, *, writable: bool) -> apsw.Connection:
    """Open a feed; if `writable`, create the file. Raises FeedMissing, FeedDamaged, OSError."""
    if not writable and not path.is_file():
        raise FeedMissing(f"there is no feed yet: {path}")
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if writable else apsw.SQLITE_OPEN_READONLY
    with translated(path):
        if writable:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = apsw.Connection(str(path), flags=flags)
        try:
            connection.set_busy_timeout(int(BUSY_S * 1_000))
            connection.pragma("cache_size", -CACHE_KIB)
            if writable:
                connection.pragma("journal_mode", "wal")
                connection.pragma("synchronous", "FULL")
            if connection.pragma("user_version") and connection.pragma("application_id") != APPLICATION:
                raise FeedDamaged(f"{path}: not a feed of harvest")
            if connection.pragma("user_version") not in (0, FORMAT):
                raise FeedDamaged(f"{path}: a feed of another version of harvest")
            if not writable and not connection.pragma("user_version"):
                raise FeedMissing(f"there is no feed yet: {path}")
        except BaseException:
            connection.close()
            raise
    return connection


def create(connection: apsw.Connection, gatherer: str, now: int) -> None:
    """Create the tables, unless there are some; within a transaction."""
    if connection.pragma("user_version"):
        return
    connection.execute(TABLES)
    connection.executemany("INSERT INTO parts VALUES(?, 0, 0)", [(part,) for part in range(PARTS)])
    connection.execute("INSERT INTO state VALUES(?, ?, 0, 0, ?)", (secrets.token_hex(8), gatherer, now))


def empty(connection: apsw.Connection, gatherer: str, now: int) -> None:
    """Delete the content, and begin a new order; within a transaction."""
    connection.execute("DELETE FROM state; DELETE FROM partitions; DELETE FROM changes; DELETE FROM members; DELETE FROM stale")
    connection.execute("UPDATE parts SET number=0, summaries=0")
    connection.execute("INSERT INTO state VALUES(?, ?, 0, 0, ?)", (secrets.token_hex(8), gatherer, now))


def state(connection: apsw.Connection, epoch: str = "") -> State:
    """Return what the feed knows about itself. Raises FeedMoved if it has another epoch than the one given."""
    found = State(*one(connection, "SELECT epoch, gatherer, number, horizon, touched FROM state"))
    if epoch and found.epoch != epoch:
        raise FeedMoved("the feed was made anew")
    return found


@contextmanager
def transaction(connection: apsw.Connection, *, write: bool = True) -> Iterator[None]:
    """Run a transaction, rolled back on any error; one that only reads has one snapshot."""
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def rows(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of an answer, as tuples."""
    return connection.execute(sql, tuple(values)).fetchall()


def one(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> Any:
    """Return the first row of an answer; None if there is none."""
    return connection.execute(sql, tuple(values)).fetchone()


def now_ms() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000
