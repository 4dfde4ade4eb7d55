"""Members of a feed: which templates each has, which of them are superseded, and when one is rewritten.

A batch collects new templates and superseded ones; `write` then rewrites what is due, part by part, and stores the new members. A
rewritten member gets a new id, above all others, so a reader that proceeds by id does not miss its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from sinks.feed.compression import content, piece
from sinks.feed.database import PARTS, one, rows

MEMBER = 128 << 10
"""Bytes of templates from which on a member is complete. Larger ones compress no better, and cost more to rewrite."""
STALE = 3
"""A member is rewritten once one of so many of its templates is superseded."""


class Placed(NamedTuple):
    """A template with the number of its change."""

    number: int
    template: bytes


class Members:
    """The members of a feed within one batch, which is one transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._added: dict[int, dict[int, bytes]] = {part: {} for part in range(PARTS)}
        """New templates by part, by the number of their change."""
        self._due: set[int] = set()
        """Ids of members to be rewritten."""

    def add(self, part: int, number: int, template: bytes) -> None:
        """Add a template; its row exists."""
        self._added[part][number] = template

    def supersede(self, oid: bytes, member: int | None) -> None:
        """Note that the template of an OID in a member is superseded; None: it was added by this batch, or there is none."""
        if member is None:
            row = one(self._db, "SELECT number, part FROM changes WHERE oid=?", (oid,))
            self._added[row[1]].pop(row[0], None)
            return
        self._db.execute("INSERT OR IGNORE INTO stale VALUES(?, ?)", (member, oid))
        self._db.execute("UPDATE members SET stale=stale+1 WHERE id=?", (member,))
        self._due |= {row[0] for row in rows(self._db, "SELECT id FROM members WHERE id=? AND stale*?>=templates", (member, STALE))}

    def rewrite(self, members: Iterable[int]) -> None:
        """Request that members are rewritten."""
        self._due |= {*members}

    def write(self) -> None:
        """Rewrite what is due, and store new members."""
        due: dict[int, set[int]] = {part: set() for part in range(PARTS)}
        for member in self._due:
            for (part,) in rows(self._db, "SELECT part FROM members WHERE id=?", (member,)):
                due[part].add(member)
        for part, added in self._added.items():
            if added:
                due[part] |= self._small(part)
            if added or due[part]:
                self._store(part, [*self._live(sorted(due[part])), *(Placed(*each) for each in added.items())])

    def _small(self, part: int) -> set[int]:
        """Return the last member of a part, if it has room."""
        last = one(self._db, "SELECT id, size FROM members WHERE part=? ORDER BY id DESC LIMIT 1", (part,))
        return {last[0]} if last is not None and last[1] < MEMBER else set()

    def _live(self, members: Sequence[int]) -> Iterator[Placed]:
        """Remove members, and yield their templates that are not superseded."""
        for member in members:
            data = content(one(self._db, "SELECT data FROM members WHERE id=?", (member,))[0])
            live = rows(self._db, "SELECT number, start, size FROM changes WHERE member=? ORDER BY number", (member,))
            self._db.execute("DELETE FROM members WHERE id=?", (member,))
            self._db.execute("DELETE FROM stale WHERE member=?", (member,))
            for number, start, size in live:
                yield Placed(number, data[start : start + size])

    def _store(self, part: int, placed: Iterable[Placed]) -> None:
        waiting: list[Placed] = []
        size = 0
        for each in placed:
            waiting.append(each)
            size += len(each.template)
            if size >= MEMBER:
                self._insert(part, waiting)
                waiting, size = [], 0
        if waiting:
            self._insert(part, waiting)

    def _insert(self, part: int, placed: Sequence[Placed]) -> None:
        data = b"".join(each.template for each in placed)
        made = piece(data)
        row = (part, len(placed), made.size, made.crc, made.factor, made.data)
        self._db.execute("INSERT INTO members(part, templates, stale, size, crc, factor, data) VALUES(?, ?, 0, ?, ?, ?, ?)", row)
        member, start = self._db.last_insert_rowid(), 0
        places = []
        for each in placed:
            places.append((member, start, len(each.template), each.number))
            start += len(each.template)
        self._db.executemany("UPDATE changes SET member=?, start=?, size=? WHERE number=?", places)
