"""What keeps a log small, and what is asked of it beside reading in order: trimming, compaction, search, statistics.

All of it works in short transactions, so that nobody waits long, and each leaves a log that reads right if the next never comes.

Laws:
- Trimming drops a beginning of a partition: records older than a time, below an offset that its readers have passed.
- Compaction keeps the latest record of each key (after Kafka's log cleaner: a map of bounded size over what is new, then one
  pass over the whole). Tombstones go once they are older than the retention, after all that they hide.
- A reader that stands below a partition's horizon may have missed removals, and must start anew (law 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from schemas.ports import Logged
from streams.store.schema import FILE, in_log
from streams.store.state import State
from streams.store.transaction import Transaction

CHUNK = 5_000
KEYS = 200_000
"""Keys that a pass of compaction holds in memory: some 40 MB with keys of 64 bytes."""

SCAN = "SELECT offset, time, key, value IS NULL FROM {log} WHERE offset>=? AND offset<? ORDER BY offset LIMIT ?"
TIMES = "SELECT offset, time FROM {log} WHERE offset<? ORDER BY offset LIMIT ?"
DELETE = "DELETE FROM {log} WHERE offset=?"
HORIZON = "UPDATE ends SET horizon=max(horizon, ?) WHERE slot=?"
CLEANED = "UPDATE ends SET cleaned=? WHERE slot=?"
FIND = """SELECT offset, time, key, value FROM {log}
    WHERE offset>=? AND (key=? OR instr(value, ?)>0) ORDER BY offset LIMIT 200"""
COUNT = "SELECT count(*), coalesce(sum(length(key) + coalesce(length(value), 0)), 0) FROM {log}"


class TopicStats(NamedTuple):
    """What a topic holds: records, and bytes of their keys and values."""

    records: int
    bytes: int


class Stats(NamedTuple):
    """What a store holds: the size of its files in bytes, and its topics by name."""

    file_bytes: int
    topics: Mapping[str, TopicStats]


def trim(state: State, topic: str, before_ms: int, below: Mapping[int, int]) -> int:
    """Drop the records at the beginning of each partition that were appended before a time and lie below an offset.

    Partitions that `below` does not name keep everything. Gives how many went.
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
    """Keep the latest record of each key, and no tombstone appended before the time. Gives how many records went.

    below: by partition, the offset that the readers have passed, up to which it works; partitions that are not named keep
    everything. None: all there is.
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
    """The offset of the last record of each key among the new ones, for as many as memory allows; and how far that is."""
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
    """Drop from a partition, up to the offset `end`, what the latest records hide, and old tombstones."""
    dropped = start = 0
    while True:
        found = state.fetch(in_log(SCAN, at), start, end, CHUNK)
        hidden = [offset for offset, _, key, _ in found if latest.get(key, offset) > offset]
        # Only the last record of a key can still be here: what a tombstone hides went with this chunk or one before it.
        tombs = [offset for offset, time, key, null in found if null and time < before_ms and latest.get(key, offset) <= offset]
        _drop(state, at, [*hidden, *tombs], tombs[-1] + 1 if tombs else 0)
        dropped += len(hidden) + len(tombs)
        if len(found) < CHUNK:
            return dropped
        start = found[-1][0] + 1


def _drop(state: State, at: int, offsets: list[int], horizon: int) -> None:
    """Drop records of a partition; a reader below `horizon` has missed something."""
    if not offsets:
        return
    with Transaction(state):
        state.cursor.executemany(in_log(DELETE, at), [(offset,) for offset in sorted(offsets)])
        state.fetch(HORIZON, horizon, at)


def drop(state: State, topic: str, offsets: Mapping[int, Sequence[int]]) -> int:
    """Drop some records, by partition; a reader that stands below the last has missed something. Gives how many they were."""
    state.refresh()
    slots = state.slots(topic)
    for partition, each in offsets.items():
        for start in range(0, len(each), CHUNK):
            chunk = list(each[start : start + CHUNK])
            _drop(state, slots[partition], chunk, max(chunk) + 1)
    return sum(map(len, offsets.values()))


def horizons(state: State, topic: str) -> list[int]:
    """The offset of each partition below which removals, or records at all, may be missing."""
    state.refresh()
    slots = state.slots(topic)
    known = dict(state.fetch("SELECT slot, horizon FROM ends WHERE slot>=? AND slot<?", slots.start, slots.stop))
    return [known.get(at, 0) for at in slots]


def find(state: State, topic: str, text: bytes) -> Iterator[Logged]:
    """The records of a topic with that key, or whose value contains those bytes; by partition, then offset. A whole scan."""
    state.refresh()
    for partition, at in enumerate(state.slots(topic)):
        start = 0
        while found := state.fetch(in_log(FIND, at), start, text, text):
            for record in found:
                yield Logged(topic, partition, *record)
            start = found[-1][0] + 1


def stats(state: State) -> Stats:
    """Records and bytes by topic (a whole scan), and the size of the files."""
    state.refresh()
    topics: dict[str, TopicStats] = {}
    for topic in state.topics():
        counts = [state.fetch(in_log(COUNT, at))[0] for at in state.slots(topic)]
        topics[topic] = TopicStats(sum(records for records, _ in counts), sum(size for _, size in counts))
    files = [state.path.with_name(FILE + suffix) for suffix in ("", "-wal", "-shm")]
    return Stats(sum(f.stat().st_size for f in files if f.exists()), topics)
