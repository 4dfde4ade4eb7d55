"""The register stage (a Broker's Registry) decides which summaries the Broker holds, and publishes them.

Strategy: an accepted version is published at once, without a role; dedup is informed of the content's holder, and its answer,
if there is one, publishes again. Every publication raises a counter that register alone raises: the version that every
index and archive compares.

Laws:
- Only register writes `broker.NAME` (law 1). The counter survives removal and is max(last + 1, version), so that a lost row
  cannot restart it.
- A version below the last is dropped; an equal one (annotations changed, or a redelivery) is published again.
- An answer of dedup for another version than the present one is ignored; a new version starts without a role.

Delivery: at least once; each repeat carries a higher counter and the same content.

Rows: `r|oid` (version, counter, content digest, role, the summary as received, contents left; removed: no summary).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import msgspec
from msgspec.structs import replace

from schemas.codec import decode, encode, publish
from schemas.ports import Origin, Rows
from schemas.records import Holder, Removed, Role, Summary

Registered = Summary | Removed | Holder


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """Row of one OID."""

    version: int
    published: int
    content: str
    copy_of: str
    copies: tuple[str, ...]
    count: int
    summary: bytes
    left: tuple[tuple[str, int], ...] = ()
    """Digests of contents that it held before, each with the offset of the record that ended that."""


PREFIX = b"r|"
"""Begins the keys of entries, before the OID."""

NOTHING = Entry(-1, 0, "", "", (), 0, b"")

_pack = msgspec.msgpack.encode
_entry = msgspec.msgpack.Decoder(Entry)


def register(
    rows: Rows,
    record: Summary | Removed | Role,
    origin: Origin,
    accepts: Callable[[Summary], bool] | None = None,
    ttl: int | None = None,
) -> Iterator[Registered]:
    """Yield what the Broker publishes, and the holders that dedup must know, for one record of `summaries` or `copies.NAME`.

    `accepts` is the Broker's filter: a summary that it does not accept is removed if it was held (reason: filtered); None: all
    are accepted. `ttl`: seconds, the longest time-to-live that a published summary states; None: its own.
    """
    key = PREFIX + record.oid.encode()
    value = rows.get(key)
    known = _entry.decode(value) if value is not None else NOTHING
    if isinstance(record, Role):
        if record.version == known.version and known.summary:
            yield from _publish(rows, key, known, record)
        return
    if record.version < known.version:
        return
    if isinstance(record, Summary) and accepts is not None and not accepts(record):
        if not known.summary and record.version > known.version:
            return  # not held, nor removed for this version: a removal is repeated if the record is delivered again
        record = filtered(record)
    if isinstance(record, Removed):
        if known is NOTHING:
            return  # never held: nothing to remove
        yield from _remove(rows, key, known, record, origin)
    else:
        if ttl is not None and ttl < record.ttl:
            record = replace(record, ttl=ttl)
        yield from _accept(rows, key, known, record, origin)


def shown(rows: Rows, key: bytes) -> Summary | None:
    """Return the summary of an entry as it was last published, but without tags; None if the entry holds none."""
    value = rows.get(key)
    known = _entry.decode(value) if value is not None else NOTHING
    return _said(known, cast("Summary", decode(known.summary)), known.published) if known.summary else None


def republished(rows: Rows, key: bytes) -> Summary:
    """Return the next publication of an entry that holds a summary; the row gets its counter."""
    value = rows.get(key)
    known = _entry.decode(value) if value is not None else NOTHING
    entry = replace(known, published=max(known.published + 1, known.version))
    rows.put(key, _pack(entry))
    return _said(entry, cast("Summary", decode(entry.summary)), entry.published)


def _said(entry: Entry, summary: Summary, published: int) -> Summary:
    return publish(summary, published=published, copy_of=entry.copy_of, copies=entry.copies, copies_count=entry.count)


def _accept(rows: Rows, key: bytes, known: Entry, summary: Summary, origin: Origin) -> Iterator[Registered]:
    content = summary.content
    same = known.summary and known.version == summary.version and known.content == content
    left = _left(known, content, origin)
    base = known if same else NOTHING
    entry = replace(base, version=summary.version, published=known.published, content=content, summary=encode(summary), left=left)
    role = Role(oid=summary.oid, version=summary.version, copy_of=entry.copy_of, copies=entry.copies, count=entry.count)
    yield from _publish(rows, key, entry, role, summary)
    for content_left, _ in left:
        yield _holder(summary, content_left, joined=False)
    if content:
        yield _holder(summary, content, joined=True)


def _remove(rows: Rows, key: bytes, known: Entry, removed: Removed, origin: Origin) -> Iterator[Registered]:
    published = max(known.published + 1, removed.version)
    left = _left(known, "", origin)
    rows.put(key, _pack(Entry(removed.version, published, "", "", (), 0, b"", left)))
    yield replace(removed, published=published)
    for content_left, _ in left:
        yield _holder(removed, content_left, joined=False)


def _left(known: Entry, content: str, origin: Origin) -> tuple[tuple[str, int], ...]:
    """Return the contents whose end dedup must be informed of: the last one, and those whose message may be lost."""
    left = {c: at for c, at in known.left if at >= origin.committed}
    if known.content:
        left[known.content] = origin.offset
    left.pop(content, None)
    return tuple(left.items())


def _publish(rows: Rows, key: bytes, known: Entry, role: Role, summary: Summary | None = None) -> Iterator[Summary]:
    published = max(known.published + 1, known.version)
    if summary is None:
        summary = cast("Summary", decode(known.summary))
    rows.put(key, _pack(replace(known, published=published, copy_of=role.copy_of, copies=role.copies, count=role.count)))
    yield publish(summary, published=published, copy_of=role.copy_of, copies=role.copies, copies_count=role.count)


def _holder(of: Summary | Removed, content: str, *, joined: bool) -> Holder:
    member = of.url != of.object_url
    return Holder(content=content, oid=of.oid, url=of.url, member=member, version=of.version, joined=joined)


def filtered(summary: Summary) -> Removed:
    """Return the removal of a summary that a Broker does not accept."""
    return Removed(
        oid=summary.oid,
        url=summary.url,
        object_url=summary.object_url,
        version=summary.version,
        time=summary.time,
        reason="filtered",
    )
