"""Buffers the records of an archive that may be a software package until that is known (`software_package.py`).

Laws:
- Of what is no package, and of what could not be read to its end, every record comes out, in the order in which it came.
- Of a package, the facts of its files come out (File), not selected by the rule; its members' summaries and rejections do not,
  and what is damaged in it damages nothing: its one summary says all that it would.
- What waits is bounded, in the deepest nesting too. Where it is more than WAITING, the archive is judged by what was seen so far;
  what then comes from outside the folder of a package is a member like any other.
- What is not opened because it brought down a process before is told in a package too: a replay must show why (law 8).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import msgspec

from processors.essence.formats.container import Member
from processors.essence.member import GIVEN_UP, EssenceSettings, Listed, MemberRecord, RecordBuffer, State, Thing
from processors.essence.software_package import CONTAINERS, RULE, TYPE, WAITING, Kept, Unit
from schemas.records import File, Rejected, Summary

FIRST = 100
"""Records that wait in memory, before the anonymous file."""


class Gate:
    """What becomes of the records of one container's members."""

    def __init__(self, container: Thing, kind: str, settings: EssenceSettings, damage: str, skip: Container[str] = ()) -> None:
        self.damage = damage
        """That of the object, before the container."""
        self.unit = False
        """It is a package."""
        self._archive = container.name
        self._above = len(container.path) + 1 if container.path else 0
        self._watch = Unit() if kind in CONTAINERS and settings.select.applies(RULE) else None
        self._skip = skip
        self._kept: Kept | None = None
        self._held = RecordBuffer(FIRST)
        # The gates that an archive lies in hold their own.
        self._room = WAITING // max(container.depth, 1)
        self._dropped = 0

    def watched(self, member: Member) -> Member:
        """A member that comes, its first bytes to be kept if it may declare a package."""
        if self._watch is None:
            return member
        self._watch.enter(member.name)
        self._kept = Kept(member.body) if member.body is not None and self._watch.wants(member.name) else None
        return member._replace(body=self._kept) if self._kept else member

    def passed(self, member: Member, records: Iterable[MemberRecord]) -> Iterator[MemberRecord]:
        """What comes out of the records of a member."""
        watch = self._watch
        if watch is None:
            yield from records
            return
        for record in self._seen(watch, member, records):
            if self.unit or self._watch is None:
                yield from self.left([record])
                continue
            self._held.keep(record)
            if self._held.size > self._room:
                yield from self.opened(whole=True)
        if self._kept:
            watch.declare(member.name, self._kept.data)
        if not watch.hopeful:
            yield from self.opened(whole=False)

    def _seen(self, watch: Unit, member: Member, records: Iterable[MemberRecord]) -> Iterator[MemberRecord]:
        for record in records:
            if isinstance(record, Summary) and self._direct(record.path):
                watch.take(member.name, record)
            yield record

    def _direct(self, path: str) -> bool:
        return "#" not in path[self._above :]

    def opened(self, *, whole: bool) -> Iterator[MemberRecord]:
        """What comes out once it is known what the archive is. `whole`: nothing is missing of it so far."""
        watch = self._watch
        if watch is None or self.unit:
            return
        self.unit = whole and watch.shown
        if self.unit:
            watch.settle()
        else:
            self._watch = None
        yield from self.left(self._held.records())

    def left(self, records: Iterable[MemberRecord]) -> Iterator[MemberRecord]:
        """What comes out of further records."""
        if self._watch is None or not self.unit:
            yield from records
            return
        for record in records:
            if record.path in self._skip or _unopened(record) or not self._watch.holds(record.path[self._above :]):
                yield record
            elif isinstance(record, File):
                yield msgspec.structs.replace(record, selected=False, reason=record.reason or RULE)
            else:
                self._dropped += isinstance(record, Summary) and self._direct(record.path)

    def tell(self, state: State, listing: Listed) -> None:
        """Say of the package what its members told."""
        if self._watch is not None:
            listing.dropped[RULE] += self._dropped
            self._watch.tell(state.found, self._archive)
            state.recognized = state.recognized._replace(type=TYPE)


def _unopened(record: MemberRecord) -> bool:
    """Whether a record says that something was not opened because of what came before it."""
    if isinstance(record, Summary):
        (why,) = record.attributes.get("reason", ("",))[:1]
        return isinstance(why, str) and why.startswith(GIVEN_UP)
    return isinstance(record, Rejected) and record.reason.startswith(GIVEN_UP)
