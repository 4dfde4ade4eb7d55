"""dedup: who holds the same content, and which of them is canonical. It drops nothing; it only answers.

Strategy: the holders of a content are rows in order of rank, so that the canonical one is the first, whatever the order of
arrival; when it goes, the next is found by a scan. A small family is answered at once; a large one is marked, and
answered on a tick, at most CHUNK answers a tick, so that a thousand equal licence files cost a few answers each.

Laws:
- canonical = the least by (plain objects before members, URL length, URL) (DESIGN, dedup).
- Every `joined` of a content with more than one holder is answered, and answered again on redelivery (law 1).
- Rows say who was accepted, never just that something was: no counters (law 5).

Delivery: at least once; an answer names the version that it is about.

Rows: `h|content|rank` (holder, and what it was told last), `y|content` (due, cursor), `d|due|content` (derived), `t` (time).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import msgspec
from msgspec.structs import replace

from schemas.ports import Origin, Rows
from schemas.records import MAX_COPIES, Holder, Role, Tick

SMALL = 8
"""Families up to this size are answered at once."""
CHUNK = 1_000
"""Answers that one tick gives at the most for one family."""
NEVER = -(1 << 62)
"""In place of an origin: never told anything."""
LULL = 1_000
"""ms that a large family waits for more of its kind."""


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A holder and what dedup told it last; `told` is -1 where the present version was never answered."""

    oid: str
    url: str
    version: int
    told: int = -1
    copy_of: str = ""
    copies: tuple[str, ...] = ()
    count: int = 0
    at: int = NEVER
    """Offset of the record that caused the last answer, below 0 for ticks."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A large family that waits for its answers: when, and from which row on."""

    due: int
    after: bytes = b""
    done: int = -1
    """Offset of the tick that answered it whole; the mark goes once that is committed."""


_pack = msgspec.msgpack.encode
_held = msgspec.msgpack.Decoder(Held).decode
_mark = msgspec.msgpack.Decoder(Mark).decode


def dedup(rows: Rows, record: Holder | Tick, origin: Origin) -> Iterator[Role]:
    """Answers to one holder that joined or left, or to a tick."""
    if isinstance(record, Tick):
        yield from _tick(rows, record, origin)
        return
    family = _family(record.content)
    key = family + _rank(record)
    value = rows.get(key)
    known = _held(value) if value is not None else Held(record.oid, record.url, record.version)
    if record.version >= known.version and record.joined:
        # told = -1: a redelivered `joined` is answered again, since nobody knows whether the first answer got out.
        rows.put(key, _pack(replace(known, version=record.version, told=-1)))
    elif record.version >= known.version:
        rows.delete(key)
    holders = list(rows.scan(family, limit=SMALL + 1))
    if len(holders) > SMALL:
        _postpone(rows, record.content)
    elif not _untold(holders):
        yield from _settle(rows, family, origin)


def deadline(rows: Rows) -> int | None:
    """When the next large family is due, in ms since the epoch."""
    for key, _ in rows.scan(b"d|", limit=1):
        return int(key[2:15])
    return None


def restore(rows: Rows) -> None:
    """Rebuild the derived rows of a partition from its others."""
    for key, _ in list(rows.scan(b"d|")):
        rows.delete(key)
    for key, value in list(rows.scan(b"y|")):
        rows.put(_due(_mark(value).due, key[2:]), b"")


def _tick(rows: Rows, tick: Tick, origin: Origin) -> Iterator[Role]:
    now = max(tick.time, int(rows.get(b"t") or 0))
    rows.put(b"t", str(now).encode())
    for key, _ in list(rows.scan(b"d|")):
        if int(key[2:15]) > now:
            break
        content = key[16:]
        value = rows.get(b"y|" + content)
        rows.delete(key)
        mark = _mark(value) if value is not None else Mark(now)
        if 0 <= mark.done < origin.committed:
            rows.delete(b"y|" + content)
            continue
        after = yield from _chunk(rows, b"h|" + content + b"|", mark.after, origin)
        # Answered whole: looked at once more by a later tick, which knows whether these answers got out.
        rows.put(b"y|" + content, _pack(Mark(now, after, -1 if after else origin.offset)))
        rows.put(_due(now, content), b"")


def _postpone(rows: Rows, content: str) -> None:
    value = rows.get(b"y|" + content.encode())
    due = int(rows.get(b"t") or 0) + LULL
    if value is not None:
        due = _mark(value).due
    # A family that changes while it is being answered is answered from the start: what was told is on its rows.
    rows.put(b"y|" + content.encode(), _pack(Mark(due)))
    rows.put(_due(due, content.encode()), b"")


def _due(due: int, content: bytes) -> bytes:
    return b"d|%013d|" % due + content


def _untold(holders: list[tuple[bytes, bytes]]) -> bool:
    """Whether one holds the content alone and never heard otherwise, as most do: there is nothing to answer."""
    return len(holders) == 1 and _held(holders[0][1]).at == NEVER


def _family(content: str) -> bytes:
    return b"h|" + content.encode() + b"|"


def _rank(record: Holder) -> bytes:
    url = record.url.encode()
    return bytes([record.member]) + len(url).to_bytes(4, "big") + url + b"\0" + record.oid.encode()


def _settle(rows: Rows, family: bytes, origin: Origin) -> Iterator[Role]:
    after = b""
    while True:
        after = yield from _chunk(rows, family, after, origin)
        if not after:
            return


def _chunk(rows: Rows, family: bytes, after: bytes, origin: Origin) -> Generator[Role, None, bytes]:
    """Answers for at most CHUNK holders; returns the key to go on from, or b"" at the end."""
    first = [(k, _held(v)) for k, v in rows.scan(family, limit=MAX_COPIES + 1)]
    if not first:
        return b""
    key, canonical = first[0]
    if not after:
        copies = tuple(h.url for _, h in first[1:])
        count = len(copies) if len(first) <= MAX_COPIES else sum(1 for _ in rows.scan(family)) - 1
        yield from _tell(rows, key, canonical, replace(canonical, copy_of="", copies=copies, count=count), origin)
    seen = 0
    for row, value in list(rows.scan(family, after=after or key, limit=CHUNK)):
        held = _held(value)
        yield from _tell(rows, row, held, replace(held, copy_of=canonical.oid, copies=(), count=0), origin)
        after = row
        seen += 1
    return after if seen == CHUNK else b""


def _tell(rows: Rows, key: bytes, before: Held, now: Held, origin: Origin) -> Iterator[Role]:
    at = _at(origin)
    # An answer caused at or after what is committed may be lost: it is given again. Of the other topic nothing is known here,
    # and need not be: its own redelivery gives it again.
    delivered = before.at != at and ((before.at < 0) != (at < 0) or _offset(before.at) < origin.committed)
    if before.told == before.version and before == now and delivered:
        return
    alone = not now.copy_of and not now.count
    # Who holds a content alone, and was never told anything, needs no answer: that is what register publishes at once.
    never = before.told == -1 and before.at == NEVER
    rows.put(key, _pack(replace(now, told=now.version, at=NEVER if alone and never else at)))
    if not (alone and never):
        yield Role(oid=now.oid, version=now.version, copy_of=now.copy_of, copies=now.copies, count=now.count)


def _at(origin: Origin) -> int:
    return -1 - origin.offset if origin.topic.endswith(".ticks") else origin.offset


def _offset(at: int) -> int:
    return at if at >= 0 else -1 - at
