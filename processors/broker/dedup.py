"""The dedup stage finds the holders of equal content and the canonical one among them; it drops nothing.

Strategy: the holders of a content are rows in order of rank, so that the canonical one is the first, whatever the order of
arrival; when it leaves, a scan finds the next. A small family (holders of one content) is answered at once; a large one is marked
and answered on ticks, in rounds of CHUNK rows a tick, so that a thousand equal licence files cost a few answers each. Changes
during a round are answered in another round; while a family goes on changing, a tick comes every LULL. The canonical holder is
answered at the end of a round, when all copies are counted.

Laws:
- canonical = the least by (plain objects before members, URL length, URL) (DESIGN, dedup).
- Every `joined` of a content with more than one holder is answered, and answered again on redelivery (law 1).
- Rows name the holders accepted instead of counting them (law 5).
- A redelivered tick emits again the answers of earlier ticks to marked families whose delivery is not certain.

Delivery: at least once; an answer names the version that it is about.

Rows: `h|content|rank` (holder and its last answer), `y|content` (due, cursor), `d|due|content` (derived), `t` (time),
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
"""Maximum number of answers per tick for one family."""
NEVER = -(1 << 62)
"""Value of `Held.at` for a holder that was never answered."""
LULL = 1_000
"""Delay in ms before a large family is answered, so that further holders can join."""


class HolderRow(msgspec.Struct, frozen=True, array_like=True):
    """Row of a holder with its last answer; `told` is -1 if its present version was never answered."""

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
    """Row of a large family that waits for its answers: due time, and the row to continue after."""

    due: int
    after: bytes = b""
    done: int = -1
    """Offset of the tick that completed the answers; the mark is deleted once that offset is committed."""
    seen: int = 0
    """Copies answered so far in this round."""
    again: bool = False
    """Whether the family changed since the round began."""


_pack = msgspec.msgpack.encode
_held = msgspec.msgpack.Decoder(HolderRow).decode
_mark = msgspec.msgpack.Decoder(Mark).decode


def dedup(rows: Rows, record: Holder | Tick, origin: Origin) -> Iterator[Role]:
    """Return the answers for one holder that joined or left, or for a tick."""
    if isinstance(record, Tick):
        yield from _tick(rows, record, origin)
        return
    family = _family(record.content)
    key = family + _rank(record)
    value = rows.get(key)
    known = _held(value) if value is not None else HolderRow(record.oid, record.url, record.version)
    if record.version >= known.version and record.joined:
        # told = -1: a redelivered `joined` is answered again, since the first answer may be lost.
        rows.put(key, _pack(replace(known, version=record.version, told=-1)))
    elif record.version >= known.version:
        rows.delete(key)
    holders = list(rows.scan(family, limit=SMALL + 1))
    marked = rows.get(b"y|" + record.content.encode())
    if len(holders) > SMALL or marked is not None:
        _postpone(rows, record.content.encode(), _mark(marked) if marked is not None else None)
    if len(holders) <= SMALL and not _needs_no_answer(holders):
        yield from _settle(rows, [(key, _held(value)) for key, value in holders], origin)


def is_new(rows: Rows, record: Holder) -> bool:
    """Return whether a holder is none yet, or with an earlier version; for statistics."""
    value = rows.get(_family(record.content) + _rank(record))
    return value is None or _held(value).version < record.version


def deadline(rows: Rows) -> int | None:
    """Return the due time of the next large family in ms since the epoch, or None."""
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
        # Written first: after a crash later writes may be kept while their outputs are lost.
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
        # A completed family stays marked: a later tick checks whether these answers were committed.
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
    # In the middle of a round the rest of it continues; the rows already passed are answered by another round.
    _put_mark(rows, content, replace(mark, due=due, again=True) if mark.after else Mark(due))


def _put_mark(rows: Rows, content: bytes, mark: Mark) -> None:
    rows.put(b"y|" + content, _pack(mark))
    rows.put(_due(mark.due, content), b"")


def _due(due: int, content: bytes) -> bytes:
    return b"d|%013d|" % due + content


def _needs_no_answer(holders: list[tuple[bytes, bytes]]) -> bool:
    """Return whether the content has one holder that was never answered, as most have: no answer is needed."""
    return len(holders) == 1 and _held(holders[0][1]).at == NEVER


def _family(content: str) -> bytes:
    return b"h|" + content.encode() + b"|"


def _rank(record: Holder) -> bytes:
    url = record.url.encode()
    return bytes([record.member]) + len(url).to_bytes(4, "big") + url + b"\0" + record.oid.encode()


def _settle(rows: Rows, holders: list[tuple[bytes, HolderRow]], origin: Origin) -> Iterator[Role]:
    """Yield the answers for a whole family in order of rank."""
    for number, (key, held) in enumerate(holders):
        yield from _copy(rows, key, held, holders[0][1], origin) if number else _first(rows, holders, len(holders) - 1, origin)


def _chunk(rows: Rows, family: bytes, mark: Mark, origin: Origin) -> Generator[Role, None, Mark]:
    """Yield answers for up to CHUNK copies, and at the end of a round for the canonical holder; return the new mark."""
    first = [(key, _held(value)) for key, value in rows.scan(family, limit=MAX_COPIES + 1)]
    if not first:
        return Mark(mark.due, done=origin.offset)
    # If the rows up to the cursor are gone, the canonical row is past it; it is not a copy of itself.
    behind = list(rows.scan(family, after=max(mark.after, first[0][0]), limit=CHUNK))
    for key, value in behind:
        yield from _copy(rows, key, _held(value), first[0][1], origin)
    seen = mark.seen + len(behind)
    if len(behind) == CHUNK:
        return replace(mark, after=behind[-1][0], seen=seen)
    yield from _first(rows, first, seen, origin)
    return Mark(mark.due, done=-1 if mark.again else origin.offset)


def _first(rows: Rows, first: list[tuple[bytes, HolderRow]], count: int, origin: Origin) -> Iterator[Role]:
    key, canonical = first[0]
    copies = tuple(held.url for _, held in first[1:])
    yield from _answer(rows, key, canonical, replace(canonical, copy_of="", copies=copies, count=count), origin)


def _copy(rows: Rows, key: bytes, held: HolderRow, canonical: HolderRow, origin: Origin) -> Iterator[Role]:
    yield from _answer(rows, key, held, replace(held, copy_of=canonical.oid, copies=(), count=0), origin)


def _answer(rows: Rows, key: bytes, before: HolderRow, now: HolderRow, origin: Origin) -> Iterator[Role]:
    at = _at(origin)
    # Answers at or after the committed offset may be lost and are emitted again. Offsets of the other topic cannot be compared here
    # and need not be: its own redelivery emits its answers again.
    delivered = before.at != at and ((before.at < 0) != (at < 0) or _offset(before.at) < origin.committed)
    if before.told == before.version and before == now and delivered:
        return
    alone = not now.copy_of and not now.count
    # The only holder of a content that was never answered needs no answer: register already published it without a role.
    never = before.told == -1 and before.at == NEVER
    rows.put(key, _pack(replace(now, told=now.version, at=NEVER if alone and never else at)))
    if not (alone and never):
        yield _role(now)


def _role(held: HolderRow) -> Role:
    return Role(oid=held.oid, version=held.version, copy_of=held.copy_of, copies=held.copies, count=held.count)


def _at(origin: Origin) -> int:
    return -1 - origin.offset if origin.topic.endswith(".ticks") else origin.offset


def _offset(at: int) -> int:
    return at if at >= 0 else -1 - at
