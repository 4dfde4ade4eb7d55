"""Partitions of the topic: how far a feed has read each of them, and whether it was read to its end once.

A collector takes what a complete stream lacks for removed, so a feed that is still being filled must not be sent. Laws:
- A feed is whole once each partition of its topic was read up to an end that the topic had. That holds for one made anew, and for
  that of a worker that has only some of the partitions: it is never whole.
- A partition that was read to its end stays so, even if nobody reads it any more: then the feed is older than its topic, but it has
  everything that the topic had at some time, and a stream of it removes nothing that exists without a later one bringing it back.
- A partition that nothing has reached for the removal retention may have lost removals: it has to be read again (`is_outdated`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apsw

from sinks.feed.database import rows

SHOWN = 3
"""Partitions that a reason names at the most."""

_STORE = """INSERT INTO partitions(partition, next, touched) VALUES(?, ?, ?)
    ON CONFLICT(partition) DO UPDATE SET next=max(next, excluded.next), touched=max(touched, excluded.touched)"""
_WHOLE = "UPDATE partitions SET whole=1, until=NULL WHERE partition=?"
_EXPECT = "INSERT OR IGNORE INTO partitions(partition, next, touched) VALUES(?, 0, ?)"
_UNTIL = "UPDATE partitions SET until=? WHERE partition=? AND NOT whole"


class Position(NamedTuple):
    """How far a feed has read a partition."""

    partition: int
    next: int
    """The next offset to apply."""
    until: int | None
    """Offset up to which it has to be read before the feed is whole; None: it is not known, or was reached."""
    whole: bool
    """Whether the partition was read to its end once."""


def lack(positions: Sequence[Position]) -> str:
    """Return what a feed lacks until it may be sent, as a reason for the user; empty if it is whole."""
    if not positions:
        return "nothing was read yet"
    open_ones = [one for one in positions if not one.whole]
    if not open_ones:
        return ""
    named = [_progress(one) for one in open_ones[:SHOWN]]
    more = [f"{len(open_ones) - SHOWN:,} more"] if len(open_ones) > SHOWN else []
    return f"{len(open_ones):,} of {len(positions):,} partitions are not read to the end yet: {', '.join(named + more)}"


def is_expected(known: Sequence[Position], count: int, ends: Mapping[int, int]) -> bool:
    """Return whether a feed expects these partitions already, and is to read them up to these ends, or is whole."""
    until = {one.partition: ends.get(one.partition) if one.whole else one.until for one in known}
    return until.keys() >= {*range(count)} and all(until[partition] == end for partition, end in ends.items())


def _progress(one: Position) -> str:
    if one.until is None:
        return f"partition {one.partition} {'is read elsewhere' if not one.next else f'at {one.next:,}'}"
    return f"partition {one.partition} at {one.next:,} of {one.until:,}"


def positions(db: apsw.Connection) -> list[Position]:
    """Return how far each partition was read."""
    found = rows(db, "SELECT partition, next, until, whole FROM partitions ORDER BY partition")
    return [Position(partition, following, until, bool(whole)) for partition, following, until, whole in found]


def next_offsets(db: apsw.Connection) -> dict[int, int]:
    """Return the next offset of each partition that was read."""
    return {one.partition: one.next for one in positions(db) if one.next}


def store_offsets(db: apsw.Connection, offsets: Mapping[int, int], now: int) -> None:
    """Store the next offsets of partitions; none becomes lower."""
    db.executemany(_STORE, [(partition, offset, now) for partition, offset in offsets.items()])


def store_expected(db: apsw.Connection, count: int, ends: Mapping[int, int], now: int) -> None:
    """Store the number of partitions, and the ends up to which some of them have to be read."""
    db.executemany(_EXPECT, [(partition, now) for partition in range(count)])
    db.executemany(_UNTIL, [(end, partition) for partition, end in ends.items()])


def store_whole(db: apsw.Connection, ends: Mapping[int, int], now: int) -> None:
    """Store that partitions were read to their ends."""
    store_offsets(db, ends, now)
    db.executemany(_WHOLE, [(partition,) for partition in ends])


def is_outdated(db: apsw.Connection, since: int) -> bool:
    """Return whether nothing has reached a partition of which the feed has something since a time (ms)."""
    return bool(rows(db, "SELECT 1 FROM partitions WHERE touched<? AND next>0 LIMIT 1", (since,)))


def untouched(db: apsw.Connection, since: int) -> dict[int, int]:
    """Return the partitions that nothing has reached since a time (ms), with their next offsets."""
    return dict(rows(db, "SELECT partition, next FROM partitions WHERE touched<?", (since,)))
