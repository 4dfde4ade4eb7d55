"""catalog: the Gatherer's database. Members of an object, by attempt, become summaries and removals.

Strategy: a summary is published as soon as it is made; when the object is Complete, the members that its attempt did not
give are removed. Manual annotations are kept apart, joined to every summary that goes out, and re-emit it when they change.

Laws:
- It alone writes `summaries` (law 1); an OID belongs to one object URL, and the key of its inputs is that URL.
- A version below the object's last Complete, or below the member's own, is dropped; an equal one is applied again, so that
  redelivery repeats and never loses (law 3).
- A member has one OID: where its summary comes under another one (the Gatherer has another name), the former OID is removed with
  that version, whatever became of the attempt.
- The row of a removed member stays until its removal is delivered for sure (`Origin.committed`). Until then the record that
  gave it gives it again, whatever the rows know by then.
- Partial removes nothing. Rows that depend on the number of members are one each (law 5).

Delivery: at least once; what a redelivered record gives is equal to what it gave, or absorbed by the versions downstream.

Rows: `o|object` (version of the last Complete), `m|object NUL path` (version, attempt, summary as made, where it was removed, what
it was under other OIDs), `a|object NUL path` (annotations).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from processors.identity import split_url
from schemas.codec import HEADER, decode, encode
from schemas.ports import Origin, Rows
from schemas.records import Annotation, Attributes, Complete, Partial, RemovalReason, Removed, Summary

Made = Summary | Complete | Partial | Annotation
Catalogued = Summary | Removed

REASONS: dict[str, RemovalReason] = {"whole": "member_missing", "gone": "gone", "expired": "expired"}


class Member(msgspec.Struct, frozen=True, array_like=True):
    """What is known of one member: its version, the attempt that gave it, its summary, encoded, without annotations.

    A removed one has the offset of the record that removed it, and its Removed in place of the summary.
    """

    version: int
    attempt: str
    record: bytes
    removed_at: int = -1
    former: tuple[tuple[bytes, int], ...] = ()
    """Removals of OIDs that it had before, each with the offset of the record that gave it, until they are delivered for sure."""


OID = HEADER + 2 + 64
"""Bytes at the beginning of an encoded summary whose OID is a digest: its schema, and that OID."""

_pack = msgspec.msgpack.encode
_member = msgspec.msgpack.Decoder(Member).decode


def catalog(rows: Rows, record: Made, origin: Origin) -> Iterator[Catalogued]:
    """Summaries to publish and removals, for one record of `made` or `annotations`."""
    if isinstance(record, Annotation):
        yield from _annotate(rows, record)
    elif record.version < completed(rows, record.object_url):
        if isinstance(record, Complete):
            yield from _repeated(rows, record, origin)
        elif isinstance(record, Summary) and (value := rows.get(_key(b"m|", record.object_url, record.path))) is not None:
            yield from _renamed(_member(value), origin)
    elif isinstance(record, Partial):
        return
    elif isinstance(record, Summary):
        yield from _member_made(rows, record, origin)
    else:
        yield from _complete(rows, record, origin)


def _member_made(rows: Rows, record: Summary, origin: Origin) -> Iterator[Catalogued]:
    key = _key(b"m|", record.object_url, record.path)
    value, made = rows.get(key), encode(record)
    former: tuple[tuple[bytes, int], ...] = ()
    if value is not None:
        known = _member(value)
        if record.version < known.version:
            yield from _renamed(known, origin)
            return
        former = _former(known, record, made, origin)
    rows.put(key, _pack(Member(record.version, record.attempt, made, former=former)))
    yield from (cast("Removed", decode(removal)) for removal, _ in former)
    yield _annotated(rows, record)


def _renamed(known: Member, origin: Origin) -> Iterator[Removed]:
    """The removals of other OIDs that a record gave which comes again, where the rows know of a later version (`_repeated`)."""
    yield from (cast("Removed", decode(removal)) for removal, at in known.former if at == origin.offset)


def _former(known: Member, record: Summary, made: bytes, origin: Origin) -> tuple[tuple[bytes, int], ...]:
    """The removals of other OIDs of a member that are yet to be delivered, or not for sure."""
    same = known.record[:OID] == made[:OID]
    if same and not known.former:
        return ()
    found = {removal: at for removal, at in known.former if at >= origin.committed}
    before = cast("Catalogued", decode(known.record))
    if isinstance(before, Summary) and before.oid != record.oid:
        found[encode(_removed(before, record.version, record.time, "member_missing"))] = origin.offset
    elif isinstance(before, Removed) and known.removed_at >= origin.committed:
        found[known.record] = known.removed_at
    return tuple((removal, at) for removal, at in found.items() if cast("Removed", decode(removal)).oid != record.oid)


def completed(rows: Rows, object_url: str) -> int:
    """The version of the last whole attempt at an object that reached the catalogue; 0 if none did."""
    return int.from_bytes(rows.get(b"o|" + object_url.encode()) or b"", "big")


def held(rows: Rows, object_url: str, path: str) -> int:
    """The version of a member that the catalogue holds; 0 if it holds none."""
    value = rows.get(_key(b"m|", object_url, path))
    member = _member(value) if value is not None else None
    return member.version if member is not None and member.removed_at < 0 else 0


def _key(kind: bytes, object_url: str, path: str) -> bytes:
    return kind + object_url.encode() + b"\0" + path.encode()


def _complete(rows: Rows, record: Complete, origin: Origin) -> Iterator[Removed]:
    for key, value in rows.scan(_key(b"m|", record.object_url, "")):
        member = _member(value)
        yield from (cast("Removed", decode(removal)) for removal, at in member.former if at >= origin.committed)
        if member.removed_at >= origin.committed:
            yield cast("Removed", decode(member.record))
        elif member.removed_at >= 0:
            rows.delete(key)
        elif member.version <= record.version and (record.reason != "whole" or member.attempt != record.attempt):
            summary = cast("Summary", decode(member.record))
            removed = _removed(summary, record.version, record.time, REASONS[record.reason])
            rows.put(key, _pack(Member(record.version, "", encode(removed), origin.offset, member.former)))
            yield removed
    rows.put(b"o|" + record.object_url.encode(), record.version.to_bytes(8, "big"))


def _repeated(rows: Rows, record: Complete, origin: Origin) -> Iterator[Removed]:
    """The removals that a record gave which comes again, where the rows know of a later Complete already.

    That was of the same batch: its rows are kept, and of its outputs none. Once this record is committed the later one takes these
    removals for delivered.
    """
    for _, value in rows.scan(_key(b"m|", record.object_url, "")):
        member = _member(value)
        yield from _renamed(member, origin)
        if member.removed_at == origin.offset:
            yield cast("Removed", decode(member.record))


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
