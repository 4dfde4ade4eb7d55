"""Time-to-live of a Broker: when what its sources give is due to be confirmed, and what a tick finds overdue.

Laws:
- A summary is confirmed at its `time`; a later summary of the same version confirms it again.
- Nothing expires before `confirmed + ttl`: ticks name the ends of the sources, so that every confirmation already in the log is
  applied first. On a tick that is held, which a runner writes while confirmations are still to come, nothing expires.
- A record that is overdue when it arrives, by the last tick, is not taken up.

Rows: `e|due|oid` (derived; due at or before the true time), `t` (time of the last tick).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile

from msgspec.structs import replace

from processors.broker.entry import PREFIX, Entry, Given, decode_entry, load, upgraded
from schemas.ports import Rows
from schemas.records import Tick

DERIVED = b"e|"
_TIME = b"t"


def overdue(rows: Rows, confirmed: int, ttl: int | None) -> bool:
    """Return whether a confirmation was too long ago at the last tick."""
    return ttl is not None and confirmed + ttl * 1000 <= int(rows.get(_TIME) or 0)


def next_due(rows: Rows) -> int | None:
    """Return the first due time, in ms since the epoch."""
    for key, _ in rows.scan(DERIVED, limit=1):
        return _due_of(key)
    return None


def note(rows: Rows, key: bytes, entry: Entry, ttl: int) -> None:
    """Write the due time of an entry, unless it is written."""
    due = _first_due(entry, ttl)
    if due is not None and rows.get(row := _row(due, key)) is None:
        rows.put(row, b"")


def expired(rows: Rows, tick: Tick, ttl: int, limit: int) -> Iterator[tuple[bytes, Entry, tuple[Given, ...]]]:
    """Yield the entries of which something is overdue at a tick, at most `limit`, with what their sources still give."""
    rows.put(_TIME, str(max(tick.time, int(rows.get(_TIME) or 0))).encode())
    due = takewhile(lambda row: _due_of(row[0]) <= tick.time, rows.scan(DERIVED))
    for row, _ in list(islice(due, limit)):
        key = PREFIX + row[len(DERIVED) + 14 :]
        known = load(rows, key)
        given = tuple(_expire(one, tick.time - ttl * 1000) for one in known.given)
        if given != known.given:
            yield key, known, given
        else:
            note(rows, key, known, ttl)
        rows.delete(row)


def restore(rows: Rows, ttl: int | None) -> None:
    """Write the due times of all entries anew."""
    for row, _ in list(rows.scan(DERIVED)):
        rows.delete(row)
    if ttl is None:
        return
    for key, value in list(rows.scan(PREFIX)):
        note(rows, key, upgraded(decode_entry(value)), ttl)


def _expire(given: Given, before: int) -> Given:
    return replace(given, summary=b"", gives=False) if given.gives and given.time <= before else given


def _first_due(entry: Entry, ttl: int) -> int | None:
    return min((given.time + ttl * 1000 for given in entry.given if given.gives), default=None)


def _row(due: int, key: bytes) -> bytes:
    return DERIVED + b"%013d|" % max(due, 0) + key[len(PREFIX) :]


def _due_of(row: bytes) -> int:
    return int(row[len(DERIVED) : len(DERIVED) + 13])
