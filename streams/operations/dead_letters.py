"""Unresolved dead letters (the latest of each origin, unless a later success has ended it), and their retry.

Laws:
- An origin is a URL with its member path; for a value that was not a record, its topic, partition and offset.
- A failed fetch ends when its URL is fetched, or known to be gone, under a higher version.
- A member's rejection is unresolved while the catalogue holds the result of that attempt: a partial attempt that did not reach
  the member ends nothing. If the catalogue has no such member (a folder's listing has no summary), the last complete attempt
  decides.
- A retried dead letter is resolved: a dead letter of the same origin with the reason `RETRIED` follows it. It is written after the
  original bytes, so that a crash between the two repeats a record and loses none; if the retry fails, a new dead letter is written.
  That may be written first: so `RETRIED` states the offset in its partition below which dead letters are ended.
- An unresolved dead letter is never `resolved_offsets`; deleting any subset of the spent ones does not change which are unresolved.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from processors.frontier.rows import Table
from processors.gatherer import catalog
from processors.identity import frontier_key, url_digest
from schemas.codec import DecodeError, decode, encode
from schemas.ports import Logged
from schemas.records import FetchedObject, Rejected
from streams.logs import LogAccess
from streams.store.murmur2 import partition as partition_of

READ = 500
Key = tuple[str, str, str]
"""An origin."""
RETRIED = "tried again"
"""Reason of a dead letter that ends another."""


class _Question(NamedTuple):
    """The test whether a rejection has ended: it reads rows of a stage in the partition of a key."""

    stage: str
    topic: str
    key: bytes
    ended: Callable[[Any], bool]


def standing(log: LogAccess, newest: int | None = None) -> list[Rejected]:
    """Return the unresolved rejections, by URL and path.

    `newest`: of about that number of the latest records only, without the bytes that they hold; None: of all.
    """
    latest: dict[Key, tuple[Logged, Rejected]] = {}
    for logged, one in _all(log) if newest is None else _newest(log, newest):
        known = latest.get(origin := _origin(one))
        at = logged._replace(key=b"", value=None, record=None)
        if known is None or _supersedes((at, one), known):
            latest[origin] = at, one
    stand = _unresolved(log, [one for _, one in latest.values()])
    return sorted(stand, key=lambda one: (one.url, one.path, one.topic, one.partition, one.offset))


def _unresolved(log: LogAccess, latest: list[Rejected]) -> list[Rejected]:
    """Return the unresolved ones of `latest`, which holds the latest rejection of each origin."""
    left = [one for one in latest if one.reason != RETRIED]
    return [one for one, ended in zip(left, _ended(log, left), strict=True) if not ended]


def _origin(one: Rejected) -> Key:
    stage = one.stage if one.stage == "fetch" else "essence"
    return (stage, one.url, one.path) if one.url else (one.topic, str(one.partition), str(one.offset))


def _supersedes(one: tuple[Logged, Rejected], known: tuple[Logged, Rejected]) -> bool:
    """Return whether a dead letter replaces another one of its origin that was read before it."""
    (at, letter), (before, earlier) = one, known
    if letter.reason == RETRIED and letter.detail and before.partition == at.partition and before.offset >= int(letter.detail):
        return False
    return letter.version >= earlier.version


def _all(log: LogAccess, starts: Sequence[int] = ()) -> Iterator[tuple[Logged, Rejected]]:
    """Yield every dead letter with its log entry; those of one origin in the order in which they were written.

    `starts`: the offsets to begin at, by partition; none: the beginning.
    """
    for partition in range(log.topics().get("rejected", 0)):
        for logged in _records(log, "rejected", partition, starts[partition] if starts else 0):
            try:
                record = decode(logged.value or b"")
            except DecodeError:
                continue
            if isinstance(record, Rejected):
                yield logged, record


def _newest(log: LogAccess, number: int) -> Iterator[tuple[Logged, Rejected]]:
    """Yield about that number of the latest dead letters, of each partition the same, like `_all`, but without their bytes."""
    partitions = log.topics().get("rejected", 0)
    share = -(-number // partitions) if partitions else 0
    starts = [max(0, end - share) for end in log.ends("rejected")] if partitions else []
    for at, one in _all(log, starts):
        yield at._replace(key=b"", value=None), _bare(one)


def _bare(one: Rejected) -> Rejected:
    return msgspec.structs.replace(one, key=None, value=None, detail=one.detail if one.reason == RETRIED else "")


def _records(log: LogAccess, topic: str, partition: int, start: int = 0) -> Iterator[Logged]:
    while batch := log.read(topic, partition, start, READ):
        yield from batch
        start = batch[-1].offset + 1


# ---- whether it has ended --------------------------------------------------------------------------------------------


class _Rows:
    """Read-only rows; `asked` collects the keys that were read."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        self._rows = rows
        self.asked: set[bytes] = set()

    def get(self, key: bytes) -> bytes | None:
        self.asked.add(key)
        return self._rows.get(key)


def _ended(log: LogAccess, rejections: list[Rejected]) -> list[bool]:
    """Return for each rejection whether it has ended.

    The keys of all rows needed are collected first and read at once: on Kafka that reads a changelog.
    """
    questions = [_question(one) for one in rejections]
    counts = log.topics()
    places = [(q.stage, partition_of(q.key, counts[q.topic])) if q and q.topic in counts else None for q in questions]
    wanted: dict[tuple[str, int], set[bytes]] = defaultdict(set)
    for question, place in zip(questions, places, strict=True):
        if question and place:
            probe = _Rows({})
            question.ended(probe)
            wanted[place] |= probe.asked
    known = {place: _Rows(log.known(*place, keys)) for place, keys in wanted.items()}
    return [bool(question and place and question.ended(known[place])) for question, place in zip(questions, places, strict=True)]


def _question(one: Rejected) -> _Question | None:
    if not one.url:
        return None
    if one.stage == "fetch":
        host = frontier_key(one.url)

        def fetched(rows: Any) -> bool:
            known = Table(rows).get(host, url_digest(one.url))
            return known is None or (known.state in ("ok", "gone") and known.version > one.version)

        return _Question("frontier", "crawl", host.encode(), fetched)

    def made(rows: Any) -> bool:
        return one.version < (catalog.member_version(rows, one.url, one.path) or catalog.completed_version(rows, one.url))

    return _Question("catalog", "made", one.url.encode(), made)


# ---- what nobody needs any more --------------------------------------------------------------------------------------


class _OriginHistory:
    """The dead letters of one origin: the latest, without the bytes that it may hold, and the log entries of the others."""

    def __init__(self) -> None:
        self.latest: tuple[Logged, Rejected] | None = None
        self.passed: list[Logged] = []

    def take(self, at: Logged, one: Rejected) -> None:
        if self.latest is None:
            self.latest = at, one
            return
        if _supersedes((at, one), self.latest):
            self.latest, at = (at, one), self.latest[0]
        self.passed.append(at)


def resolved_offsets(log: LogAccess, before_ms: int) -> Generator[None, None, dict[int, list[int]]]:
    """Return the offsets, by partition, of resolved dead letters appended before a time; yields between steps of bounded work.

    A dead letter is included if a later one of the same origin has followed it, or if all of its origin are as old and the latest
    has ended.
    """
    lines: dict[Key, _OriginHistory] = defaultdict(_OriginHistory)
    for number, (at, one) in enumerate(_all(log), 1):
        bare = at._replace(key=b"", value=None, record=None)
        lines[_origin(one)].take(bare, _bare(one))
        if number % READ == 0:
            yield
    gone: list[Logged] = []
    asked: list[tuple[Logged, Rejected]] = []
    for line in lines.values():
        old = [at for at in line.passed if at.time < before_ms]
        gone += old
        if line.latest is not None and line.latest[0].time < before_ms and len(old) == len(line.passed):
            asked.append(line.latest)
    stand = {id(one) for one in _unresolved(log, [one for _, one in asked])}
    gone += [at for at, one in asked if id(one) not in stand]
    found: dict[int, list[int]] = defaultdict(list)
    for at in gone:
        found[at.partition].append(at.offset)
    return {partition: sorted(offsets) for partition, offsets in found.items()}


# ---- trying again ----------------------------------------------------------------------------------------------------


def retry(log: LogAccess, one: Rejected) -> bool:
    """Put the original bytes back into their topic, durably; return whether they still exist. See the laws."""
    original = _original(log, one)
    if original is None:
        return False
    now, key = time.time_ns() // 1_000_000, one.url.encode()
    # Before the record is put back: a dead letter from here on is about the retry.
    ends = log.ends("rejected")
    below = ends[partition_of(key, len(ends))]
    # Bytes that no stage could read go back unchanged; an object's record is written in the encoding of the log.
    log.write([original._replace(time=now)], raw=one.value is not None)
    said = msgspec.structs.replace(one, reason=RETRIED, detail=str(below), time=now, key=None, value=None)
    # Written after the record, into the partition that its own key selects: the later of two dead letters of one origin counts.
    log.write([Logged("rejected", -1, -1, now, key, encode(said))])
    return True


def _original(log: LogAccess, one: Rejected) -> Logged | None:
    """Return the rejected record: from the dead letter, or the fetched object while the log retains it; None otherwise."""
    counts = log.topics()
    if one.value is not None and one.topic in counts:
        return Logged(one.topic, one.partition, one.offset, one.time, one.key or b"", one.value)
    if one.stage == "fetch" or not one.url or "objects" not in counts:
        return None
    key = one.url.encode()
    for logged in _records(log, "objects", partition_of(key, counts["objects"])):
        if logged.key == key and logged.value is not None and _fetched_as(logged.value) == one.version:
            return logged
    return None


def _fetched_as(value: bytes) -> int:
    """Return the version of a fetched object; -1 for a confirmation, which has its version and no bytes, and for anything else."""
    try:
        found = cast("FetchedObject", decode(value))
        return found.version if found.outcome != "unchanged" else -1
    except (DecodeError, AttributeError):
        return -1
