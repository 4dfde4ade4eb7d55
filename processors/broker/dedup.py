"""dedup: who holds the same content, and which of them is canonical. It drops nothing; it only answers.

Strategy: the holders of a content are rows in order of rank, so that the canonical one is the first, whatever the order of
arrival; when it goes, the next is found by a scan. A small family is answered at once; a large one is marked, and answered on
ticks in rounds of CHUNK rows a tick, so that a thousand equal licence files cost a few answers each. What changes during a round
is told in another one; while a family goes on changing, a tick comes every LULL. The canonical holder is told at the end of a
round, when all are counted.

Laws:
- canonical = the least by (plain objects before members, URL length, URL) (DESIGN, dedup).
- Every `joined` of a content with more than one holder is answered, and answered again on redelivery (law 1).
- Rows say who was accepted, never just that something was: no counters (law 5).
- A tick that is redelivered gives again what ticks told the families that are marked, and may not have got out.

Delivery: at least once; an answer names the version that it is about.

Rows: `h|content|rank` (holder, and what it was told last), `y|content` (due, cursor), `d|due|content` (derived), `t` (time),
`k` (last tick).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import takewhile

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
    seen: int = 0
    """Holders behind the canonical one that this round has come to."""
    again: bool = False
    """It has changed since the round began."""


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
    marked = rows.get(b"y|" + record.content.encode())
    if len(holders) > SMALL or marked is not None:
        _postpone(rows, record.content.encode(), _mark(marked) if marked is not None else None)
    if len(holders) <= SMALL and not _untold(holders):
        yield from _settle(rows, [(key, _held(value)) for key, value in holders], origin)


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
    if origin.offset <= int(rows.get(b"k") or -1):
        yield from _again(rows, origin)
    else:
        # First of all: what is written after it may be kept, and what is given may be lost.
        rows.put(b"k", str(origin.offset).encode())
    for key, _ in list(takewhile(lambda row: int(row[0][2:15]) <= now, rows.scan(b"d|"))):
        content = key[16:]
        value = rows.get(b"y|" + content)
        mark = _mark(value) if value is not None else Mark(now)
        rows.delete(key)
        if 0 <= mark.done < origin.committed:
            rows.delete(b"y|" + content)
            continue
        if mark.done < 0:
            mark = yield from _chunk(rows, b"h|" + content + b"|", mark, origin)
        # Answered whole: looked at once more by a later tick, which knows whether these answers got out.
        _put_mark(rows, content, replace(mark, due=now))


def _again(rows: Rows, origin: Origin) -> Iterator[Role]:
    for key, _ in list(rows.scan(b"y|")):
        for row, value in list(rows.scan(b"h|" + key[2:] + b"|")):
            held = _held(value)
            if held.told == held.version and NEVER < held.at < 0 and _offset(held.at) >= origin.committed:
                rows.put(row, value)
                yield _role(held)


def _postpone(rows: Rows, content: bytes, mark: Mark | None) -> None:
    time = int(rows.get(b"t") or 0)
    if mark is None:
        _put_mark(rows, content, Mark(time + LULL))
        return
    due = mark.due if mark.due > time else time + LULL
    rows.delete(_due(mark.due, content))
    # In the middle of a round its rest goes on, and what lies behind is told by another one.
    _put_mark(rows, content, replace(mark, due=due, again=True) if mark.after else Mark(due))


def _put_mark(rows: Rows, content: bytes, mark: Mark) -> None:
    rows.put(b"y|" + content, _pack(mark))
    rows.put(_due(mark.due, content), b"")


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


def _settle(rows: Rows, holders: list[tuple[bytes, Held]], origin: Origin) -> Iterator[Role]:
    """Answers for a whole family, given in order of rank."""
    for number, (key, held) in enumerate(holders):
        yield from _copy(rows, key, held, holders[0][1], origin) if number else _first(rows, holders, len(holders) - 1, origin)


def _chunk(rows: Rows, family: bytes, mark: Mark, origin: Origin) -> Generator[Role, None, Mark]:
    """Answers for at most CHUNK holders, and at the end of the round for the canonical one; returns the mark as it is then."""
    first = [(key, _held(value)) for key, value in rows.scan(family, limit=MAX_COPIES + 1)]
    if not first:
        return Mark(mark.due, done=origin.offset)
    # What the canonical holder has overtaken is no row behind it.
    behind = list(rows.scan(family, after=max(mark.after, first[0][0]), limit=CHUNK))
    for key, value in behind:
        yield from _copy(rows, key, _held(value), first[0][1], origin)
    seen = mark.seen + len(behind)
    if len(behind) == CHUNK:
        return replace(mark, after=behind[-1][0], seen=seen)
    yield from _first(rows, first, seen, origin)
    return Mark(mark.due, done=-1 if mark.again else origin.offset)


def _first(rows: Rows, first: list[tuple[bytes, Held]], count: int, origin: Origin) -> Iterator[Role]:
    key, canonical = first[0]
    copies = tuple(held.url for _, held in first[1:])
    yield from _tell(rows, key, canonical, replace(canonical, copy_of="", copies=copies, count=count), origin)


def _copy(rows: Rows, key: bytes, held: Held, canonical: Held, origin: Origin) -> Iterator[Role]:
    yield from _tell(rows, key, held, replace(held, copy_of=canonical.oid, copies=(), count=0), origin)


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
        yield _role(now)


def _role(held: Held) -> Role:
    return Role(oid=held.oid, version=held.version, copy_of=held.copy_of, copies=held.copies, count=held.count)


def _at(origin: Origin) -> int:
    return -1 - origin.offset if origin.topic.endswith(".ticks") else origin.offset


def _offset(at: int) -> int:
    return at if at >= 0 else -1 - at
