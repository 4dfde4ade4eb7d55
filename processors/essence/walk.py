"""The walk through one object: recognize, unwrap, unnest, select and summarize, down to the innermost member.

Laws:
- Each walk has one budget. A member that cannot be read gives a Rejected and a summary with the attribute `reason`, and the walk
  goes on; when the budget is exhausted, the walk ends with the same two records for every container that is still open.
- Compression is an encoding: it makes no member, and the digest is that of the stored bytes.
- No exception that input can cause escapes; only requests to end the process do (KeyboardInterrupt, SystemExit).
- The records and their order depend only on the object, the settings and the members to skip.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO

import msgspec

from processors import identity
from processors.essence import selection
from processors.essence.formats.container import Budget, Damaged, Empty, Exhausted, Member, Reader, UnnestError
from processors.essence.formats.streams import CHUNK, Counted, Digest, Hashed, peek, seekable, sought
from processors.essence.member import (
    BEHIND,
    GIVEN_UP,
    MAX_LONG,
    DigestedBody,
    EssenceSettings,
    Listed,
    MemberRecord,
    RecordBuffer,
    Room,
    State,
    Stored,
    Thing,
    bounded,
    charset,
    digested,
    text,
)
from processors.essence.object_records import MAX_ORIGINAL, ObjectRecords, describe
from processors.essence.package_buffer import Gate
from processors.essence.recognize import HEAD, Recognized, placed, recognize
from processors.essence.summarize import Facts, SummaryError, summarize
from processors.essence.unnest import Container, Encoding, members, stripped, unnesters
from schemas.records import MAX_DETAIL, MAX_REASON, FetchedObject, File, Link, Rejected

UNNESTERS = unnesters()
"""Loaded when this module is imported: later, a sandbox may have no file system to import from."""


def reason(error: Exception) -> str:
    """Return the reason that a record states for an exception."""
    known = isinstance(error, UnnestError | SummaryError) and str(error)
    return bounded(str(error) if known else f"{type(error).__name__}: {error}", MAX_REASON)


class Walk:
    """The walk through one object."""

    def __init__(
        self,
        obj: FetchedObject,
        settings: EssenceSettings,
        attempt: str,
        skip: Mapping[str, str],
        progress: Callable[[str], None],
        stop: str = "",
        ends: Mapping[str, str] | None = None,
    ) -> None:
        self.obj = obj
        self.settings = settings
        self.attempt = attempt
        self.skip = skip
        self.progress = progress
        self.stop = stop
        self.ends = ends or {}
        self.given_up = ""
        """Why no further members are opened, or ""."""
        self.budget = Budget(settings.limits, obj.size)
        self.exhausted = ""
        self.damage = ""
        """Why parts of the object could not be read, or ""."""
        # The entries of a folder come from its listing alone: a link in one of its pages must not lead elsewhere in the file
        # system, nor to the network.
        self.followed = obj.root is not None and obj.url.startswith("http")
        """Whether the links of the object itself are followed."""
        self.records = ObjectRecords(obj, settings, attempt)
        self.links: list[Link] = []
        """Links of the object itself, if they are followed."""
        self.rule = ""
        """Rule that dropped the most recent object or member, or ""."""
        self.fault = ""
        """Why the object cannot be read as the listing that it is, or ""."""

    # ---- a thing -------------------------------------------------------------------------------------------------

    def thing(self, thing: Thing, stored: Stored) -> Iterator[MemberRecord]:
        """Yield all records of an object, or of a member that is a file."""
        self.progress(thing.path)
        full = 0 if self.records.robots.noarchive else self.settings.full_text
        state = State(full=full, linked=self.followed and not thing.path and not self.records.robots.nofollow)
        state.found.robots = self.records.robots
        describe(thing, state.found)
        try:
            yield from self._open(thing, stored, state)
            self._drain(stored)
        except Exception as error:  # noqa: BLE001 - whatever a hostile file raises, MemoryError included, is an outcome
            self._fail(state, error)
            with suppress(Exception):
                self._drain(stored)
        yield from self._outcome(thing, stored.digest(), state)

    def _drain(self, stored: Stored) -> None:
        """Read the remaining bytes, to complete the digest."""
        while not (self.exhausted or isinstance(stored, DigestedBody)) and stored.read(CHUNK):
            pass

    def _fail(self, state: State, error: Exception) -> None:
        """Record why an object or member is rejected."""
        state.reason = reason(error)
        if not isinstance(error, UnnestError | SummaryError):
            state.detail = bounded("".join(traceback.format_exception(error, limit=-4)), MAX_DETAIL)
        if isinstance(error, Exhausted):
            self.exhausted = state.reason
        if isinstance(error, Damaged | Exhausted):
            self.damage = self.damage or state.reason

    def _open(self, thing: Thing, stored: Stored, state: State) -> Iterator[MemberRecord]:
        """Unwrap encodings, then unnest a container or summarize a file."""
        reader: Reader = stored.file if isinstance(stored, DigestedBody) else stored
        name, stated, depth = thing.name, thing.stated, thing.depth
        told = placed(identity.member_url(self.obj.url, thing.path))
        while True:
            head, reader = peek(reader, HEAD)
            state.outer = state.recognized
            state.recognized = recognize(name, head, stated, told)
            state.rule = selection.by_type(state.recognized.type, self.settings.select)
            unnester = None if state.rule else self._unnester(state.recognized.type, thing)
            if unnester is None:
                break
            depth += 1
            self.budget.descend(depth)
            if isinstance(unnester, Container):
                for key, value in unnester.about(head) if unnester.about else ():
                    state.found.add(key, value)
                inner = thing._replace(name=name, depth=depth)
                if unnester.summarized:
                    yield from self._document(inner, unnester, reader, state, stated)
                else:
                    yield from self._members(inner, unnester, reader, state)
                # The bytes after the end of a container may reveal damage of an encoding around it.
                while not sought(reader) and reader.read(CHUNK):
                    pass
                return
            reader, name, stated = self._decode(unnester, reader, state), stripped(name, unnester), ""
        if not state.rule:
            self._summarize(thing._replace(name=name), reader, state, thing.stated if stated else "")

    def _unnester(self, kind: str, thing: Thing) -> Container | Encoding | None:
        """Return the unnester of a type, or None. No list is opened in an entry of a list: a list of one entry is that entry."""
        found = UNNESTERS.get(kind)
        entries = isinstance(found, Container) and found.entries
        return None if entries and (thing.source or not self.settings.entries) else found

    def _decode(self, encoding: Encoding, reader: Reader, state: State) -> Reader:
        state.found.attributes.setdefault("encoding", []).append(encoding.name)
        return Counted(encoding.open(reader, self.budget), self.budget)

    def _summarize(self, thing: Thing, reader: Reader, state: State, stated: str) -> None:
        problem: SummaryError | None = None
        # A truncated file is summarized up to its end; if the summarizer fails there, the truncation is the reported reason.
        with seekable(reader, self.settings.limits, damaged=True) as body:
            try:
                self._summarized(thing, body, state, stated)
            except SummaryError as error:
                problem = error
        if problem:
            raise problem

    def _summarized(self, thing: Thing, body: BinaryIO, state: State, stated: str) -> None:
        url, kind = thing.url or identity.member_url(self.obj.url, thing.path), state.recognized
        size = body.seek(0, 2)
        body.seek(0)
        facts = Facts(thing.name, url, kind.type, kind.content_type, size, thing.mtime, charset(stated), self.obj.time)
        summarize(facts, body, state.found)
        if not thing.path and not state.found.robots.nofollow:
            self.links = state.found.links

    def _document(self, thing: Thing, unnester: Container, reader: Reader, state: State, stated: str) -> Iterator[MemberRecord]:
        """Summarize a container that is also a document, then yield its members. Damage of one does not affect the other."""
        with seekable(reader, self.settings.limits, damaged=True) as body:
            problem: SummaryError | None = None
            try:
                self._summarized(thing, body, state, stated)
            except SummaryError as error:
                problem = error
            body.seek(0)
            yield from self._members(thing, unnester, body, state)
            if problem:
                raise problem

    # ---- a container ---------------------------------------------------------------------------------------------

    def _members(self, container: Thing, unnester: Container, reader: Reader, state: State) -> Iterator[MemberRecord]:
        """Yield the records of a container's members; those that a rule could drop wait until all names are known."""
        listing, held = Listed(container.path), RecordBuffer()
        if unnester.entries:
            container = container._replace(source=identity.member_url(self.obj.url, container.path))
        gate = Gate(container, state.recognized.type, self.settings, self.damage, self.skip)
        room = Room(self.budget, container, unnester)
        problem: Exception | None = None
        try:
            for member in self._listed(unnester, reader, room):
                self.budget.enter(member.name)
                if member.kind != "folder":
                    yield from gate.passed(member, self._entry(container, gate.watched(member), listing, held))
                    self._behind(listing.path)
                if self.exhausted:
                    raise Exhausted(self.exhausted)
        except Exception as error:  # noqa: BLE001 - what was held back comes out first
            problem = error
        try:
            yield from gate.opened(whole=problem is None)
            yield from gate.left(self._released(listing, held, gate))
        except Exception as error:  # noqa: BLE001 - the memory that held it may be full
            problem = problem or error
        self.damage = gate.harm(self.damage)
        gate.tell(state, listing)
        listing.tell(state.found, document=unnester.summarized)
        room.tell(state.found)
        if problem:
            # An empty archive is read to its end: nothing that it may have had before is kept.
            self.damage = self.damage or ("" if isinstance(problem, Empty) else reason(problem))
            raise problem

    def _listed(self, unnester: Container, reader: Reader, room: Room) -> Iterator[Member]:
        """Yield the members within the limit of a list. Raises Damaged at the end if some were not opened."""
        for member in members(unnester, reader, self.budget):
            if not room.full():
                yield member
        if self.given_up:
            raise Damaged(self.given_up)

    def _entry(self, container: Thing, member: Member, listing: Listed, held: RecordBuffer) -> Iterator[MemberRecord]:
        """Yield the records of a member that is not a folder, unless it is dropped or held back."""
        path = listing.enter(member)
        if rule := self._unselected(member.name, listing):
            listing.dropped[rule] += 1
            yield from self._dropped(container, path, member, rule)
            return
        if selection.candidate(member.name, self.settings.select):
            held.append(member.name, self._member(container, path, member))
        else:
            yield from self._member(container, path, member)
        if self.rule:
            listing.dropped[self.rule] += 1

    def _released(self, listing: Listed, held: RecordBuffer, gate: Gate) -> Iterator[MemberRecord]:
        """Yield the records that were held back, except dropped ones, now that all names are known."""
        for name, records in held.groups():
            rule = selection.beside(name, listing.names, self.settings.select)
            if rule:
                listing.dropped[rule] += 1
                yield from (msgspec.structs.replace(r, selected=False, reason=rule) for r in records if isinstance(r, File))
            else:
                gate.define(name, records)
                yield from records

    def _unselected(self, name: bytes, listing: Listed) -> str:
        return selection.by_name(name, self.settings.select) or selection.beside(name, listing.names, self.settings.select)

    def _dropped(self, container: Thing, path: str, member: Member, rule: str) -> Iterator[MemberRecord]:
        if self.settings.files:
            yield self.records.file(self._described(container, path, member), Digest(max(member.size, 0), "", ""), State(rule))

    def _described(self, container: Thing, path: str, member: Member) -> Thing:
        return Thing(
            path=path,
            name=member.name.rpartition(b"/")[2],
            size=member.size,
            mtime=max(-MAX_LONG, min(member.mtime, MAX_LONG)),
            owner=bounded(member.owner, MAX_REASON),
            group=bounded(member.group, MAX_REASON),
            mode=member.mode,
            depth=container.depth,
            stated=bounded(member.stated, MAX_REASON),
            url=bounded(member.url, MAX_ORIGINAL),
            source=container.source,
        )

    def _member(self, container: Thing, path: str, member: Member) -> Iterator[MemberRecord]:
        """Yield all records of a member that is not a folder."""
        thing = self._described(container, path, member)
        if path in self.skip or (self.given_up and member.body is not None):
            yield from self.skipped(thing, Digest(max(member.size, 0), "", ""))
        elif member.body is not None:
            yield from self.thing(thing, Hashed(member.body, self.budget))
        elif member.kind in ("symlink", "hardlink"):
            yield from self.link(thing, member.target)
        else:
            state = State()
            describe(thing, state.found)
            state.found.add("device", text(member.target))
            yield from self._outcome(thing, Digest(0, "", ""), state)

    def _behind(self, path: str) -> None:
        """Report that a member is finished. Raises Damaged if its container is not to be read any further."""
        # Reported before the next member is looked for, so that a crash between two members is not blamed on the last one.
        self.progress(BEHIND + path)
        if path == self.stop:
            self.given_up = bounded(GIVEN_UP + self.skip.get(path, self.ends.get(path, "")), MAX_REASON)
        if path in self.ends:
            raise Damaged(bounded(GIVEN_UP + self.ends[path], MAX_REASON))

    # ---- what comes out ------------------------------------------------------------------------------------------

    def link(self, thing: Thing, target: bytes) -> Iterator[MemberRecord]:
        """Yield the records of a link, which is never followed. It has no content, so two links to one place are not copies."""
        state = State()
        describe(thing, state.found)
        state.found.add("target", text(target))
        state.recognized = Recognized("SymbolicLink", "inode/symlink", "stated")
        yield from self._outcome(thing, digested(target), state)

    def skipped(self, thing: Thing, digest: Digest) -> Iterator[MemberRecord]:
        """Yield the records of a member that is not opened, because it, or too many members before it, crashed a process."""
        state = State()
        describe(thing, state.found)
        state.reason = bounded(self.skip.get(thing.path, self.given_up), MAX_REASON)
        yield from self._outcome(thing, digest, state)

    def _outcome(self, thing: Thing, digest: Digest, state: State) -> Iterator[MemberRecord]:
        self.rule = state.rule
        if not thing.path:
            state.reason = state.reason or self.fault
        yield from self.records.outcome(thing, digest, state)

    def rejected(self, path: str, reason: str, detail: str = "") -> Rejected:
        """Return a dead letter about the object or one of its members."""
        return self.records.rejected(path, reason, detail)
