"""Copies the database of a data folder while a runner writes it, by SQLite's online backup.

The source is read in one transaction, so that the copy is the state of one moment, with the offsets of the same transaction as
their records. Readers of a WAL block no writer; the WAL grows until the copy is complete, and is truncated later
(`schema.WAL_LIMIT`).

Laws:
- The copy is one plain file: no WAL belongs to it, and it can be read where nothing can be written.
- A copy in which SQLite finds damage is deleted, and the error names the original.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from pathlib import Path

import apsw

from streams.faults import fault
from streams.store import schema
from streams.store.database import TIMEOUT
from streams.store.errors import AbsentError, StoreError, translated

STEP_PAGES = 1_024
"""Pages that are copied at a time: 8 MiB, so that Ctrl-C is noticed in between."""
PIECE = 1 << 20


def copy_database(folder: Path, target: Path) -> None:
    """Copy the database of a data folder to a file that does not exist yet, durably, but for the entry in its folder.

    Raises AbsentError, NewerError, StoreError for an unusable or damaged original, DiskFull; then there is no file.
    """
    path = folder / schema.FILE
    schema.check_files(path)
    if not path.is_file() or path.with_name(schema.JOURNAL).exists():
        raise AbsentError(str(folder))
    try:
        _copy(folder, path, target)
        with open(target, "rb") as stream:
            os.fsync(stream.fileno())
    except BaseException as error:
        target.unlink(missing_ok=True)
        raise error if isinstance(error, StoreError) else translated(error, str(target)) from error


def _copy(folder: Path, path: Path, target: Path) -> None:
    with closing(schema.connect_reader(path, TIMEOUT)) as source:
        if not schema.check(source, folder):
            raise AbsentError(str(folder))
        source.execute("BEGIN")
        # A deferred transaction has its snapshot from the first read on.
        source.execute("SELECT count(*) FROM topics").fetchall()
        with closing(apsw.Connection(str(target))) as copy:
            # Nothing is lost with a copy that is interrupted: no journal, and one flush at the end.
            copy.execute("PRAGMA synchronous=OFF")
            _copy_pages(source, copy, target)
            copy.execute("PRAGMA journal_mode=DELETE")
            if (found := str(copy.execute("PRAGMA quick_check(1)").get)) != "ok":
                raise StoreError(f"{path}: damaged: {found}")


def _copy_pages(source: apsw.Connection, copy: apsw.Connection, target: Path) -> None:
    try:
        with copy.backup(copy.db_names()[0], source, source.db_names()[0]) as backup:
            while not backup.done:
                backup.step(STEP_PAGES)
                fault("backup.pages")
    except apsw.Error as error:
        raise translated(error, str(target), copy.system_errno) from error


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex. Raises OSError."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
