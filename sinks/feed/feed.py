"""The feed: a sink over `summaries`, or a Broker's archive, that keeps it ready to be sent as one stream.

Strategy: each summary is written as SOIF once, when it changes, and appended to a compressed member of its part (the first hex
digit of its OID). A stream consists of members as they are stored. A member is rewritten when a third of its templates is
superseded, or when it is small and a further change arrives; so members have about MEMBER bytes, and a stream is at most half as
long again as needed.

Laws:
- A batch is applied whole or not at all: changes, members, marks and offsets are one transaction.
- A change applies if its version is above the stored one of its OID; at an equal version, if its content differs (annotations).
  Anything else changes nothing, not even the order. In an archive the publish counter is what the version is here: a Broker may
  remove and take up again under one version.
- An archive gives its summaries without what is the Broker's own: counters, copies, views. Each copy is a summary there, and a
  collector finds copies by itself, among all that it has.
- Version, time and attempt of a collected summary (one with a location) are those of the stream that it came in: with them alone it
  is unchanged. Otherwise Gatherers that collect from each other would send everything round and round.
- A summary of this Gatherer whose time alone differs, at an equal version, was confirmed, and is unchanged. Who collects it
  confirms it by the answer itself: what the changes of a part do not name is as it was.
- A removal is kept for `retention`, counted from its arrival. The number of the last one dropped is the horizon: changes since a
  mark below it are not known.
- A feed, or a partition in it, that no batch has reached for `retention` may have missed removals that the topic has dropped: it is
  emptied when it is opened for writing, or when it gets the ends of its topic. So is one that was made for another Gatherer.
- Which partitions were read to their ends is stored with the offsets (`partitions.py`): until all are, readers refuse.
- Several processes may write: each batch reads everything it depends on in its own transaction. One that ends below the stored
  offsets changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw
from msgspec.structs import replace

from schemas.ports import Refused
from schemas.records import Removed, Summary
from schemas.soif import dumps
from schemas.soif_summary import to_template
from sinks.feed.database import create, empty, now_ms, one, open_database, rows, state, transaction
from sinks.feed.errors import translated
from sinks.feed.members import Members
from sinks.feed.partitions import (
    Position,
    is_expected,
    is_outdated,
    next_offsets,
    positions,
    store_expected,
    store_offsets,
    store_whole,
    untouched,
)
from sinks.feed.templates import inner

RETENTION_MS = 90 * 86_400_000
"""ms that a removal is kept (law 2 of the design)."""
PURGED = 500
"""Removals dropped by one batch at the most."""
_OID = re.compile("[0-9a-f]{64}")
_REMOVALS = "SELECT number, oid, time FROM changes WHERE removal IS NOT NULL ORDER BY number LIMIT ?"


class Entry(NamedTuple):
    """A change as it is stored: `template` is the whole template of the summary, or of the removal."""

    oid: bytes
    change: Summary | Removed
    template: bytes
    sequence: int
    """Number by which the changes of an OID are ordered."""

    @property
    def part(self) -> int:
        """The part that the OID belongs to."""
        return self.oid[0] >> 4


class Feed:
    """Feed in a file, open for writing; it is created if there is none. `clock` returns the time in ms."""

    def __init__(
        self,
        path: Path,
        gatherer: str,
        *,
        broker: str = "",
        clock: Callable[[], int] = now_ms,
        retention_ms: int = RETENTION_MS,
    ) -> None:
        """Open the feed of a Gatherer, or of a Broker's archive. Raises FeedDamaged, OSError."""
        self.path = path
        self.broker = broker
        self._gatherer = gatherer
        self._clock = clock
        self._retention = retention_ms
        self._connection = open_database(path, writable=True)
        try:
            with translated(path), transaction(self._connection):
                create(self._connection, gatherer, clock())
                found = state(self._connection)
                if found.gatherer != gatherer or self._is_outdated():
                    empty(self._connection, gatherer, clock())
                self._epoch = state(self._connection).epoch
        except BaseException:
            self._connection.close()
            raise

    def offsets(self) -> Mapping[int, int]:
        """Return the next offset to apply by partition; empty for a new feed. Raises OSError.

        After FeedMoved, the changes from these offsets on can be applied.
        """
        with translated(self.path), transaction(self._connection, write=False):
            self._epoch = state(self._connection).epoch
            return next_offsets(self._connection)

    def positions(self) -> Sequence[Position]:
        """Return how far each partition was read, whether it is expected or not. Raises OSError."""
        with translated(self.path):
            return positions(self._connection)

    def expect(self, count: int, ends: Mapping[int, int]) -> None:
        """Note that the topic has `count` partitions, and the ends up to which those that are read here have to be read.

        A feed in which a partition was not followed for too long is emptied. Raises FeedMoved, OSError.
        """
        with translated(self.path):
            if not self._is_outdated() and is_expected(positions(self._connection), count, ends):
                return
            with transaction(self._connection):
                state(self._connection, self._epoch)
                if self._is_outdated():
                    empty(self._connection, self._gatherer, self._clock())
                    self._epoch = state(self._connection).epoch
                store_expected(self._connection, count, ends, self._clock())

    def mark_whole(self, ends: Mapping[int, int]) -> None:
        """Note that partitions were read up to offsets that were their ends. Raises FeedMoved, OSError."""
        with translated(self.path):
            whole = {one.partition for one in positions(self._connection) if one.whole}
            if not whole.issuperset(ends):
                with transaction(self._connection):
                    state(self._connection, self._epoch)
                    store_whole(self._connection, ends, self._clock())

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """Apply a batch, and store the next offset of each partition: see `schemas.ports.Follower`.

        Returns the changes that SOIF cannot express. If there are any, the offsets are not stored: store them by a further call,
        once those changes are recorded elsewhere. Raises FeedMoved, OSError: then nothing was applied.
        """
        refused: list[Refused] = []
        # Outside of the transaction: other writers need not wait for it.
        entries = [made for change in changes if (made := _entry(change, refused, archive=bool(self.broker))) is not None]
        with translated(self.path), transaction(self._connection):
            if not self._has(offsets):
                self._write(entries, {} if refused else offsets)
        return refused

    def empty(self) -> None:
        """Delete the content, and begin a new order. Raises OSError."""
        with translated(self.path), transaction(self._connection):
            empty(self._connection, self._gatherer, self._clock())
            self._epoch = state(self._connection).epoch

    def touch(self, partitions: Collection[int] | None = None) -> None:
        """Note that the feed has all of some partitions (None: all), if that was last noted long ago. Raises FeedMoved, OSError."""
        before = self._clock() - self._retention // 90
        with translated(self.path):
            old = state(self._connection, self._epoch).touched < before
            late = untouched(self._connection, before)
            chosen = {one: at for one, at in late.items() if partitions is None or one in partitions}
            if old or chosen:
                with transaction(self._connection):
                    state(self._connection, self._epoch)
                    self._write([], chosen)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _is_outdated(self) -> bool:
        """Return whether the feed may have missed removals."""
        since = self._clock() - self._retention
        return state(self._connection).touched < since or is_outdated(self._connection, since)

    def _has(self, offsets: Mapping[int, int]) -> bool:
        """Return whether another writer has applied a batch already, and perhaps later ones with the same versions."""
        state(self._connection, self._epoch)
        known = next_offsets(self._connection)
        return bool(offsets) and all(known.get(partition, 0) >= end for partition, end in offsets.items())

    def _write(self, entries: Sequence[Entry], offsets: Mapping[int, int]) -> None:
        db, now = self._connection, self._clock()
        number = state(db, self._epoch).number
        members = Members(db)
        for entry in entries:
            digest = _digest(entry)
            if _applies(db, entry, digest):
                number += 1
                _replace(db, members, entry, number, digest, now)
        horizon = self._purge(members, now)
        members.write()
        db.execute("UPDATE state SET number=?, horizon=max(horizon, ?), touched=max(touched, ?)", (number, horizon, now))
        store_offsets(db, offsets, now)

    def _purge(self, members: Members, now: int) -> int:
        """Drop old removals, the oldest first; return the number of the last one."""
        db = self._connection
        horizon = 0
        for number, oid, time in rows(db, _REMOVALS, (PURGED,)):
            if time >= now - self._retention:
                break
            # A stream must not contain a summary of which it cannot state the removal.
            members.rewrite(row[0] for row in rows(db, "SELECT member FROM stale WHERE oid=?", (oid,)))
            db.execute("DELETE FROM changes WHERE number=?", (number,))
            horizon = number
        return horizon


def _entry(change: Summary | Removed, refused: list[Refused], *, archive: bool) -> Entry | None:
    """Return a change as it is stored, or add it to the refused ones."""
    given = _unpublished(change) if archive else change
    if not _OID.fullmatch(change.oid):
        refused.append(Refused(change, "an OID that is not 64 hex digits"))
        return None
    try:
        template = dumps([to_template(given)])
    except ValueError as error:
        refused.append(Refused(change, str(error)[:200]))
        return None
    if isinstance(change, Removed):
        template = inner(template)
    return Entry(bytes.fromhex(change.oid), given, template, change.published if archive else change.version)


def _unpublished(change: Summary | Removed) -> Summary | Removed:
    """Return a change of an archive without what is the Broker's own."""
    if isinstance(change, Removed):
        return replace(change, published=0)
    return replace(change, published=0, copy_of="", copies=(), copies_count=0, views=())


def _digest(entry: Entry) -> bytes:
    """Return a digest of the content of a change."""
    change, content = entry.change, entry.template
    if isinstance(change, Summary):
        same = replace(change, version=0, time=0, attempt="") if change.location else replace(change, time=0)
        content = dumps([to_template(same)])
    return hashlib.sha256(content).digest()[:8]


def _applies(db: apsw.Connection, entry: Entry, digest: bytes) -> bool:
    known = one(db, "SELECT version, digest FROM changes WHERE oid=?", (entry.oid,))
    if known is not None and entry.sequence > known[0] and digest == known[1]:
        db.execute("UPDATE changes SET version=? WHERE oid=?", (entry.sequence, entry.oid))
    return known is None or (entry.sequence >= known[0] and digest != known[1])


def _replace(db: apsw.Connection, members: Members, entry: Entry, number: int, digest: bytes, now: int) -> None:
    """Move the row of an OID to the end, with its new content."""
    change, part = entry.change, entry.part
    before = one(db, "SELECT member, removal IS NULL FROM changes WHERE oid=?", (entry.oid,))
    lived, lives = bool(before and before[1]), isinstance(change, Summary)
    if before is not None:
        members.supersede(entry.oid, before[0])
        db.execute("DELETE FROM changes WHERE oid=?", (entry.oid,))
    removal = None if lives else entry.template
    row = (number, entry.oid, part, entry.sequence, digest, now, change.url, removal)
    db.execute("INSERT INTO changes(number, oid, part, version, digest, time, url, removal) VALUES(?, ?, ?, ?, ?, ?, ?, ?)", row)
    if lives:
        members.add(part, number, entry.template)
    db.execute("UPDATE parts SET number=?, summaries=summaries+? WHERE part=?", (number, lives - lived, part))
