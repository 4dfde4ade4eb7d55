"""Stores filled from changelogs, on a real Kafka: their rows and offsets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from faust.tables.recovery import Recovery
from faust.types import TP
from rocksdict import Options, Rdict

from streams.kafka.decide import recovering
from streams.kafka.decide.recovering import Filled, Filling
from tests.servers.fixtures import Topics
from tests.streams.kafka.conftest import Broker

OWN = b"own offset"
PARTITIONS = 3


class Stores:
    """A store for each partition of a changelog, and the offset up to which each was filled."""

    def __init__(self, broker: Broker, topic: str, folder: Path) -> None:
        self.broker = broker
        self.topic = topic
        self.stores: dict[TP, Any] = {TP(topic, p): Rdict(str(folder / str(p)), Options(raw_mode=True)) for p in range(PARTITIONS)}
        self.offsets: dict[TP, Any] = dict.fromkeys(self.stores)

    def filling(self) -> Filling:
        """A filling of these stores."""
        return Filling({"bootstrap.servers": self.broker.address, "log_level": 0}, self.stores, self.offsets, OWN)

    def held(self, partition: int) -> dict[bytes, bytes]:
        """The rows of a partition."""
        store: Any = self.stores[TP(self.topic, partition)]
        return {key: value for key, value in store.items() if key != OWN}

    def persisted(self) -> dict[TP, Any]:
        """The offset in each store, as Faust reads it."""
        return {tp: None if (found := store.get(OWN)) is None else int(found) for tp, store in self.stores.items()}


class Changelog:
    """A changelog and the rows that it results in."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker, self._topic = broker, topic
        self.rows: list[dict[bytes, bytes]] = [{} for _ in range(PARTITIONS)]
        self.ends = [0] * PARTITIONS
        self._random = random.Random(7)

    def grow(self, count: int) -> None:
        """Append rows that are written, overwritten and deleted."""
        for partition, rows in enumerate(self.rows):
            records: list[tuple[bytes, Any]] = []
            for number in range(count):
                key = b"k%d" % self._random.randrange(count // 2)
                value = None if self._random.random() < 0.2 else b"v%d" % number
                records.append((key, value))
                rows.pop(key, None)
                rows.update({key: value} if value is not None else {})
            self._broker.append(self._topic, records, partition)
            self.ends[partition] += count

    def last(self) -> dict[TP, int]:
        """The offset of the last row of each partition."""
        return {TP(self._topic, partition): end - 1 for partition, end in enumerate(self.ends)}


@pytest.fixture
def changelog(broker: Broker, topics: Topics) -> Changelog:
    """A changelog with rows."""
    made = Changelog(broker, topics.make("rows", partitions=PARTITIONS))
    made.grow(1_500)
    return made


@pytest.fixture
def stores(broker: Broker, changelog: Changelog, tmp_path: Path) -> Iterator[Stores]:
    """The stores of the changelog, empty."""
    (topic,) = {tp.topic for tp in changelog.last()}
    made = Stores(broker, topic, tmp_path)
    yield made
    for store in made.stores.values():
        store.close()


def agree(stores: Stores, rows: list[dict[bytes, bytes]], last: Mapping[TP, int]) -> None:
    """Check that the stores have these rows and these offsets."""
    assert [stores.held(partition) for partition in range(PARTITIONS)] == rows
    assert stores.offsets == stores.persisted() == last


def test_stores_are_filled_from_changelog(changelog: Changelog, stores: Stores) -> None:
    """Stores are filled from the beginning, and later from their own offsets; rows that are there already are not read again."""
    stores.filling().run()
    agree(stores, changelog.rows, changelog.last())
    for store in stores.stores.values():
        store.put(b"mine", b"is left alone")
    changelog.grow(40)
    stores.filling().run()
    agree(stores, [rows | {b"mine": b"is left alone"} for rows in changelog.rows], changelog.last())


def test_stopped_filling_is_completed_by_next(changelog: Changelog, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filling stopped at any batch leaves each store with its changelog up to the stored offset; the next one completes it."""
    monkeypatch.setattr(recovering, "ROWS", 100)
    filling, write = stores.filling(), Filling._write
    left = 7

    def cut(self: Filling, *given: Any) -> None:
        nonlocal left
        write(self, *given)
        left -= 1
        if not left:
            self.stopped.set()

    with monkeypatch.context() as patched:
        patched.setattr(Filling, "_write", cut)
        filling.run()
    assert 0 < sum((offset or 0) + 1 for offset in stores.offsets.values()) < sum(changelog.ends)
    assert stores.offsets == stores.persisted()
    stores.filling().run()
    agree(stores, changelog.rows, changelog.last())


def test_empty_changelog_needs_no_wait(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """An empty changelog is filled without a wait."""
    stores = Stores(broker, topics.make("empty", partitions=PARTITIONS), tmp_path)
    stores.filling().run()
    assert set(stores.offsets.values()) == {None}
    assert [stores.held(partition) for partition in range(PARTITIONS)] == [{}] * PARTITIONS


def test_stores_stay_unchanged_without_broker(changelog: Changelog, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that cannot be filled, since no broker answers, stay unchanged, for Faust to fill."""
    monkeypatch.setattr(recovering, "REACH", 0.5)
    Filling({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, stores.stores, stores.offsets, OWN).run()
    assert set(stores.offsets.values()) == {None}


class Full:
    """A table of one partition, on a full disk."""

    offset_key = OWN

    @property
    def data(self) -> Full:
        """Its stores."""
        return self

    def _db_for_partition(self, _: int) -> Full:
        return self

    def write(self, batch: Any) -> None:
        """Raise an error of RocksDB."""
        raise Exception("IO error: No space left on device")  # noqa: TRY002 - what it raises


def test_full_disk_ends_process_with_one_line(monkeypatch: pytest.MonkeyPatch, broker: Broker, topics: Topics) -> None:
    """If a store cannot be filled the process ends with the store's error message; any other error is raised."""
    place, said = TP(topics.make("log"), 0), list[str]()
    broker.fill(place.topic, {b"k": b"v"})
    filled = Filled.__new__(Filled)
    filled.tp_to_table, filled.active_offsets = {place: Full()}, {place: None}  # type: ignore[dict-item, assignment]
    filled._client, filled._one = {"bootstrap.servers": broker.address, "log_level": 0}, asyncio.Lock()
    filled._end = said.append

    async def usual(*_: Any) -> None:
        pass

    monkeypatch.setattr(Recovery, "_build_highwaters", usual)
    asyncio.run(filled._build_highwaters(None, {place}, {}, "active"))
    assert said == ["the tables cannot be filled: IO error: No space left on device"]
    with pytest.raises(KeyError):
        asyncio.run(filled._build_highwaters(None, {TP("another", 0)}, {}, "active"))
