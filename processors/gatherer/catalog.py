"""The catalog stage (the Gatherer's database) turns the members of an object, by attempt, into summaries and removals.

Strategy: a summary is published as soon as it is made; when the object is Complete, the members that its attempt did not
produce are removed. Manual annotations are stored separately and joined to every summary published; a changed annotation publishes
its summary again.

Laws:
- Only catalog writes `summaries` (law 1); an OID belongs to one object URL, and the key of its inputs is that URL.
- A version below the object's last Complete, or below the member's own, is dropped; an equal one is applied again, so that
  redelivery repeats and never loses (law 3).
- A member has one OID: if its summary arrives under another one (the Gatherer's name changed), the former OID is removed with
  that version, whatever the outcome of the attempt.
- The row of a removed member stays until delivery of its removal is certain (`Origin.committed`). Until then a redelivery of the
  record that caused the removal emits it again, whatever later records have written to the rows.
- Withdrawn removes its one member, for the reason that it would have if it were missing in the whole: `member_missing`. Where the
  member is unknown, the row notes the version, so that an older summary that arrives later does not bring it back. Nothing is
  published then: among Gatherers that collect from each other in a ring, such a removal would go round for ever.
- Confirmed publishes each member that is held again, under its own version, with the time of the confirmation. It makes no version
  known, and the time of a member never goes back.
- Partial removes nothing. Data that grows with the number of members has one row per member (law 5).

Delivery: at least once; the outputs of a redelivered record equal the first ones, or are absorbed by the versions downstream.

Rows: `o|object` (version of the last Complete), `m|object NUL path` (version, attempt, summary as made, offset of the removal,
removals of former OIDs), until the next Complete after a removal, `a|object NUL path` (annotations).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from processors.identity import split_url
from schemas.codec import HEADER, decode, encode
from schemas.ports import Origin, Rows
from schemas.records import Annotation, Attributes, Complete, Confirmed, Partial, RemovalReason, Removed, Summary, Withdrawn

Input = Summary | Complete | Partial | Withdrawn | Confirmed | Annotation
Catalogued = Summary | Removed

REASONS: dict[str, RemovalReason] = {"whole": "member_missing", "gone": "gone", "expired": "expired"}


class Member(msgspec.Struct, frozen=True, array_like=True):
    """Row of one member: its version, the attempt that produced it, its encoded summary without annotations.

    After a removal: the offset of the record that caused it, and the Removed in place of the summary; nothing, if none was known.
    """

    version: int
    attempt: str
    record: bytes
    removed_at: int = -1
    former: tuple[tuple[bytes, int], ...] = ()
    """Removals of its former OIDs, each with the offset of the record that caused it, until their delivery is certain."""


OID = HEADER + 2 + 64
"""Length in bytes of the prefix of an encoded summary that holds the schema and an OID of 64 hex digits."""

_pack = msgspec.msgpack.encode
_member = msgspec.msgpack.Decoder(Member).decode


def catalog(rows: Rows, record: Input, origin: Origin) -> Iterator[Catalogued]:
    """Return the summaries and removals to publish for one record of `made` or `annotations`."""
    if isinstance(record, Annotation):
        yield from _annotate(rows, record)
    elif record.version < completed_version(rows, record.object_url):
        if isinstance(record, Complete):
            yield from _repeated(rows, record, origin)
        elif isinstance(record, Summary | Withdrawn) and (known := _known(rows, record)) is not None:
            yield from _repeated_of(known, origin)
    elif isinstance(record, Partial):
        return
    elif isinstance(record, Summary):
        yield from _member_made(rows, record, origin)
    elif isinstance(record, Withdrawn):
        yield from _withdraw(rows, record, origin)
    elif isinstance(record, Confirmed):
        yield from _confirm(rows, record)
    else:
        yield from _complete(rows, record, origin)


def _known(rows: Rows, record: Summary | Withdrawn) -> Member | None:
    """Return the row of the member that a record concerns."""
    value = rows.get(_key(b"m|", record.object_url, record.path))
    return _member(value) if value is not None else None


def _member_made(rows: Rows, record: Summary, origin: Origin) -> Iterator[Catalogued]:
    known = _known(rows, record)
    if known is not None and known.version == record.version:
        record = _as_confirmed(known, record)
    made = encode(record)
    former: tuple[tuple[bytes, int], ...] = ()
    if known is not None:
        if record.version < known.version:
            yield from _renamed(known, origin)
            return
        former = _former(known, record, made, origin)
    rows.put(_key(b"m|", record.object_url, record.path), _pack(Member(record.version, record.attempt, made, former=former)))
    yield from (cast("Removed", decode(removal)) for removal, _ in former)
    yield _annotated(rows, record)


def _as_confirmed(known: Member, record: Summary) -> Summary:
    """Return a summary that is delivered again, or made anew under its version, with the time at which it was confirmed since."""
    before = decode(known.record) if known.record else None
    if not isinstance(before, Summary) or before.time <= record.time:
        return record
    return msgspec.structs.replace(record, time=before.time)


def _confirm(rows: Rows, record: Confirmed) -> Iterator[Summary]:
    """Publish the members of an unchanged object with the time of the confirmation; a redelivery publishes them again."""
    for key, value in rows.scan(_key(b"m|", record.object_url, "")):
        member = _member(value)
        if member.removed_at >= 0 or member.version > record.version:
            continue
        summary = cast("Summary", decode(member.record))
        if summary.time <= record.time:
            confirmed = msgspec.structs.replace(summary, time=record.time)
            rows.put(key, _pack(msgspec.structs.replace(member, record=encode(confirmed))))
            yield _annotated(rows, confirmed)


def _withdraw(rows: Rows, record: Withdrawn, origin: Origin) -> Iterator[Removed]:
    """Remove one member; one that is unknown, or removed already, only gets the version."""
    key, known = _key(b"m|", record.object_url, record.path), _known(rows, record)
    if known is not None:
        yield from _repeated_of(known, origin)
    if known is None:
        rows.put(key, _pack(Member(record.version, "", b"", origin.offset)))
    elif record.version < known.version:
        return
    elif known.removed_at >= 0:
        rows.put(key, _pack(msgspec.structs.replace(known, version=record.version)))
    else:
        removed = _removed(cast("Summary", decode(known.record)), record.version, record.time, "member_missing")
        rows.put(key, _pack(Member(record.version, "", encode(removed), origin.offset, known.former)))
        yield removed


def _repeated_of(known: Member, origin: Origin) -> Iterator[Removed]:
    """Return the removals that a redelivered record about a member caused (see `_repeated`)."""
    yield from _renamed(known, origin)
    if known.removed_at == origin.offset:
        yield from _removal(known)


def _removal(removed: Member) -> Iterator[Removed]:
    """Return the removal in the row of a removed member; none where the member was unknown."""
    if removed.record:
        yield cast("Removed", decode(removed.record))


def _renamed(known: Member, origin: Origin) -> Iterator[Removed]:
    """Return a redelivered record's removals of former OIDs, where the rows are of a later version (see `_repeated`)."""
    yield from (cast("Removed", decode(removal)) for removal, at in known.former if at == origin.offset)


def _former(known: Member, record: Summary, made: bytes, origin: Origin) -> tuple[tuple[bytes, int], ...]:
    """Return the removals of a member's former OIDs whose delivery is not certain."""
    same = known.record[:OID] == made[:OID]
    if (same or not known.record) and not known.former:
        return ()
    found = {removal: at for removal, at in known.former if at >= origin.committed}
    before = cast("Catalogued", decode(known.record)) if known.record else None
    if isinstance(before, Summary) and before.oid != record.oid:
        found[encode(_removed(before, record.version, record.time, "member_missing"))] = origin.offset
    elif isinstance(before, Removed) and known.removed_at >= origin.committed:
        found[known.record] = known.removed_at
    return tuple((removal, at) for removal, at in found.items() if cast("Removed", decode(removal)).oid != record.oid)


def completed_version(rows: Rows, object_url: str) -> int:
    """Return the version of the last complete attempt at an object that reached the catalog; 0 if none did."""
    return int.from_bytes(rows.get(b"o|" + object_url.encode()) or b"", "big")


def member_version(rows: Rows, object_url: str, path: str) -> int:
    """Return the version of a member in the catalog; 0 if it is absent or removed."""
    value = rows.get(_key(b"m|", object_url, path))
    member = _member(value) if value is not None else None
    return member.version if member is not None and member.removed_at < 0 else 0


def has_same(rows: Rows, record: Summary) -> bool:
    """Return whether the catalog has this summary already, but for its version, time and attempt."""
    known = _known(rows, record)
    before = decode(known.record) if known is not None and known.record else None
    if not isinstance(before, Summary):
        return False
    return record == msgspec.structs.replace(before, version=record.version, time=record.time, attempt=record.attempt)


def knows(rows: Rows, object_url: str, path: str) -> bool:
    """Return whether the catalog has a member, or its removal."""
    return rows.get(_key(b"m|", object_url, path)) is not None


def _key(kind: bytes, object_url: str, path: str) -> bytes:
    return kind + object_url.encode() + b"\0" + path.encode()


def _complete(rows: Rows, record: Complete, origin: Origin) -> Iterator[Removed]:
    for key, value in rows.scan(_key(b"m|", record.object_url, "")):
        member = _member(value)
        yield from (cast("Removed", decode(removal)) for removal, at in member.former if at >= origin.committed)
        if member.removed_at >= origin.committed:
            yield from _removal(member)
        elif member.removed_at >= 0:
            if member.version <= record.version:
                rows.delete(key)
        elif member.version <= record.version and (record.reason != "whole" or member.attempt != record.attempt):
            summary = cast("Summary", decode(member.record))
            removed = _removed(summary, record.version, record.time, REASONS[record.reason])
            rows.put(key, _pack(Member(record.version, "", encode(removed), origin.offset, member.former)))
            yield removed
    rows.put(b"o|" + record.object_url.encode(), record.version.to_bytes(8, "big"))


def _repeated(rows: Rows, record: Complete, origin: Origin) -> Iterator[Removed]:
    """Return the removals of a redelivered Complete where the rows already know a later Complete.

    The later one was in the same batch, whose rows were kept and whose outputs were lost. Once this record is committed, the later
    one takes these removals for delivered.
    """
    for _, value in rows.scan(_key(b"m|", record.object_url, "")):
        yield from _repeated_of(_member(value), origin)


def _removed(summary: Summary, version: int, time: int, reason: RemovalReason) -> Removed:
    return Removed(oid=summary.oid, url=summary.url, object_url=summary.object_url, version=version, time=time, reason=reason)


def _annotate(rows: Rows, record: Annotation) -> Iterator[Summary]:
    object_url, path = split_url(record.url)
    key = _key(b"a|", object_url, path)
    known: dict[str, tuple[str | bytes, ...]] = {}
    if stored := rows.get(key):
        known.update(cast("Annotation", decode(stored)).attributes)
    known.update(record.attributes)
    merged = msgspec.structs.replace(record, attributes={k: v for k, v in known.items() if v})
    rows.put(key, encode(merged))
    value = rows.get(_key(b"m|", object_url, path))
    if value is None:
        return
    member = _member(value)
    if member.removed_at < 0:
        yield _annotated(rows, cast("Summary", decode(member.record)))


def _annotated(rows: Rows, summary: Summary) -> Summary:
    stored = rows.get(_key(b"a|", summary.object_url, summary.path))
    if stored is None:
        return summary
    annotations: Attributes = cast("Annotation", decode(stored)).attributes
    return msgspec.structs.replace(summary, annotations=annotations)
