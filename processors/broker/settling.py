"""How an entry follows from what its sources give: what is published, and what dedup is told.

A publication on a tick notes itself in a row `x|oid` before the entry is written: the tick has no record of the OID, so its
redelivery repeats those publications from these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import msgspec
from msgspec.structs import replace

from processors.broker import expiry, reading
from processors.broker.entry import NOTHING, SHOWN, Cause, Entry, Given, Left, encode_row, load, shown_version
from processors.broker.sources import Sources
from schemas.codec import decode, encode, publish
from schemas.ports import Origin, Rows
from schemas.records import Holder, RemovalReason, Removed, Role, Summary

Registered = Summary | Removed | Holder
MAX_ENDED = 16
TOLD = b"x|"


class Outcome(NamedTuple):
    """Why a summary goes on a tick."""

    reason: RemovalReason
    time: int


class Told(msgspec.Struct, frozen=True, array_like=True):
    """Row of a publication on a tick: its offset, and the removal; empty: the entry has the summary."""

    offset: int
    removal: bytes = b""


_told = msgspec.msgpack.Decoder(Told).decode


@dataclass(frozen=True)
class Settling:
    """Writes entries and yields what follows, for one record."""

    rows: Rows
    origin: Origin
    sources: Sources
    ttl: int | None

    @cached_property
    def reading(self) -> reading.Reading:
        """The present reading of the sources."""
        return reading.load(self.rows)

    @property
    def cause(self) -> Cause:
        """The record at hand."""
        return Cause(self.origin.topic, self.origin.offset, self.reading.number)

    @property
    def ticked(self) -> bool:
        """Whether the record is a tick."""
        return self.origin.topic.endswith(".ticks")

    def settle(self, key: bytes, known: Entry, given: tuple[Given, ...], why: Removed | Outcome) -> Iterator[Registered]:
        """Write the entry that follows from what the sources give now; `why`: the removal, if nothing is held."""
        given = tuple(sorted(given, key=lambda one: self._order(one.source)))
        best = max((one for one in given if one.gives), key=lambda one: (one.version, -self._order(one.source)), default=None)
        if best is None or not best.summary:
            yield from self._remove(key, known, _own(given, known.summary), why, refused=best is not None)
        else:
            yield from self._show(key, known, given, best)

    def repeat(self) -> Iterator[Registered]:
        """Repeat the publications of a tick that comes again, and of those behind it: the first to come again repeats them all."""
        for row, value in list(self.rows.scan(TOLD)):
            told = _told(value)
            if told.offset < self.origin.committed:
                self.rows.delete(row)
            if told.offset < self.origin.offset:
                continue
            key = b"r|" + row[len(TOLD) :]
            known = load(self.rows, key)
            if known.cause is None or (known.cause.topic, known.cause.offset) != (self.origin.topic, told.offset):
                continue
            if known.summary:
                yield from self._publish(key, replace(known, cause=self.cause))
                continue
            removal = cast("Removed", decode(told.removal))
            yield from self._withdraw(key, replace(known, cause=self.cause), removal)

    def stale(self, known: Entry, record: Summary | Removed) -> Iterator[Holder]:
        """Tell dedup again of the contents that a record has ended, if it is a redelivery that comes behind a later record.

        The later one was in the same batch, whose rows were kept and whose outputs were lost. Once this record is committed, the
        later one takes these messages for delivered.
        """
        for left in known.ended:
            if left.cause == self.cause:
                yield _holder(record, known.version, left.content, joined=False)

    def sure(self, known: Entry) -> bool:
        """Return whether the last publication of an entry, and all messages to dedup, are delivered or will be repeated."""
        now, origin = self.reading, self.origin
        return now.certain(known.cause, origin) and all(now.certain(left.cause, origin) for left in known.ended)

    def save(self, key: bytes, known: Entry) -> None:
        """Write an entry and its due time."""
        value = encode_row(known)
        if self.rows.get(key) != value:
            self.rows.put(key, value)
        if self.ttl is not None:
            expiry.note(self.rows, key, known, self.ttl)

    def _order(self, source: str) -> int:
        names = self.sources.names
        return names.index(source) if source in names else len(names)

    def _show(self, key: bytes, known: Entry, given: tuple[Given, ...], best: Given) -> Iterator[Registered]:
        data = known.summary if best.summary == SHOWN else best.summary
        summary = cast("Summary", decode(data))
        same = bool(known.summary) and shown_version(known) == best.version and known.content == summary.content
        version = known.version if same else max(best.version, known.version + 1)
        kept = tuple(replace(one, summary=SHOWN) if one.source == best.source else one for one in _own(given, known.summary))
        if same and known.summary == data and self.sure(known):
            self.save(key, replace(known, given=kept))
            return
        made = replace(
            known if same else NOTHING,
            version=version,
            published=known.published,
            content=summary.content,
            summary=data,
            given=kept,
            ended=self._ended(known, summary.content),
            cause=self.cause,
        )
        yield from self._publish(key, made, summary)

    def _publish(self, key: bytes, made: Entry, summary: Summary | None = None) -> Iterator[Registered]:
        """Publish the summary of an entry, and tell dedup of its contents."""
        if summary is None:
            summary = cast("Summary", decode(made.summary))
        yield self._raise(key, made, summary)
        for left in made.ended:
            yield _holder(summary, made.version, left.content, joined=False)
        if made.content:
            yield _holder(summary, made.version, made.content, joined=True)

    def _raise(self, key: bytes, made: Entry, summary: Summary) -> Summary:
        made = replace(made, published=max(made.published + 1, made.version))
        self._tell(key, b"")
        self.save(key, made)
        role = {"copy_of": made.copy_of, "copies": made.copies, "copies_count": made.count}
        return publish(summary, published=made.published, **role)

    def _remove(
        self, key: bytes, known: Entry, given: tuple[Given, ...], why: Removed | Outcome, *, refused: bool
    ) -> Iterator[Registered]:
        newest = max((one.version for one in given), default=-1)
        made = replace(
            NOTHING,
            version=max(known.version, newest),
            published=known.published,
            given=given,
            ended=known.ended,
            cause=known.cause or self.cause,
        )
        # Never held, or removed before: a removal is repeated if it may be lost; those of ticks by `repeat`.
        if not known.summary and (not known.published or isinstance(why, Outcome) or self.sure(known)):
            self.save(key, made)
            return
        if isinstance(why, Outcome):
            why = _removal(cast("Summary", decode(known.summary)), why)
        elif refused:
            why = replace(why, reason="filtered")
        made = replace(made, ended=self._ended(known, ""), cause=self.cause)
        yield from self._withdraw(key, made, why)

    def _withdraw(self, key: bytes, made: Entry, removal: Removed) -> Iterator[Registered]:
        made = replace(made, published=max(made.published + 1, made.version))
        self._tell(key, encode(removal))
        self.save(key, made)
        yield replace(removal, version=max(removal.version, made.version), published=made.published)
        for left in made.ended:
            yield _holder(removal, made.version, left.content, joined=False)

    def _tell(self, key: bytes, removal: bytes) -> None:
        if self.ticked:
            self.rows.put(TOLD + key[2:], encode_row(Told(self.origin.offset, removal)))

    def _ended(self, known: Entry, content: str) -> tuple[Left, ...]:
        """Return the contents whose end dedup must be informed of: the last one, and those whose message may be lost."""
        now, origin = self.reading, self.origin
        unsure = (left for left in known.ended if left.cause.topic != origin.topic or not now.certain(left.cause, origin))
        ended = {left.content: left for left in unsure}
        if known.content:
            ended[known.content] = Left(known.content, self.cause)
        ended.pop(content, None)
        return tuple(ended.values())[-MAX_ENDED:]


def published_role(settling: Settling, key: bytes, known: Entry, role: Role) -> Iterator[Registered]:
    """Yield the summary of an entry with the role that dedup has answered, unless it has it already."""
    same = (known.copy_of, known.copies, known.count) == (role.copy_of, role.copies, role.count)
    if same and settling.reading.certain(known.cause, settling.origin):
        return
    made = replace(known, copy_of=role.copy_of, copies=role.copies, count=role.count, cause=settling.cause)
    yield settling._raise(key, made, cast("Summary", decode(known.summary)))  # noqa: SLF001


def _own(given: tuple[Given, ...], shown: bytes) -> tuple[Given, ...]:
    """Return what the sources give, each with its own summary."""
    return tuple(replace(one, summary=shown) if one.summary == SHOWN else one for one in given)


def _holder(of: Summary | Removed, version: int, content: str, *, joined: bool) -> Holder:
    member = of.url != of.object_url
    return Holder(content=content, oid=of.oid, url=of.url, member=member, version=version, joined=joined)


def filtered(summary: Summary) -> Removed:
    """Return the removal of a summary that a Broker does not accept."""
    return _removal(summary, Outcome("filtered", summary.time))


def _removal(summary: Summary, why: Outcome) -> Removed:
    return Removed(
        oid=summary.oid,
        url=summary.url,
        object_url=summary.object_url,
        version=summary.version,
        time=why.time,
        reason=why.reason,
    )
