"""What keeps a data folder small: trimming, compaction, old bodies; after a run of `gather`, and now and then in a service.

Laws:
- Nothing is trimmed or compacted that a stage has not read, nor trimmed that is younger than the retention. What people wrote by
  hand stays. Of what is rejected goes what stands no more: an object that is not fetched again keeps its rejection.
- Compacted topics keep the latest record of each key, and removals for the removal retention (law 2). Compaction reads a
  topic whole, so it waits until the topic has grown by half since it was first looked at: what a first run wrote is nearly all new.
  So does the look at what is rejected.
- It goes step by step, between turns, on their thread: a partition compacted, a topic trimmed.
- A body goes once it is older than the retention and its records are gone or read: the record that names a body is never older
  than the body.
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
from streams.operations.dead_letters import resolved_offsets
from streams.store import Offsets, Store
from streams.store.data_folder import SPACE
from streams.topology.flow import REJECTED, Edge, Stage, Topic, Topology

REMOVALS = 90 * 86_400_000
"""ms that a removal is kept (law 2)."""
MARGIN = 3_600_000
"""ms by which a body outlives the retention: it is written before its record."""
GROWN = 5_000
"""Records that a compacted topic must have gained at least before it is compacted again."""
EVERY = 3_600.0
"""Seconds between two upkeeps of a service."""
LOOK = 1.0
"""Seconds between two looks whether an interrupted run has come to its end."""
READ = 100


def upkeep(runner: Embedded, retention: float) -> None:
    """Trim and compact what can be; `retention` in seconds. Raises DiskFull, StoreError."""
    for _ in steps(runner, retention):
        pass


def steps(runner: Embedded, retention: float) -> Iterator[None]:
    """As `upkeep`, a step each time that the next is asked for."""
    store, before = runner.store, now_ms() - int(retention * 1000)
    for topic in runner.topology.topics:
        if topic.keep == "compact":
            yield from _compact(store, runner.topology, topic)
        elif topic.keep == "delete":
            store.trim(topic.name, before, _read_up_to(store, runner.topology, topic))
            yield
    yield from _forgive(store, before)
    runner.blobs.trim(before - MARGIN, _unread_bodies(store))


def _read_up_to(store: Store, topology: Topology, topic: Topic[Record]) -> dict[int, int]:
    """By partition, the offset that all readers have passed. A sink asks for the latest of each key only, whenever it comes."""
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


def _forgive(store: Store, before: int) -> Iterator[None]:
    """Drop the rejections appended before a time that stand no more."""
    end = sum(store.ends(REJECTED.name))
    if not _grown(_noted(store, REJECTED.name) or 0, end):
        return
    gone = yield from resolved_offsets(StoreLog(store), before)
    store.drop(REJECTED.name, gone)
    _note(store, REJECTED.name, end)


def _grown(noted: int, end: int) -> bool:
    """Whether a topic has gained enough to be read whole again."""
    return end - noted >= max(GROWN, noted // 2)


def _noted(store: Store, topic: str) -> int | None:
    """How many records a topic had had when it was last looked at."""
    rows = store.rows(SPACE, 0)
    noted = rows.get(b"c|" + topic.encode()) if rows is not None else None
    return int(noted) if noted is not None else None


def _note(store: Store, topic: str, end: int) -> None:
    with store.transaction() as tx:
        tx.rows(SPACE, 0).put(b"c|" + topic.encode(), str(end).encode())


def _unread_bodies(store: Store) -> frozenset[str]:
    """The bodies that objects name which essence has not finished with."""
    found = set()
    for partition in range(store.topics()["objects"]):
        start = store.offsets("essence").get(("objects", partition), Offsets()).next
        while batch := store.read("objects", partition, start, READ):
            found |= {cast("FetchedObject", decode(logged.value or b"")).blob for logged in batch}
            start = batch[-1].offset + 1
    return frozenset(found)


class Service:
    """Upkeep within a runner that goes on: `seen` is called after every turn. It also ends a run that was interrupted before."""

    def __init__(self, runner: Embedded, retention: float) -> None:
        self._runner = runner
        self._retention = retention
        self._next = time.monotonic() + EVERY
        self._look = 0.0
        last = runs.last(runner.store)
        self._open = last if last is not None and not last.finished else None

    def seen(self) -> None:
        """Ignore the end of a turn."""
        if self._open is not None and time.monotonic() >= self._look:
            self._look = time.monotonic() + LOOK
            if self._runner.finished():
                runs.finish(self._runner, self._open)
                self._open = None
        # One that takes longer than this goes on: begun anew each time, it would never come to its end.
        if time.monotonic() >= self._next and self._runner.chores is None:
            self._runner.chores = steps(self._runner, self._retention)
            self._next = time.monotonic() + EVERY
