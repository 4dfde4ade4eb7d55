"""Reader of a feed: its state, and streams of all summaries, of a part, or of the changes since a mark or a time.

Strategy: a complete stream is the stored members as they are, in the order of their ids, between a head and an end made for it;
what was moved to later members while it is sent is cut from those, and so is a stream of changes. Everything is read in short
transactions, so that a slow reader of a stream never holds up the writer.

Laws:
- A stream of changes contains every change up to its mark that a reader with the earlier mark lacks, but for OIDs that have
  changed again since: those come with the changes since its mark. So it ends, however fast changes arrive.
- A complete stream contains each summary that exists while it is sent, also one that changes meanwhile, since what it lacks is
  taken for removed. It has the changes that arrive meanwhile, up to LATER.
- A complete stream ends with the removal of each summary that it contains and that does not exist at its mark.
- What cannot be guaranteed ends the stream with StreamInterrupted, before its END.
- Who sends streams calls `require_whole` first: what a feed lacks while it is filled would be taken for removed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from sinks.feed.compression import GzipStream, Piece, content
from sinks.feed.database import PARTS, State, one, open_database, rows, state, transaction
from sinks.feed.errors import FeedPartial, StreamInterrupted, translated
from sinks.feed.mark import Mark
from sinks.feed.partitions import Position, lack, next_offsets, positions
from sinks.feed.templates import CLOSED, DELETE, GATHERER, UPDATE, collection, end, opened, template

PAGE, PIECE = 500, 1 << 20
"""Rows, and bytes of their templates, that are read in one transaction at the most; one template may be larger."""
READY = 1 << 20
"""Compressed bytes of members that are read in one transaction; the last one may exceed this."""
SPAN = 100_000
"""Rows that are compared with a prefix in one transaction at the most."""
LATER = 200_000
"""Changes that may arrive while a complete stream is sent."""
NEAR = 2 * PARTS
"""Members that are kept decompressed: neighbouring changes of a part are in one member."""
ALL = tuple(range(PARTS))

_STALE = """SELECT DISTINCT changes.number FROM stale JOIN changes ON changes.oid=stale.oid
    WHERE removal IS NOT NULL AND part=? ORDER BY changes.number"""
_CHANGED = """SELECT number, member, start, size, removal FROM changes
    WHERE number>? AND number<=? AND part BETWEEN ? AND ? AND (removal IS NULL)=? {more} ORDER BY number LIMIT {limit}"""
_MOVED = "AND member>?"
# Compared by the engine: of a million rows without the prefix in 0.13 s, not 0.55. The last character is above all that follow.
_BELOW = "AND url BETWEEN ? AND ? || char(1114111)"
_NEXT = "SELECT id, templates, data, size, crc, factor FROM members WHERE part=? AND id>? AND id<=? ORDER BY id"
_TEXT = {True: "complete", False: "changes"}


class PartState(NamedTuple):
    """A part: the mark of its last change, and its number of summaries."""

    part: int
    mark: Mark
    summaries: int


class FeedState(NamedTuple):
    """A feed: the Gatherer's name, the mark of the last change, its parts."""

    gatherer: str
    mark: Mark
    horizon: int
    parts: Sequence[PartState]

    @property
    def summaries(self) -> int:
        """Number of summaries."""
        return sum(part.summaries for part in self.parts)

    def mark_of(self, part: int | None) -> Mark:
        """Return the mark of a part, or of everything."""
        return self.mark if part is None else self.parts[part].mark


class Range(NamedTuple):
    """Changes above one number, up to another: of summaries or of removals, of URLs with a prefix, in members above an id."""

    after: int
    last: int
    member: int = 0
    prefix: str = ""
    lives: bool = True

    def end(self, after: int) -> int:
        """Return the highest number of a page behind a number."""
        return min(self.last, after + SPAN) if self.prefix else self.last

    def page(self, db: apsw.Connection, after: int, parts: tuple[int, int]) -> list[tuple[Any, ...]]:
        """Return the rows of a page behind a number."""
        # `_MOVED` only where it is needed: it makes the engine use the index of members, and sort.
        more = (_MOVED if self.member else "") + (_BELOW if self.prefix else "")
        values = ((self.member,) if self.member else ()) + ((self.prefix, self.prefix) if self.prefix else ())
        return rows(db, _CHANGED.format(more=more, limit=PAGE), (after, self.end(after), *parts, self.lives, *values))


class FeedReader:
    """Reads a feed; used by one thread at a time."""

    keeps = True
    """Whether its whole stream is kept ready in a file."""

    def __init__(self, path: Path) -> None:
        """Open the feed. Raises FeedMissing, FeedDamaged, OSError."""
        self.path = path
        self._db = open_database(path, writable=False)
        self.epoch = ""
        """The epoch of the feed that was whole; empty: it was not asked whether it is."""

    def close(self) -> None:
        """Close the file; if a thread reads it just now, that is done once nothing refers to it."""
        with suppress(apsw.ThreadingViolationError):
            self._db.close()

    def state(self) -> FeedState:
        """Return the state of the feed. Raises OSError."""
        with translated(self.path), transaction(self._db, write=False):
            return self._state()

    def offsets(self) -> Mapping[int, int]:
        """Return the next offset of its topic by partition. Raises OSError."""
        with translated(self.path):
            return next_offsets(self._db)

    def positions(self) -> Sequence[Position]:
        """Return how far each partition of its topic was read. Raises OSError."""
        with translated(self.path):
            return positions(self._db)

    def require_whole(self) -> None:
        """Raise FeedPartial unless the feed has all of its topic; from then on, FeedMoved if it is made anew. Raises OSError."""
        with translated(self.path), transaction(self._db, write=False):
            missing, epoch = lack(positions(self._db)), state(self._db).epoch
        if missing:
            raise FeedPartial(f"the stream is not complete: {missing}")
        self.epoch = epoch

    def known(self, since: Mark | int, part: int | None = None) -> Mark | None:
        """Return a mark, or that of a time in ms, if the changes since then are known, else None. Raises OSError."""
        if isinstance(since, int):
            return self.mark_at(since)
        return since if self.is_known(since, part) else None

    def is_known(self, since: Mark, part: int | None = None) -> bool:
        """Return whether the changes since a mark are known. Raises OSError."""
        found = self.state()
        return found.mark.epoch == since.epoch and found.horizon <= since.number <= found.mark_of(part).number

    def mark_at(self, time_ms: int) -> Mark | None:
        """Return the mark of the last change before a time; None if the changes since then are not known. Raises OSError."""
        with translated(self.path), transaction(self._db, write=False):
            found = state(self._db)
            last = one(self._db, "SELECT number FROM changes WHERE time<? ORDER BY number DESC LIMIT 1", (time_ms,))
        number = last[0] if last is not None else 0
        return Mark(found.epoch, number) if number >= found.horizon else None

    def complete(self, part: int | None = None) -> Iterator[bytes]:
        """Iterate over the compressed stream of all summaries, or of a part's. Raises OSError, StreamInterrupted."""
        parts = ALL if part is None else (part,)
        with translated(self.path), transaction(self._db, write=False):
            found = self._state()
            gone = [row[0] for each in parts for row in rows(self._db, _STALE, (each,))]
            last = one(self._db, "SELECT coalesce(max(id), 0) FROM members")[0]
        mark, count = found.mark_of(part), 0
        stream = GzipStream()
        yield stream.text(head(found, mark, part) + opened(UPDATE))
        for templates, ready in self._members(parts, last, found.mark.epoch):
            count += templates
            yield stream.ready(ready)
        for page in self._changed(found, Range(0, sys.maxsize, last), part):
            count += len(page)
            yield stream.text(b"".join(page))
        removals = self._removals(gone, found)
        yield stream.text(CLOSED + collection(DELETE, removals) + end(count + len(removals), mark)) + stream.end()

    def changes(self, since: Mark | None = None, part: int | None = None, prefix: str = "") -> Iterator[bytes]:
        """Iterate over the compressed stream of changes since a mark; None: of all summaries, without removals.

        `prefix`: only of URLs that begin so. Raises OSError, StreamInterrupted.
        """
        found = self.state()
        mark, count = found.mark_of(part), 0
        stream = GzipStream()
        yield stream.text(head(found, mark, part, since, prefix) + opened(UPDATE))
        for lives in (True, False) if since is not None else (True,):
            if not lives:
                yield stream.text(CLOSED + opened(DELETE))
            chosen = Range(since.number if since is not None else 0, mark.number, prefix=prefix, lives=lives)
            for page in self._changed(found, chosen, part):
                count += len(page)
                yield stream.text(b"".join(page))
        yield stream.text(CLOSED + end(count, mark)) + stream.end()

    def _state(self) -> FeedState:
        found = state(self._db, self.epoch)
        stored = rows(self._db, "SELECT part, number, summaries FROM parts ORDER BY part")
        parts = [PartState(part, Mark(found.epoch, number), summaries) for part, number, summaries in stored]
        return FeedState(found.gatherer, Mark(found.epoch, found.number), found.horizon, parts)

    def _members(self, parts: Sequence[int], last: int, epoch: str) -> Iterator[tuple[int, Piece]]:
        """Yield the members of parts up to an id that still exist, with their numbers of templates."""
        left, at = list(parts), 0
        while left:
            found: list[Any] = []
            with translated(self.path), transaction(self._db, write=False):
                self._check(epoch)
                while left and not _add(found, self._db.execute(_NEXT, (left[0], at, last))):
                    left, at = left[1:], 0
            at = found[-1][0] if left else 0
            for _, templates, *ready in found:
                yield templates, Piece(*ready)

    def _removals(self, numbers: Sequence[int], found: FeedState) -> list[bytes]:
        """Return the templates of removals; one whose summary has come back meanwhile is left out."""
        templates: list[bytes] = []
        with translated(self.path), transaction(self._db, write=False):
            if self._check(found.mark.epoch).horizon > found.horizon and numbers:
                raise StreamInterrupted("removals were dropped while the stream was sent")
            for number in numbers:
                templates += (row[0] for row in rows(self._db, "SELECT removal FROM changes WHERE number=?", (number,)))
        return templates

    def _changed(self, found: FeedState, chosen: Range, part: int | None) -> Iterator[list[bytes]]:
        """Yield the templates of the chosen changes, in their order."""
        parts = (0, PARTS - 1) if part is None else (part, part)
        near: dict[int, bytes] = {}
        after, done = chosen.after, False
        while not done:
            with translated(self.path), transaction(self._db, write=False):
                now = self._check(found.mark.epoch)
                if not chosen.lives and now.horizon > after:
                    raise StreamInterrupted("removals were dropped while the stream was sent")
                if after > found.mark.number + LATER:
                    raise StreamInterrupted("summaries change faster than the stream is sent")
                left = PIECE
                page: list[bytes] = []
                chunk, end = chosen.page(self._db, after, parts), chosen.end(after)
                for number, *place in chunk:
                    after = number
                    page.append(self._template(near, *place))
                    left -= len(page[-1])
                    if left <= 0:
                        break
                if left > 0 and len(chunk) < PAGE:
                    after, done = end, end == chosen.last
            if page:
                yield page

    def _template(self, near: dict[int, bytes], member: int, start: int, size: int, removal: bytes | None) -> bytes:
        if removal is not None:
            return removal
        if member not in near:
            if len(near) >= NEAR:
                del near[next(iter(near))]
            near[member] = content(one(self._db, "SELECT data FROM members WHERE id=?", (member,))[0])
        return near[member][start : start + size]

    def _check(self, epoch: str) -> State:
        """Return the state. Raises StreamInterrupted if the feed was made anew."""
        found = state(self._db)
        if found.epoch != epoch:
            raise StreamInterrupted("the feed was made anew while the stream was sent")
        return found


def _add(found: list[Any], members: Iterable[Any]) -> bool:
    """Add rows of members until there are READY bytes of them; return whether there may be more."""
    size = sum(len(row[2]) for row in found)
    for row in members:
        found.append(row)
        size += len(row[2])
        if size >= READY:
            return True
    return False


def head(found: FeedState, mark: Mark, part: int | None, since: Mark | None = None, prefix: str = "", query: str = "") -> bytes:
    """Return the first template of a stream."""
    return template(
        GATHERER,
        gatherer_name=found.gatherer,
        coverage=_TEXT[since is None],
        mark=mark,
        since=since,
        part=part,
        prefix=prefix or None,
        query=query or None,
    )
