"""Which partitions a stage works on, and when: what holds without a broker."""

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
    """What the stage asks of Faust's application, answered by the test. `rows`: the partitions of its changelog."""

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
    """What ended the process."""
    return []


@pytest.fixture
def decided(tmp_path: Path, ends: list[Any]) -> Decider:
    """A stage with derived rows and ticks, in an application that nobody starts."""
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
    """Its partitions."""
    return decided.owned


def restoring(decided: Decider, restore: Callable[[Any], None]) -> None:
    """Have derived rows made so."""
    decided.stage = replace(decided.stage, restore=restore)


def test_a_recovery_that_is_over_takes_nothing(decided: Decider, owned: OwnedPartitions) -> None:
    """What ends between a revocation and the assignment is of another generation: its tables make no derived rows."""
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


def test_nobody_decides_without_the_rows_of_a_partition(decided: Decider, owned: OwnedPartitions, ends: list[Any]) -> None:
    """A member that assigns may not know of a changelog yet: what it leaves out is recovered by nobody, and the process ends."""
    client: Any = owned._app
    client.rows = {tp for tp in client.rows if tp.partition == 0}

    async def scenario() -> None:
        await owned._on_assigned(None, BOTH)
        await owned._on_recovered()

    asyncio.run(scenario())
    assert not owned.partitions
    assert ["partitions 1 are not assigned" in str(error) for error in ends] == [True]


def test_derived_rows_take_their_time(decided: Decider, owned: OwnedPartitions, ends: list[Any]) -> None:
    """While they are made the loop goes round, and the watchdog is told that there is progress, as long as there is."""
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


def test_derived_rows_that_are_not_wanted_any_more(decided: Decider, owned: OwnedPartitions, ends: list[Any]) -> None:
    """Partitions that are given up meanwhile are given up at once, and whoever has them next makes all of their rows."""
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


def test_partitions_that_go_while_it_is_asked_what_is_due(decided: Decider, owned: OwnedPartitions) -> None:
    """They are not worked on; those that come back get their first tick all the same."""
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


def test_a_tick_waits_for_inputs_that_move(decided: Decider, owned: OwnedPartitions) -> None:
    """A tick that is held stands with good reason, as long as an input of its partition moves; where none does it is watched."""
    owned._generation = 6
    due = decided.following.next
    due |= {TP("holders.main", 0): 5, TP("holders.main", 1): 5}
    owned.excused()
    due[TP("holders.main", 1)] = 6
    assert owned.excused() == [("dedup.main.ticks", 1)]
    assert owned.excused() == []


def test_before_the_start_there_is_nothing_to_watch(owned: OwnedPartitions) -> None:
    """A client that has not begun has no partitions, and is no mistake of ours."""
    client = Client(set())
    client.started = False
    owned._app = client
    assert owned.places() == []


class Sick:
    """A store whose disk fails."""

    def get(self, key: bytes) -> bytes:
        """As RocksDB says it."""
        raise Exception("Corruption: block checksum mismatch")  # noqa: TRY002 - what it raises

    def items(self, **_: Any) -> Iterator[tuple[bytes, bytes]]:
        """As RocksDB says it."""
        raise Exception("IO error: Too many open files")  # noqa: TRY002 - what it raises


def test_a_store_that_fails_refuses_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record becomes a dead letter for it: the error leaves the batch, and ends the process; a stage's own mistake does not."""
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


def test_a_broker_that_is_away_ends_no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts that ask for ten seconds each, and end, are made again and again; such as end at once are given up."""

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
