"""The database file of a data folder: its tables, its pragmas, its version.

- `log_N`: the records of a partition by offset, N being its slot (topic id and partition in one number). One table each, since
  SQLite appends fastest at the right edge of a tree: one tree for all partitions cost a third of the throughput.
- `ends`: the next offset of each partition, and its horizon (see `upkeep`); kept separately, since trimming empties the log.
- `spaces` and one table `rows_N` each: the state of one stage in one partition, WITHOUT ROWID, since compressed values are small.
  (With values of 1.5 kB, a table with a row id and an index was four times as fast: such are the tables of version 1.)
- `offsets`: the progress of a consumer group. `staged`: records that await `publish`.
- `contents`, `shares`, `dictionaries`: what stored values refer to (`values.py`); the column `form` of a value says how.

Pragmas, measured with 1 kB records and 60-byte keys: pages of 8 kB (4 kB pages waste a quarter with 1-3 kB values, 16 kB pages
double what a small random update writes to the WAL), a checkpoint each 16 MB, no mmap (it counts as memory of the process).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import apsw

from streams.store.errors import AFRESH, NewerError, StoreError

VERSION = 2
APPLICATION = 0x48525653
"""`application_id` of the file: "HRVS"."""
FILE = "store.sqlite"
JOURNAL = f"{FILE}-journal"
PAGE = 8192
HEADER = 100
"""Minimum bytes of a file that SQLite has written."""
CHECKPOINT = 16 * 1024 * 1024
WAL_LIMIT = 64 * 1024 * 1024
"""The WAL file is truncated to this many bytes after a long reader has made it grow."""
CACHE, READER_CACHE = 32 * 1024, 4 * 1024
"""Page cache in KiB: of a writer, and of a reader, which reads each page of the log once."""

PARTITION_BITS = 12
END = 1 << 62
"""A number greater than any offset."""

TABLES = f"""
CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER NOT NULL);
CREATE TABLE ends(slot INTEGER PRIMARY KEY, next INTEGER NOT NULL, horizon INTEGER NOT NULL DEFAULT 0,
                  cleaned INTEGER NOT NULL DEFAULT 0);
CREATE TABLE spaces(id INTEGER PRIMARY KEY, name TEXT NOT NULL, partition INTEGER NOT NULL, UNIQUE (name, partition));
CREATE TABLE offsets(name TEXT NOT NULL, slot INTEGER NOT NULL, next INTEGER NOT NULL, done BLOB NOT NULL,
                     PRIMARY KEY (name, slot)) WITHOUT ROWID;
CREATE TABLE staged(seq INTEGER PRIMARY KEY, owner TEXT NOT NULL, slot INTEGER NOT NULL, time INTEGER NOT NULL,
                    key BLOB NOT NULL, value BLOB);
CREATE INDEX staged_owner ON staged(owner, slot);
PRAGMA application_id={APPLICATION};
"""
STORED = f"""
ALTER TABLE staged ADD COLUMN form INTEGER;
CREATE TABLE dictionaries(id INTEGER PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE contents(id INTEGER PRIMARY KEY AUTOINCREMENT, packing INTEGER, data BLOB NOT NULL);
CREATE TABLE shares(id INTEGER PRIMARY KEY, count INTEGER NOT NULL);
CREATE INDEX unshared ON shares(id) WHERE count=0;
PRAGMA user_version={VERSION};
"""
"""What version 2 added."""
TOPIC_TABLE = """CREATE TABLE {log}(offset INTEGER PRIMARY KEY, time INTEGER NOT NULL, key BLOB NOT NULL, value BLOB,
    form INTEGER)"""
ROW_TABLE = "CREATE TABLE {table}(key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL, form INTEGER) WITHOUT ROWID"
FORMLESS = """SELECT name FROM sqlite_master WHERE type='table' AND (name GLOB 'log_*' OR name GLOB 'rows_*')
    AND NOT EXISTS (SELECT 1 FROM pragma_table_info(sqlite_master.name) AS info WHERE info.name='form')"""

FORGET_SLOT = ("DELETE FROM ends WHERE slot=?", "DELETE FROM offsets WHERE slot=?", "DELETE FROM staged WHERE slot=?")
DROP_TABLE, EMPTY_TABLE, COUNT_TABLE = "DROP TABLE {log}", "DELETE FROM {log}", "SELECT count(*) FROM {log}"


def slot(topic: int, partition: int) -> int:
    """Return the slot number of a topic's partition; `topic` is the topic's id."""
    return topic << PARTITION_BITS | partition


def in_log(template: str, number: int) -> str:
    """Return a statement on the records of a partition: `{log}` is replaced by the table of the slot."""
    return template.format(log=log_table(number))


def log_table(number: int) -> str:
    """Return the name of the table of a slot."""
    return f"log_{number}"


def check_files(path: Path) -> None:
    """Raise StoreError if the path of the database, or of a file that SQLite creates next to it, is not a regular file."""
    for beside in (path, *(path.with_name(f"{path.name}-{name}") for name in ("wal", "shm", "journal"))):
        if beside.exists() and not beside.is_file():
            raise StoreError(f"{beside}: not a file")


def check_index(path: Path) -> None:
    """Raise StoreError if there is an index without a store: a new store would cause the index to be emptied."""
    there = path.is_file()
    if (path.stat().st_size if there else 0) < HEADER and any(path.parent.glob("index/*/*.json")):
        what = "is empty" if there else "is missing"
        raise StoreError(f"{path}: {what}, though there is an index of it: {AFRESH}")


def connect(path: Path, *, readonly: bool, timeout: float, immutable: bool = False) -> apsw.Connection:
    """Open the file. Waits up to `timeout` seconds for other writers. Raises apsw.Error.

    immutable: assume that nobody writes, and create no files next to it.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    name = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1" if immutable else str(path)
    connection = apsw.Connection(name, flags=flags | apsw.SQLITE_OPEN_URI * immutable, statementcachesize=1_000)
    connection.set_busy_handler(_patience(timeout))
    if not readonly:
        connection.execute(f"PRAGMA page_size={PAGE}")
        # Before there is a page: the statement would be a write to a file that has some, and one of an older version keeps its way.
        if not connection.pragma("page_count"):
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT // PAGE}")
        connection.execute(f"PRAGMA journal_size_limit={WAL_LIMIT}")
    connection.execute(f"PRAGMA cache_size=-{READER_CACHE if readonly else CACHE}")
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


def connect_reader(path: Path, timeout: float) -> apsw.Connection:
    """Open the file for reading. Raises apsw.Error, and StoreError if reading would require writing to the folder.

    A reader of a WAL has to create its index next to it, unless a writer has done so. If the folder is not writable (another
    user's, a read-only mount) the file is read as it is: it is complete after the last writer has closed it properly.
    """
    try:
        return connect(path, readonly=True, timeout=timeout)
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"{path.parent}: a run was cut off here, and only who may write this folder can read what it left: "
                "run harvest as its owner once (harvest doctor will do)"
            ) from error
        return connect(path, readonly=True, timeout=timeout, immutable=True)


def _patience(timeout: float) -> Callable[[int], bool]:
    """Return a busy handler that retries every 2 ms: SQLite's own waits up to 100 ms, long compared to short transactions."""
    until = 0.0

    def wait(tries: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if tries == 0:
            until = now + timeout
        time.sleep(0.002)
        return now < until

    return wait


def check(connection: apsw.Connection, folder: Path) -> bool:
    """Return whether a file has the store's tables. Raises NewerError (by a newer version), StoreError (by another program)."""
    version, application = connection.pragma("user_version"), connection.pragma("application_id")
    if application == 0 and version == 0 and not connection.execute("SELECT 1 FROM sqlite_master").get:
        return False
    if application != APPLICATION:
        raise StoreError(f"{folder / FILE}: not a store of harvest")
    if version > VERSION:
        raise NewerError(f"{folder}: written by a newer version of harvest (store version {version}, this program knows {VERSION})")
    return True


def is_older(connection: apsw.Connection, folder: Path) -> bool:
    """Return whether an older version has made the tables. Raises NewerError, StoreError (by another program)."""
    return check(connection, folder) and connection.pragma("user_version") < VERSION


def complete(connection: apsw.Connection, folder: Path) -> None:
    """Create the tables, or those that a file of an older version lacks, unless another process has done so."""
    if check(connection, folder) and connection.pragma("user_version") == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not check(connection, folder):
            connection.execute(TABLES)
        if connection.pragma("user_version") < VERSION:
            connection.execute(STORED)
            for (table,) in connection.execute(FORMLESS).fetchall():
                connection.execute(f"ALTER TABLE {table} ADD COLUMN form INTEGER")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
