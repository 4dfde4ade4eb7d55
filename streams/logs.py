"""The log, whichever engine keeps it: what commands read and write, so that no command knows which one it is on.

A `LogAccess` gives the topics on Kafka (`streams/kafka/client/log.py`) or those of the data folder (`StoreLog`). Values are in
Avro's single-object encoding; what is no record of ours is given as it is.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol, Self

from schemas.ports import Log, Logged
from streams.store import Offsets, Store, partition
from streams.topology.flow import Edge, Stage, Topology, streamed

POLL = 0.2
"""Seconds between two polls for appended records."""
READ = 500


class Lag(NamedTuple):
    """Backlog of a consumer group in a partition. `committed`: the lowest offset that is not yet processed."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int
    lag: int


class LogAccess(Log, Protocol):
    """The log of an engine, for commands. Unknown topics raise KeyError; an engine's refusal raises an error of its own."""

    def starts(self, topic: str) -> Sequence[int]:
        """Return the first retained offset of each partition; its end where the partition is empty."""
        ...

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """Return, by partition, the first offset whose record has that time or a later one; the end if there is none."""
        ...

    def find(self, topic: str, text: bytes) -> Iterator[Logged]:
        """Yield the records of a topic with that key, or whose value contains those bytes: a full scan."""
        ...

    def follow(self, topic: str, offsets: Mapping[int, int]) -> Iterator[Logged]:
        """Yield the records of some partitions from those offsets on, as they arrive, without end."""
        ...

    def known(self, stage: str, partition: int, keys: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return those of the keys that a stage has rows for in a partition, with their values."""
        ...

    def rows(self, stage: str, partition: int, prefix: bytes) -> Mapping[bytes, bytes]:
        """Return the rows of a stage in a partition whose key starts with `prefix`."""
        ...

    def lags(self, drawn: Topology) -> Iterator[Lag]:
        """What each stage of a topology has still to read."""
        ...

    def write(self, records: Iterable[Logged], *, raw: bool = False) -> None:
        """Append records durably with their times; a partition below 0 is chosen by the key. raw: values are not re-encoded."""
        ...

    def gatherer(self) -> str:
        """Return the Gatherer's name stored in the log; "" if none is stored."""
        ...


class StoreLog:
    """The log of a data folder, read beside its runner. Closes the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.topics = store.topics
        self.starts = store.starts
        self.ends = store.ends
        self.read = store.read
        self.find = store.find
        self.append = store.append

    def since(self, topic: str, time_ms: int) -> Sequence[int]:
        """See LogAccess. Times rise in a data folder, except for imported records: a full scan."""
        return self.store.since(topic, time_ms)

    def follow(self, topic: str, offsets: Mapping[int, int]) -> Iterator[Logged]:
        """See LogAccess."""
        position = dict(offsets)
        while True:
            before = dict(position)
            for number, offset in before.items():
                for logged in self.read(topic, number, offset, READ):
                    position[number] = logged.offset + 1
                    yield logged
            if position == before:
                time.sleep(POLL)

    def known(self, stage: str, partition: int, keys: Collection[bytes]) -> Mapping[bytes, bytes]:
        """See LogAccess."""
        rows = self.store.rows(stage, partition)
        found = {key: rows.get(key) for key in keys} if rows is not None else {}
        return {key: value for key, value in found.items() if value is not None}

    def rows(self, stage: str, partition: int, prefix: bytes) -> Mapping[bytes, bytes]:
        """See LogAccess."""
        rows = self.store.rows(stage, partition)
        return dict(rows.scan(prefix)) if rows is not None else {}

    def lags(self, drawn: Topology) -> Iterator[Lag]:
        """See LogAccess; the progress of a sink is read from what it fills, which stores its offsets."""
        for stage, topic in stage_inputs(drawn):
            if topic not in self.topics():
                continue
            done = self._followed(stage) if is_sink(drawn.stage(stage)) else self._done(stage, topic)
            starts = self.starts(topic)
            for number, end in enumerate(self.ends(topic)):
                offsets = done.get(number, Offsets())
                committed = max(offsets.next, starts[number])
                yield Lag(stage, topic, number, committed, end, end - committed - len(offsets.done))

    def _done(self, stage: str, topic: str) -> dict[int, Offsets]:
        return {number: offsets for (name, number), offsets in self.store.offsets(stage).items() if name == topic}

    def _followed(self, stage: str) -> dict[int, Offsets]:
        broker = streamed(stage)
        if broker is None:
            return self._indexed(stage)
        from streams.operations.feed import feed_offsets  # noqa: PLC0415 - as below

        return {number: Offsets(offset) for number, offset in feed_offsets(self.store.folder, broker).items()}

    def _indexed(self, stage: str) -> dict[int, Offsets]:
        from sinks.index.errors import IndexMissing  # noqa: PLC0415 - the index is loaded by those who ask for it
        from sinks.index.tantivy.index import TantivyIndex  # noqa: PLC0415
        from streams.store.data_folder import index_folder  # noqa: PLC0415

        try:
            index = TantivyIndex(index_folder(self.store.folder, stage.removeprefix("index.")), writable=False)
        except IndexMissing:
            return {}
        try:
            return {number: Offsets(offset) for number, offset in index.offsets().items()}
        finally:
            index.close()

    def write(self, records: Iterable[Logged], *, raw: bool = False) -> None:
        """See LogAccess: one transaction."""
        with self.store.transaction() as tx:
            for topic, batch in groupby(records, key=lambda logged: logged.topic):
                count = self.topics()[topic]
                for logged in batch:
                    at = partition(logged.key, count) if logged.partition < 0 else logged.partition
                    tx.append(topic, at, logged.key, logged.value, logged.time)

    def gatherer(self) -> str:
        """See LogAccess."""
        from streams.store.data_folder import gatherer  # noqa: PLC0415

        return gatherer(self.store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()


def is_sink(stage: Stage[Any, Any] | Edge[Any, Any]) -> bool:
    """Return whether a stage is a sink, whose progress is stored in what it fills."""
    return isinstance(stage, Edge) and stage.kind == "sink"


def stage_inputs(drawn: Topology) -> Iterator[tuple[str, str]]:
    """Yield each stage with each topic that it reads, including ticks."""
    for stage in drawn.stages:
        ticks = stage.ticks if isinstance(stage, Stage) else None
        for topic in (*stage.inputs, *((ticks,) if ticks else ())):
            yield stage.name, topic.name
