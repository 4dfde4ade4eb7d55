"""The partitions that a stage processes, from assignment to revocation; without a broker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.exceptions import ConsumerNotStarted
from faust.types import TP

from schemas.codec import decode, encode
from schemas.ports import Rows
from schemas.records import Summary
from streams.kafka.decide.agents import Decider
from streams.kafka.decide.partition_ownership import OwnedPartitions
from streams.kafka.worker.supervisor import BACK_OFF, ENDS, StageProcess
from tests.streams.kafka.test_following import Message
from tests.streams.kafka.test_rows import decider

BOTH = {TP("holders.main", 0), TP("holders.main", 1)}


class Client:
    """A simulated Faust application. `rows`: the partitions of its changelog."""

    def __init__(self, rows: set[TP]) -> None:
        self.rows = rows
        self.consumer = self
        self.consumer_generation_id = 6
        self.tables = SimpleNamespace(recovery=SimpleNamespace(active_offsets={}))
        self.started = True

    def assignment(self) -> set[TP]:
        """Both partitions, and those of the changelog."""
        if not self.started:
            raise ConsumerNotStarted
        return BOTH | self.rows


@pytest.fixture
def ends() -> list[Any]:
    """The errors that ended the process."""
    return []


@pytest.fixture
def decided(tmp_path: Path, ends: list[Any]) -> Decider:
    """A stage with derived rows and ticks, in an application that is not started."""
    found = decider(tmp_path, "dedup.main", ends)
    found.owned._app = Client({TP(found.table.changelog_topic.get_topic_name(), tp.partition) for tp in BOTH})

    async def none(*tps: TP) -> dict[TP, int]:
        return {}

    async def nothing(tp: TP) -> int:
        return 0

    found.following.earliest, found.following.settled = none, nothing  # type: ignore[method-assign]
    return found


@pytest.fixture
def owned(decided: Decider) -> OwnedPartitions:
    """The partitions of that stage."""
    return decided.owned


def restoring(decided: Decider, restore: Callable[[Any], None]) -> None:
    """Replace the function that makes derived rows."""
    decided.stage = replace(decided.stage, restore=restore)


def test_outdated_recovery_takes_no_partitions(decided: Decider, owned: OwnedPartitions) -> None:
    """A recovery that ends between a revocation and the next assignment is outdated: no derived rows are made, nothing is taken."""
    made: list[int] = []
    restoring(decided, lambda rows: made.append(rows._partition))

    async def scenario() -> None:
        await owned._on_revoked()
        await owned._on_recovered()
        assert (made, owned.partitions) == ([], frozenset())
        await owned._on_assigned(None, BOTH)
        await owned._on_recovered()

    asyncio.run(scenario())
    assert (made, sorted(owned.partitions)) == ([0, 1], [0, 1])


def test_missing_changelog_partition_ends_process(decided: Decider, owned: OwnedPartitions, ends: list[Any]) -> None:
    """The process ends if the assignment lacks a changelog partition: the assigning member may not know of the changelog yet."""
    client: Any = owned._app
    client.rows = {tp for tp in client.rows if tp.partition == 0}

    async def scenario() -> None:
        await owned._on_assigned(None, BOTH)
        await owned._on_recovered()

    asyncio.run(scenario())
    assert not owned.partitions
    assert ["partitions 1 are not assigned" in str(error) for error in ends] == [True]


def test_partitions_are_excused_while_derived_rows_are_made(decided: Decider, owned: OwnedPartitions, ends: list[Any]) -> None:
    """While derived rows are made the event loop runs, and partitions are excused to the watchdog as long as there is progress."""
    on, seen = threading.Event(), threading.Event()

    def restore(rows: Rows) -> None:
        rows.put(b"d|1", b"")
        seen.set()
        on.wait()

    async def scenario() -> None:
        restoring(decided, restore)
        await owned._on_assigned(None, BOTH)
        taking = asyncio.ensure_future(owned._on_recovered())
        await asyncio.to_thread(seen.wait)
        assert sorted(owned.excused()) == [("holders.main", 0), ("holders.main", 1)]
        assert owned.excused() == []
        assert owned.partitions == frozenset()
        on.set()
        await taking

    asyncio.run(scenario())
    assert (sorted(owned.partitions), ends) == ([0, 1], [])


def test_revocation_stops_making_derived_rows(decided: Decider, owned: OwnedPartitions, ends: list[Any]) -> None:
    """Partitions revoked meanwhile are given up at once, and their next owner makes all of their derived rows."""
    begun = threading.Event()
    made: list[int] = []

    def endless(rows: Any) -> None:
        made.append(rows._partition)
        while True:
            begun.set()
            rows.put(b"d|1", b"")

    async def scenario() -> None:
        restoring(decided, endless)
        await owned._on_assigned(None, BOTH)
        taking = asyncio.ensure_future(owned._on_recovered())
        await asyncio.to_thread(begun.wait)
        await owned._on_revoked()
        await taking
        assert owned.partitions == frozenset()
        restoring(decided, lambda rows: made.append(rows._partition))
        await owned._on_assigned(None, BOTH)
        await owned._on_recovered()

    asyncio.run(scenario())
    assert (made, sorted(owned.partitions), ends) == ([0, 0, 1], [0, 1], [])


def test_partitions_revoked_during_offset_lookup_are_not_processed(decided: Decider, owned: OwnedPartitions) -> None:
    """Partitions revoked during the look-up of due offsets are not processed; after their return they get their first tick."""
    nothing = decided.following.settled

    async def gone(tp: TP) -> int:
        await owned._on_revoked()
        return 0

    async def scenario() -> None:
        restoring(decided, lambda _: None)
        await owned._on_assigned(None, BOTH)
        decided.following.settled = gone  # type: ignore[method-assign]
        await owned._on_recovered()
        assert owned.partitions == frozenset()
        decided.following.settled = nothing  # type: ignore[method-assign]
        await owned._on_assigned(None, BOTH)
        await owned._on_recovered()

    asyncio.run(scenario())
    assert sorted(owned.partitions) == [0, 1]
    assert decided.ticker is not None
    assert decided.ticker._wanted == {0, 1}


def test_waiting_tick_is_excused_while_inputs_advance(decided: Decider, owned: OwnedPartitions) -> None:
    """A waiting tick is excused while an input of its partition advances; without progress the watchdog counts it."""
    owned._generation = 6
    due = decided.following.next
    due |= {TP("holders.main", 0): 5, TP("holders.main", 1): 5}
    owned.excused()
    due[TP("holders.main", 1)] = 6
    assert owned.excused() == [("dedup.main.ticks", 1)]
    assert owned.excused() == []


def test_consumer_before_start_has_no_partitions(owned: OwnedPartitions) -> None:
    """A consumer that has not started has no partitions, which is no error."""
    client = Client(set())
    client.started = False
    owned._app = client
    assert owned.places() == []


class Sick:
    """A store whose disk fails."""

    def get(self, key: bytes) -> bytes:
        """Raise an error of RocksDB."""
        raise Exception("Corruption: block checksum mismatch")  # noqa: TRY002 - what it raises

    def items(self, **_: Any) -> Iterator[tuple[bytes, bytes]]:
        """Raise an error of RocksDB."""
        raise Exception("IO error: Too many open files")  # noqa: TRY002 - what it raises


def test_store_error_makes_no_dead_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the store makes no dead letter: it leaves the batch and ends the process; a stage's own error makes one."""
    decided = decider(tmp_path, "catalog")
    message = Message(3)
    message.value = encode(Summary(oid="o", url="u", object_url="u", gatherer="g", version=1, time=1, type="Text"))
    healthy = decided.table.data._db_for_partition(0)
    monkeypatch.setattr(decided.table.data, "_db_for_partition", lambda _: Sick())
    event: Any = SimpleNamespace(message=message)
    with pytest.raises(Exception, match="block checksum mismatch"):
        decided.decide(event)
    catalog = decided.stage
    monkeypatch.setattr(decided, "stage", replace(catalog, process=lambda rows, *_: iter(list(rows.scan(b"a|")))))
    with pytest.raises(Exception, match="Too many open files"):
        decided.decide(event)
    monkeypatch.setattr(decided.table.data, "_db_for_partition", lambda _: healthy)
    monkeypatch.setattr(decided, "stage", replace(catalog, process=lambda rows, *_: rows.get("no bytes")))
    [letter] = decided.decide(event)[1]
    assert decode(letter.value or b"").stage == "catalog"  # type: ignore[attr-defined]


def test_slow_failing_starts_are_repeated_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage whose starts fail after ten seconds each is restarted forever; one whose starts fail at once is given up."""

    def tried(seconds: float) -> int:
        ward, now, waits = StageProcess("catalog", []), time.monotonic(), BACK_OFF
        monkeypatch.setattr(ward, "start", lambda: None)
        for number in range(30):
            ward.process = SimpleNamespace(poll=lambda: 1)  # type: ignore[assignment]
            if not ward.look(lambda _: None, now):
                return number + 1
            now += seconds + waits
            waits = min(waits * 2, BACK_OFF * 2 ** (ENDS - 2))
        return 30

    assert tried(10.0) == 30
    assert tried(1.0) == ENDS
