"""Files of version 1: their values are compressed, and what that frees is given back, in steps of an upkeep.

A file of that version has all values as they were, in tables with row ids, and keeps the pages that it frees. It is read as it is;
a value that is written is compressed. `repack` compresses the others, which leaves pages half empty; `rebuild` then writes the file
anew (VACUUM), so that it gives back free pages as new files do.

Laws:
- Each step is one transaction; after any of them the file is complete. A repacking that was interrupted begins anew, and passes
  over what it has done.
- All tables advance together, so that the values of one object, which are of the same time, find the content that they share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import apsw

from streams.store.dictionaries import LEAST
from streams.store.schema import PAGE
from streams.store.state import State
from streams.store.transaction import Transaction

ROWS = 1_000
"""Values of one table that a step compresses."""
MOST = 256 << 20
"""Bytes in use above which a file is not written anew: nobody else could write meanwhile."""

TABLES = """SELECT name FROM sqlite_master WHERE type='table' AND (name GLOB 'log_*' OR name GLOB 'rows_*')
    AND sql NOT LIKE '%WITHOUT ROWID%'"""
PLAIN = "SELECT rowid, value FROM {table} WHERE rowid>? AND form IS NULL AND length(value)>=? ORDER BY rowid LIMIT ?"
REPLACE = "UPDATE {table} SET value=?, form=? WHERE rowid=?"
UNUSED = "SELECT coalesce(sum(unused), 0) FROM dbstat WHERE aggregate=TRUE"
SPACES = "SELECT id, name FROM spaces"


def is_former(state: State) -> bool:
    """Return whether a file was made by version 1, and has not been written anew since."""
    return not state.fetch("PRAGMA auto_vacuum")[0][0]


def repack(state: State) -> Iterator[None]:
    """Compress the values that are stored as they are, one step at a time. For a runner."""
    state.refresh()
    spaces = {f"rows_{number}": f"rows.{name.partition('.')[0]}" for number, name in state.fetch(SPACES)}
    tables = {table: -1 for (table,) in state.fetch(TABLES)}
    while tables:
        for table, after in list(tables.items()):
            group = spaces.get(table) or state.group(int(table.removeprefix("log_")))
            last = _repack(state, table, group, after)
            if last is None:
                del tables[table]
            else:
                tables[table] = last
            yield


def _repack(state: State, table: str, group: str, after: int) -> int | None:
    """Compress some values of a table; return the last row id, or None if there are no more."""
    with Transaction(state):
        found = state.fetch(PLAIN.format(table=table), after, LEAST, ROWS)
        packed = [(*state.values.encode(group, table, value), number) for number, value in found]
        state.values.write(state.cursor)
        state.cursor.executemany(REPLACE.format(table=table), [row for row in packed if row[1] is not None])
    return found[-1][0] if len(found) == ROWS else None


def rebuild(state: State, *, repacked: bool = True) -> bool:
    """Write a file anew if half of it is unused; return whether it was.

    repacked: what is unused within pages counts, too, which is looked for in the whole file. One that is too large stays as it is.
    So does one for which there is no room (a disk, a quota, a limit of file sizes), no place for a temporary file, or no pause of
    other writers: SQLite undoes what it began, and a disk that fails fails the next write.
    """
    pages, free = (int(state.fetch(f"PRAGMA {name}")[0][0]) * PAGE for name in ("page_count", "freelist_count"))
    used = pages - free - (int(state.fetch(UNUSED)[0][0]) if repacked else 0)
    if used * 2 > pages or used > MOST:
        return False
    with suppress(apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.BusyError):
        state.rebuild()
        return True
    return False
