"""Buffers the records of an archive that may be a software package until that is known (`software_package.py`).

Laws:
- If the archive is no package, or could not be read to its end, every record is emitted, in its original order.
- If it is a package, the File records of its members are emitted, marked as not selected by the rule. Summaries and rejections of
  its members are not, and damage in a member does not damage the object: the one summary of the package stands for all of them.
- Buffered data is bounded, in the deepest nesting too. Once it exceeds WAITING, the archive is judged by the members so far; later
  members outside the folder of a package are then treated like any other member.
- A member that is not opened because it crashed a process before is reported in a package too: a replay must show why (law 8).
- With `packages_members` every record is emitted at once, and damage counts, as in any archive; the members are only observed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import msgspec

from processors.essence.formats.container import Member
from processors.essence.member import GIVEN_UP, EssenceSettings, Listed, MemberRecord, RecordBuffer, State, Thing
from processors.essence.software_package import CONTAINERS, RULE, TYPE, WAITING, Kept, Unit
from schemas.records import File, Rejected, Summary

FIRST = 100
"""Records that wait in memory; further ones are written to an anonymous file."""


class Gate:
    """Decides which records of one container's members are emitted, and when."""

    def __init__(self, container: Thing, kind: str, settings: EssenceSettings, damage: str, skip: Container[str] = ()) -> None:
        self.unit = False
        """Whether the archive is a software package."""
        self._damage = damage
        self._beside = settings.packages_members
        """Whether the records of members are kept."""
        self._archive = container.name
        self._above = len(container.path) + 1 if container.path else 0
        self._watch = Unit() if kind in CONTAINERS and settings.select.applies(RULE) else None
        self._skip = skip
        self._kept: Kept | None = None
        self._held = RecordBuffer(FIRST)
        # The gates of the enclosing archives hold records of their own.
        self._room = WAITING // max(container.depth, 1)
        self._dropped = 0

    def watched(self, member: Member) -> Member:
        """Register the next member. If it may declare a package, return it with a body whose first bytes are kept."""
        if self._watch is None:
            return member
        self._watch.enter(member.name)
        self._kept = Kept(member.body) if member.body is not None and self._watch.wants(member.name) else None
        return member._replace(body=self._kept) if self._kept else member

    def passed(self, member: Member, records: Iterable[MemberRecord]) -> Iterator[MemberRecord]:
        """Yield the records of a member that can be emitted now; hold back the others."""
        watch = self._watch
        if watch is None:
            yield from records
            return
        for record in self._seen(watch, member, records):
            if self._beside or self.unit or self._watch is None:
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
        """Decide whether the archive is a package, and yield the held records that remain.

        `whole`: False if part of the archive could not be read, or if it shows no sign of a package: it is then no package.
        """
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
        """Yield those of further records that remain after the decision."""
        if self._beside or self._watch is None or not self.unit:
            yield from records
            return
        for record in records:
            if record.path in self._skip or _unopened(record) or not self._watch.holds(record.path[self._above :]):
                yield record
            elif isinstance(record, File):
                yield msgspec.structs.replace(record, selected=False, reason=record.reason or RULE)
            else:
                self._dropped += isinstance(record, Summary) and self._direct(record.path)

    def define(self, name: bytes, records: Iterable[MemberRecord]) -> None:
        """Observe the definitions of a member whose records waited for the names of others: a class of a jar."""
        for record in records:
            if self._watch and self.unit and isinstance(record, Summary) and self._direct(record.path):
                self._watch.define(name, record)

    def harm(self, damage: str) -> str:
        """Return the damage that the object has after this container; damage of members that a package drops does not count."""
        return self._damage if self.unit and not self._beside else damage

    def tell(self, state: State, listing: Listed) -> None:
        """Add to the summary of a package the data gathered from its members."""
        if self.unit and self._watch is not None:
            if self._dropped:
                listing.dropped[RULE] += self._dropped
            self._watch.tell(state.found, self._archive)
            state.recognized = state.recognized._replace(type=TYPE)


def _unopened(record: MemberRecord) -> bool:
    """Whether a record reports something that was not opened because of an earlier member."""
    if isinstance(record, Summary):
        (why,) = record.attributes.get("reason", ("",))[:1]
        return isinstance(why, str) and why.startswith(GIVEN_UP)
    return isinstance(record, Rejected) and record.reason.startswith(GIVEN_UP)
