"""Upkeep that keeps a data folder small: trimming, compaction, old bodies; after a run of `gather`, and now and then in a service.

Laws:
- Nothing is trimmed or compacted that a stage has not read, and nothing is trimmed that is younger than the retention. Annotations
  stay. Rejections that have ended go; an object that is not fetched again keeps its rejection.
- Compacted topics keep the latest record of each key, and removals for the removal retention (law 2). Compaction reads the whole
  topic, so it waits until the topic has grown by half since the last check: what a first run wrote is nearly all new. The same
  holds for the check of rejections.
- Upkeep works in steps between turns, on their thread: one partition compacted, one topic trimmed. What that frees in the store is
  given back to the file system.
- A body goes once it is older than the retention and its records are gone or read: the record that names a body is never older
  than the body, and in object storage at most two days younger (`streams/operations/bodies.py`). None goes while a backup copies
  them: the next upkeep removes what is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import cast

from schemas.codec import decode
from schemas.records import FetchedObject, Record
from streams.clock import now_ms
from streams.embedded import runs
from streams.embedded.runner import Embedded
from streams.logs import StoreLog
from streams.operations.bodies import SPARE
from streams.operations.dead_letters import resolved_offsets
from streams.store import Offsets, Store
from streams.store.data_folder import SPACE
from streams.store.locks import bodies_trimmed
from streams.topology.flow import REJECTED, Edge, Stage, Topic, Topology

REMOVALS = 90 * 86_400_000
"""ms that a removal is kept (law 2)."""
MARGIN = 3_600_000
"""ms by which a body in the folder outlives the retention: it is written before its record. In object storage: SPARE."""
SHRUNK, SPARED = 1_024, 512
"""Free pages of the store that a step gives back, and that remain, to be used again (4 MiB)."""
MODERN = "modern"
"""Name of the note that the values of an older version are compressed."""
GROWN = 5_000
"""Records that a compacted topic must have gained before it is compacted again."""
EVERY = 3_600.0
"""Seconds between two upkeeps of a service."""
LOOK = 1.0
"""Seconds between two checks whether an interrupted run has finished."""
READ = 100


def upkeep(runner: Embedded, retention: float) -> None:
    """Trim and compact everything that may be; `retention` in seconds. Raises DiskFull, StoreError."""
    for _ in upkeep_steps(runner, retention):
        pass


def upkeep_steps(runner: Embedded, retention: float) -> Iterator[None]:
    """Do `upkeep` one step at a time."""
    store, before = runner.store, now_ms() - int(retention * 1000)
    for topic in runner.topology.topics:
        if topic.keep == "compact":
            yield from _compact(store, runner.topology, topic)
        elif topic.keep == "delete":
            store.trim(topic.name, before, _read_up_to(store, runner.topology, topic))
            yield
    yield from _forgive(store, before)
    yield from _modernize(store)
    while store.shrink(SHRUNK) > SPARED:
        yield
    with bodies_trimmed(runner.folder) as alone:
        if alone:
            runner.blobs.trim(before - (SPARE if runner.blobs.remote else MARGIN), _unread_bodies(store))


def _read_up_to(store: Store, topology: Topology, topic: Topic[Record]) -> dict[int, int]:
    """Return, by partition, the offset that all readers have passed; sinks do not count: they need the latest records only."""
    inputs = {s.name: s.inputs for s in topology.stages if not (isinstance(s, Edge) and s.kind == "sink")}
    readers = [name for name, topics in inputs.items() if topic.name in {t.name for t in topics}]
    readers += [s.name for s in topology.stages if isinstance(s, Stage) and s.ticks and s.ticks.name == topic.name]
    ends = dict(enumerate(store.ends(topic.name)))
    for reader in readers:
        done = store.offsets(reader)
        ends = {p: min(end, done.get((topic.name, p), Offsets()).next) for p, end in ends.items()}
    return ends


def _compact(store: Store, topology: Topology, topic: Topic[Record]) -> Iterator[None]:
    below = _read_up_to(store, topology, topic)
    noted = _noted(store, topic.name)
    if noted is not None:
        if not _grown(noted, sum(below.values())):
            return
        for partition, offset in below.items():
            store.compact(topic.name, now_ms() - REMOVALS, below={partition: offset})
            yield
    _note(store, topic.name, sum(below.values()))


def _modernize(store: Store) -> Iterator[None]:
    """Make the store of an older version smaller, once; where that could not be, again when trims have freed half of it."""
    if _noted(store, MODERN) is not None:
        store.renew()
        return
    done = 0
    for _ in store.modernize():
        done += 1
        yield
    if done:
        _note(store, MODERN, done)


def _forgive(store: Store, before: int) -> Iterator[None]:
    """Drop rejections that were appended before a time and have ended."""
    end = sum(store.ends(REJECTED.name))
    if not _grown(_noted(store, REJECTED.name) or 0, end):
        return
    gone = yield from resolved_offsets(StoreLog(store), before)
    store.drop(REJECTED.name, gone)
    _note(store, REJECTED.name, end)


def _grown(noted: int, end: int) -> bool:
    """Return whether a topic has grown enough to be read as a whole again."""
    return end - noted >= max(GROWN, noted // 2)


def _noted(store: Store, topic: str) -> int | None:
    """Return the number of records that a topic had at the last check."""
    rows = store.rows(SPACE, 0)
    noted = rows.get(b"c|" + topic.encode()) if rows is not None else None
    return int(noted) if noted is not None else None


def _note(store: Store, topic: str, end: int) -> None:
    with store.transaction() as tx:
        tx.rows(SPACE, 0).put(b"c|" + topic.encode(), str(end).encode())


def _unread_bodies(store: Store) -> frozenset[str]:
    """Return the digests of bodies named by objects that essence has not finished."""
    found = set()
    for partition in range(store.topics()["objects"]):
        start = store.offsets("essence").get(("objects", partition), Offsets()).next
        while batch := store.read("objects", partition, start, READ):
            found |= {cast("FetchedObject", decode(logged.value or b"")).blob for logged in batch}
            start = batch[-1].offset + 1
    return frozenset(found)


class Service:
    """Upkeep within a running service: `seen` is called after every turn. It also finishes a run that was interrupted before."""

    def __init__(self, runner: Embedded, retention: float) -> None:
        self._runner = runner
        self._retention = retention
        self._next = time.monotonic() + EVERY
        self._look = 0.0
        last = runs.last(runner.store)
        self._open = last if last is not None and not last.finished else None

    def seen(self) -> None:
        """Start upkeep when it is due, after a turn."""
        if self._open is not None and time.monotonic() >= self._look:
            self._look = time.monotonic() + LOOK
            if self._runner.finished():
                runs.finish(self._runner, self._open)
                self._open = None
        # Upkeep that takes longer than this continues: if it began anew each time, it would never finish.
        if time.monotonic() >= self._next and self._runner.chores is None:
            self._runner.chores = upkeep_steps(self._runner, self._retention)
            self._next = time.monotonic() + EVERY
