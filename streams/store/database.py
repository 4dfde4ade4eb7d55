"""The embedded store: log, rows and offsets of one data folder in one SQLite file (DESIGN, "One topology, two runners").

Laws:
- The writes of a transaction are durable when it ends without an exception (WAL, synchronous=FULL), all of them or none, even if
  the process is killed in between.
- One runner per data folder (`runner=True` holds its lock while the store is open): only the runner writes rows, offsets and
  staged records. Other processes may read, and append to topics, at the same time.
- A store may be used by one thread at a time; concurrent threads open one each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from schemas.codec import encode
from schemas.ports import Logged
from schemas.records import Record
from streams.store import former, schema, upkeep
from streams.store.errors import AbsentError, LockedError, StoreError, translated
from streams.store.locks import LockFile
from streams.store.murmur2 import partition as partition_of
from streams.store.rows import TableRows
from streams.store.schema import END, in_log
from streams.store.state import ROWS_CACHE, State, unpacked
from streams.store.transaction import Offsets, Transaction
from streams.store.upkeep import Part, Stats

READ = "SELECT offset, time, key, {value} WHERE offset>=? AND offset<? ORDER BY offset LIMIT ?"
FIRST = "SELECT min(offset) FROM {log}"
SINCE = "SELECT min(offset) FROM {log} WHERE time>=?"
TIMEOUT = 60.0
"""Seconds that a writer waits for other writers."""
TRIES, PAUSE = 20, 0.05
"""Looks at a file of an older version, and seconds between them, until a runner that holds it is known to be of that version."""


def clock_ms() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000


class Store:
    """The store of a data folder; also `schemas.ports.Log`.

    partitions: topics to create if they are missing, with their partition counts. An existing topic keeps its count
        (law 7): see `topics()`.
    readonly: never write; the folder must exist.
    runner: hold the folder's runner lock; deletes the staged records of a killed runner.
    timeout: seconds to wait for other writers. rows_cache: bytes of committed rows to cache per stage, over all its partitions.
    clock: returns ms since the epoch, the time of the records that `append` writes.

    Raises LockedError, NewerError, AbsentError (for a reader), or StoreError for an unusable folder: one line each.
    Raises DiskFull.
    """

    def __init__(
        self,
        folder: Path,
        partitions: Mapping[str, int] | None = None,
        *,
        readonly: bool = False,
        runner: bool = False,
        timeout: float = TIMEOUT,
        rows_cache: int = ROWS_CACHE,
        clock: Callable[[], int] = clock_ms,
    ) -> None:
        self.folder = folder
        self._path = folder / schema.FILE
        self._clock = clock
        with ExitStack() as stack:
            try:
                claim, turn = (None, None) if readonly else self._lock_files(stack, runner)
                connection = self._connect(turn, timeout)
                stack.callback(connection.close)
                if claim is not None:
                    self._complete(connection, claim, runner)
                elif not schema.check(connection, self.folder):
                    raise AbsentError(str(folder))
                self._state = State(connection, self._path, turn, rows_cache)
                self._prepare(partitions or {}, runner)
                if readonly and not self._state.topics():
                    raise AbsentError(str(folder))
            except (apsw.Error, OSError) as error:
                raise translated(error, str(self._path)) from error
            self._resources = stack.pop_all()

    def _lock_files(self, stack: ExitStack, runner: bool) -> tuple[LockFile, LockFile]:
        # First, so that a folder that is refused gets no files of ours.
        schema.check_index(self._path)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            claim, turn = LockFile(self.folder / "runner.lock"), LockFile(self.folder / "writers.lock")
        except OSError as error:
            raise StoreError(f"{error.filename or self.folder}: {error.strerror}") from error
        stack.callback(claim.close)
        stack.callback(turn.close)
        if runner:
            claim.claim()
        return claim, turn

    def _connect(self, turn: LockFile | None, timeout: float) -> apsw.Connection:
        schema.check_files(self._path)
        # A journal next to the file: the first transaction was interrupted. Later transactions are in the WAL.
        if turn is None and (not self._path.is_file() or self._path.with_name(schema.JOURNAL).exists()):
            raise AbsentError(str(self.folder))
        if turn is None:
            return schema.connect_reader(self._path, timeout)
        # One at a time: two processes that switch a new file to WAL mode at once would get SQLITE_BUSY without waiting.
        with turn.held():
            return schema.connect(self._path, readonly=False, timeout=timeout)

    def _complete(self, connection: apsw.Connection, claim: LockFile, runner: bool) -> None:
        """Create the tables that are missing. A file of an older version is changed by who holds the runner's lock.

        A runner of that version could not read what is written then, and would reject it. One of this version changes it itself.
        """
        tries = 0
        while not runner and schema.is_older(connection, self.folder):
            try:
                claim.claim()
                break
            except LockedError as error:
                tries += 1
                if tries == TRIES:
                    raise LockedError(f"{error}, of an older version, which cannot read what this one writes") from None
                time.sleep(PAUSE)
        schema.complete(connection, self.folder)
        if not runner:
            claim.release()

    def _prepare(self, partitions: Mapping[str, int], runner: bool) -> None:
        self._state.refresh()
        there = self._state.topics()
        # The settings decide for a new folder only: a stage reads and writes the same partition of all its topics.
        counts = {*there.values()}
        missing = {name: min(counts) if len(counts) == 1 else count for name, count in partitions.items() if name not in there}
        if missing:
            self.create(missing)
        if runner and self._state.cursor.execute("SELECT 1 FROM staged LIMIT 1").get:
            with self.transaction():
                self._state.cursor.execute("DELETE FROM staged")

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics with their partition counts; existing topics stay unchanged."""
        with self.transaction():
            self._state.create(dict(topics))
        self._state.refresh()

    def forget(self, topics: Sequence[str], stages: Sequence[str]) -> int:
        """Delete topics, and the rows and offsets of stages, as one step; return the number of records. Runners only.

        Topics and stages that are not there are passed over. The file keeps its size: its pages are used again.
        """
        with self.transaction():
            dropped = self._state.forget(topics, stages)
        self._state.refresh()
        return dropped

    def transaction(self) -> Transaction:
        """Return a transaction for one batch. Its `with` statement raises RuntimeError if this store has an open one."""
        return Transaction(self._state)

    def topics(self) -> Mapping[str, int]:
        """Return the partition count by topic name."""
        self._state.refresh()
        return self._state.topics()

    def ends(self, topic: str) -> Sequence[int]:
        """Return the next offset of each partition. Raises KeyError for an unknown topic."""
        self._state.refresh()
        return [self._state.end(at) for at in self._state.slots(topic)]

    def starts(self, topic: str) -> Sequence[int]:
        """Return the first remaining offset of each partition; the end of an empty one. Raises KeyError."""
        self._state.refresh()
        return [self._start(at) for at in self._state.slots(topic)]

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """Return, by partition, the first offset with a record of that time or later; the end if there is none. Scans the topic."""
        self._state.refresh()
        found = [(at, self._state.fetch(in_log(SINCE, at), time_ms)[0][0]) for at in self._state.slots(topic)]
        return [self._state.end(at) if first is None else int(first) for at, first in found]

    def _start(self, at: int) -> int:
        ((first,),) = self._state.fetch(in_log(FIRST, at))
        return self._state.end(at) if first is None else int(first)

    def read(self, topic: str, partition: int, offset: int, limit: int, until: int | None = None) -> Sequence[Logged]:
        """Return at most `limit` committed records from `offset` to below `until`, in order. Raises KeyError."""
        if topic not in self._state.topics():
            self._state.refresh()
        at = self._state.slot(topic, partition)
        found = self._state.records(READ, at, offset, END if until is None else until, limit)
        return [Logged(topic, partition, *record) for record in found]

    def append(self, topic: str, records: Iterable[tuple[bytes, Record | None]], partition: int | None = None) -> None:
        """Append records durably in a transaction of their own, each to the partition of its key (murmur2), or all to `partition`.

        Raises KeyError for an unknown topic, DiskFull, StoreError.
        """
        encoded = [(key, None if record is None else encode(record)) for key, record in records]
        now = self._clock()
        with self.transaction() as tx:
            count = len(self._state.slots(topic))
            for key, value in encoded:
                tx.append(topic, partition_of(key, count) if partition is None else partition, key, value, now)

    def rows(self, name: str, partition: int) -> TableRows | None:
        """Return the committed rows of a stage in a partition, read-only; None if it never wrote any."""
        table = self._state.table(name, partition)
        return None if table is None else TableRows(self._state.connection, self._state.values, name, table, 0)

    def offsets(self, group: str) -> dict[tuple[str, int], Offsets]:
        """Return the committed offsets of a group, by topic and partition."""
        self._state.refresh()
        found = self._state.fetch("SELECT slot, next, done FROM offsets WHERE name=?", group)
        return {self._state.name(at): Offsets(following, unpacked(done)) for at, following, done in found}

    def horizons(self, topic: str) -> Sequence[int]:
        """Return, by partition, the offset below which a reader may have missed removals and must start over. Raises KeyError."""
        return upkeep.horizons(self._state, topic)

    def find(self, topic: str, text: bytes) -> Iterator[Logged]:
        """Yield the records of a topic with that key, or whose value contains those bytes. Scans the topic. Raises KeyError."""
        return upkeep.find(self._state, topic, text)

    def trim(self, topic: str, before_ms: int, below: Mapping[int, int]) -> int:
        """Delete the oldest records: older than a time and, by partition, below an offset. Returns how many. Raises KeyError."""
        return upkeep.trim(self._state, topic, before_ms, below)

    def compact(
        self, topic: str, tombstones_before_ms: int, keys: int = upkeep.KEYS, below: Mapping[int, int] | None = None
    ) -> int:
        """Keep the latest record of each key; delete tombstones appended before a time. Returns the number of deleted records.

        below: by partition, the offset below which to compact; None: everything. Raises KeyError.
        """
        return upkeep.compact(self._state, topic, tombstones_before_ms, keys, below)

    def drop(self, topic: str, offsets: Mapping[int, Sequence[int]]) -> int:
        """Delete the records at the given offsets, by partition. Returns their number. Raises KeyError."""
        return upkeep.drop(self._state, topic, offsets)

    def modernize(self) -> Iterator[None]:
        """Compress what version 1 has stored as it was, and give back the space, a step at a time. Runners only.

        No step for a file of this version. A file that is too large to be written anew is the same again afterwards.
        """
        if former.is_former(self._state):
            yield from former.repack(self._state)
            former.rebuild(self._state)

    def renew(self) -> bool:
        """Write a file of version 1 anew that was not when it was modernized, once half of it is free; return whether it was.

        Trims make a file small enough. Runners only.
        """
        return former.is_former(self._state) and former.rebuild(self._state, repacked=False)

    def shrink(self, pages: int) -> int:
        """Give up to that many free pages of the file back to the file system; return how many are left. Runners only."""
        return upkeep.shrink(self._state, pages)

    def parts(self) -> list[Part]:
        """Return what takes the bytes of the file, the largest part first. Reads the whole file."""
        return upkeep.parts(self._state)

    def stats(self) -> Stats:
        """Return records and bytes by topic, and the size of the files. Scans the whole store."""
        return upkeep.stats(self._state)

    def damage(self) -> str:
        """Return the first problem that is found in the file; "" for none. Reads the whole file."""
        found = str(self._state.fetch("PRAGMA quick_check(1)")[0][0])
        return self._state.values.damage() if found == "ok" else found

    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        return [name for (name,) in self._state.fetch("SELECT DISTINCT name FROM offsets ORDER BY name")]

    def lag(self, group: str) -> dict[tuple[str, int], int]:
        """Return the number of records that a group has not finished, by topic and partition with committed offsets."""
        return {
            at: self._state.end(self._state.slot(*at)) - offsets.next - len(offsets.done)
            for at, offsets in self.offsets(group).items()
        }

    def close(self) -> None:
        """Close the file and release the locks. May be called twice."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
