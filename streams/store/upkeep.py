"""Maintenance of a log: trimming, compaction, search, statistics.

All work is done in short transactions, so that other writers do not wait long; after each the log is consistent, even if the next
never happens.

Laws:
- Trimming deletes the beginning of a partition: records older than a time, below an offset that its readers have passed.
- Compaction keeps the latest record of each key (like Kafka's log cleaner: a map of bounded size over the new records, then one
  pass over the whole partition). Tombstones are deleted once they are older than the retention, after all records that they hide.
- A reader whose offset is below a partition's horizon may have missed removals, and must start over (law 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from schemas.ports import Logged
from streams.store.former import is_former
from streams.store.schema import FILE, PAGE, in_log, log_table
from streams.store.state import State
from streams.store.transaction import Transaction

CHUNK = 5_000
KEYS = 200_000
"""Maximum keys in memory per compaction pass: some 40 MB with keys of 64 bytes."""

SCAN = "SELECT offset, time, key, value IS NULL FROM {log} WHERE offset>=? AND offset<? ORDER BY offset LIMIT ?"
TIMES = "SELECT offset, time FROM {log} WHERE offset<? ORDER BY offset LIMIT ?"
DELETE = "DELETE FROM {log} WHERE offset=?"
HORIZON = "UPDATE ends SET horizon=max(horizon, ?) WHERE slot=?"
CLEANED = "UPDATE ends SET cleaned=? WHERE slot=?"
FIND = "SELECT offset, time, key, {value} WHERE offset>=? ORDER BY offset LIMIT 200"
SIZES = """SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) WHERE aggregate=TRUE GROUP BY tbl_name"""
"""Bytes of each table with its indexes."""
SHARED = ("contents", "shares", "dictionaries")
COUNT = "SELECT count(*), coalesce(sum(length(key) + coalesce(length(value), 0)), 0) FROM {log}"


class TopicStats(NamedTuple):
    """Content of a topic: number of records, and bytes of their keys and values as stored; shared contents are not counted."""

    records: int
    bytes: int


class Stats(NamedTuple):
    """Content of a store: the size of its files in bytes, and its topics by name."""

    file_bytes: int
    topics: Mapping[str, TopicStats]


class Part(NamedTuple):
    """Bytes of a part of a store: those of a topic, of the rows of a stage, of the shared `summaries`, `free`, or `other`."""

    kind: str
    name: str
    bytes: int


def trim(state: State, topic: str, before_ms: int, below: Mapping[int, int]) -> int:
    """Delete the records at the beginning of each partition that were appended before a time and are below an offset.

    Partitions that `below` does not name keep everything. Returns the number of deleted records.
    """
    dropped = 0
    state.refresh()
    for partition, at in enumerate(state.slots(topic)):
        while True:
            found = state.fetch(in_log(TIMES, at), below.get(partition, 0), CHUNK)
            old = [offset for offset, _ in takewhile(lambda record: record[1] < before_ms, found)]
            _drop(state, at, old, old[-1] + 1 if old else 0)
            dropped += len(old)
            if len(old) < CHUNK:
                break
    return dropped


def compact(state: State, topic: str, tombstones_before_ms: int, keys: int = KEYS, below: Mapping[int, int] | None = None) -> int:
    """Keep the latest record of each key, and no tombstone appended before the time. Returns the number of deleted records.

    below: by partition, the offset that the readers have passed, up to which to compact; partitions that are not named keep
    everything. None: compact everything.
    """
    state.refresh()
    ends = {p: state.end(at) for p, at in enumerate(state.slots(topic))}
    bounds = ends if below is None else {p: min(end, below[p]) for p, end in ends.items() if p in below}
    return sum(_compact(state, state.slots(topic)[p], end, tombstones_before_ms, keys) for p, end in bounds.items())


def _compact(state: State, at: int, end: int, before_ms: int, keys: int) -> int:
    dropped = 0
    cleaned = next(iter(state.fetch("SELECT cleaned FROM ends WHERE slot=?", at)), (0,))[0]
    while True:
        latest, cleaned = _latest(state, at, range(cleaned, end), keys)
        dropped += _sweep(state, at, cleaned, latest, before_ms)
        with Transaction(state):
            state.fetch(CLEANED, cleaned, at)
        if cleaned >= end:
            return dropped


def _latest(state: State, at: int, new: range, keys: int) -> tuple[dict[bytes, int], int]:
    """Return the last offset of each key among the new records, up to `keys` keys, and the offset up to which they were read."""
    latest: dict[bytes, int] = {}
    start = new.start
    while len(latest) < keys:
        found = state.fetch(in_log(SCAN, at), start, new.stop, CHUNK)
        latest.update((key, offset) for offset, _, key, _ in found)
        if len(found) < CHUNK:
            return latest, new.stop
        start = found[-1][0] + 1
    return latest, start


def _sweep(state: State, at: int, end: int, latest: Mapping[bytes, int], before_ms: int) -> int:
    """Delete the records below `end` that are superseded by `latest`, and old tombstones; return their number."""
    dropped = start = 0
    while True:
        found = state.fetch(in_log(SCAN, at), start, end, CHUNK)
        hidden = [offset for offset, _, key, _ in found if latest.get(key, offset) > offset]
        # Only the last record of a key can remain here: what a tombstone hides was deleted with this chunk or an earlier one.
        tombs = [offset for offset, time, key, null in found if null and time < before_ms and latest.get(key, offset) <= offset]
        _drop(state, at, [*hidden, *tombs], tombs[-1] + 1 if tombs else 0)
        dropped += len(hidden) + len(tombs)
        if len(found) < CHUNK:
            return dropped
        start = found[-1][0] + 1


def _drop(state: State, at: int, offsets: list[int], horizon: int) -> None:
    """Delete records of a partition; a reader below `horizon` has missed something."""
    if not offsets:
        return
    with Transaction(state):
        state.cursor.executemany(in_log(DELETE, at), [(offset,) for offset in sorted(offsets)])
        state.fetch(HORIZON, horizon, at)


def drop(state: State, topic: str, offsets: Mapping[int, Sequence[int]]) -> int:
    """Delete records, by partition; a reader whose offset is below the last has missed something. Returns their number."""
    state.refresh()
    slots = state.slots(topic)
    for partition, each in offsets.items():
        for start in range(0, len(each), CHUNK):
            chunk = list(each[start : start + CHUNK])
            _drop(state, slots[partition], chunk, max(chunk) + 1)
    return sum(map(len, offsets.values()))


def horizons(state: State, topic: str) -> list[int]:
    """Return, by partition, the offset below which removals, or records at all, may be missing."""
    state.refresh()
    slots = state.slots(topic)
    known = dict(state.fetch("SELECT slot, horizon FROM ends WHERE slot>=? AND slot<?", slots.start, slots.stop))
    return [known.get(at, 0) for at in slots]


def find(state: State, topic: str, text: bytes) -> Iterator[Logged]:
    """Yield the records with that key, or whose value contains those bytes; by partition, then offset. Scans the topic."""
    state.refresh()
    for partition, at in enumerate(state.slots(topic)):
        start = 0
        while found := state.records(FIND, at, start):
            for offset, time, key, value in found:
                if key == text or text in (value or b""):
                    yield Logged(topic, partition, offset, time, key, value)
            start = found[-1][0] + 1


def shrink(state: State, pages: int) -> int:
    """Give up to that many free pages at the end of the file back to the file system; return how many remain free.

    Records at the end move to free places before. A file of an older version uses its free pages again, until it is written anew.
    """
    free = state.fetch("PRAGMA freelist_count")[0][0]
    if not free or is_former(state):
        return 0
    with Transaction(state):
        state.fetch(f"PRAGMA incremental_vacuum({pages:d})")
    left = int(state.fetch("PRAGMA freelist_count")[0][0])
    return left if left < free else 0


def parts(state: State) -> list[Part]:
    """Return what takes the bytes of the file, the largest first. Reads the whole file."""
    state.refresh()
    spaces = {f"rows_{number}": name for number, name in state.fetch("SELECT id, name FROM spaces")}
    topics = {log_table(at): topic for topic in state.topics() for at in state.slots(topic)}
    sizes: Counter[tuple[str, str]] = Counter()
    for table, size in state.fetch(SIZES):
        if table in topics:
            sizes["topic", topics[table]] += size
        elif table in spaces:
            sizes["rows", spaces[table]] += size
        else:
            sizes["summaries" if table in SHARED else "other", ""] += size
    sizes["free", ""] = state.fetch("PRAGMA freelist_count")[0][0] * PAGE
    return [Part(kind, name, size) for (kind, name), size in sizes.most_common() if size]


def stats(state: State) -> Stats:
    """Return records and bytes by topic (a whole scan), and the size of the files."""
    state.refresh()
    topics: dict[str, TopicStats] = {}
    for topic in state.topics():
        counts = [state.fetch(in_log(COUNT, at))[0] for at in state.slots(topic)]
        topics[topic] = TopicStats(sum(records for records, _ in counts), sum(size for _, size in counts))
    files = [state.path.with_name(FILE + suffix) for suffix in ("", "-wal", "-shm")]
    return Stats(sum(f.stat().st_size for f in files if f.exists()), topics)
