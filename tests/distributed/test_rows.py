"""Rows on a Faust table, and the end of a batch: what holds without a broker."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streams.kafka.agents import Decider, SkippedError
from streams.kafka.apps import application
from streams.kafka.rows import TableRows
from streams.topology import Stage, topology


class Place(NamedTuple):
    """Where a record stands, as Faust's messages tell it."""

    topic: str
    partition: int
    offset: int
    tp: tuple[str, int]


def decider(folder: Path, stage: str, ends: list[Any] | None = None) -> Decider:
    """A stage in an application that nobody starts."""
    found = topology().stage(stage)
    assert isinstance(found, Stage)
    return Decider(application("rows", "127.0.0.1:1", folder, 1), found, end=(ends if ends is not None else []).append)


@pytest.fixture
def rows(tmp_path: Path) -> TableRows:
    """Rows of a partition, in RocksDB."""
    decided = decider(tmp_path, "catalog")
    rows = TableRows(decided.table, 0)
    for key in (b"a|2", b"a|1", b"b|1", b"a|3", b"\xff"):
        rows.put(key, b"of " + key)
    # Faust keeps a row of its own there.
    rows._store.put(rows._own, b"7")
    return TableRows(decided.table, 0)


def test_rows_are_scanned_in_order(rows: TableRows) -> None:
    """A scan gives the rows of a prefix, from behind a key, up to a limit, and nothing of Faust's own."""
    assert [key for key, _ in rows.scan(b"a|")] == [b"a|1", b"a|2", b"a|3"]
    assert [key for key, _ in rows.scan(b"a|", b"a|1", 1)] == [b"a|2"]
    assert list(rows.scan(b"a|", limit=0)) == []
    assert [key for key, _ in rows.scan(b"")] == [b"a|1", b"a|2", b"a|3", b"b|1", b"\xff"]


def test_rows_of_a_failed_record_are_undone(rows: TableRows) -> None:
    """What was put and deleted, once or more often, is as it was before, and nothing of it would be sent."""
    before = dict(rows.scan(b""))
    rows.put(b"a|1", b"x")
    rows.put(b"a|1", b"y")
    rows.delete(b"a|2")
    rows.put(b"new", b"z")
    assert (rows.get(b"a|1"), rows.get(b"a|2"), rows.get(b"new")) == (b"y", None, b"z")
    rows.undo()
    assert dict(rows.scan(b"")) == before
    assert rows.send() == []


@pytest.mark.parametrize("stage", ["frontier", "dedup.main"])
def test_stages_that_wait_for_ticks_are_refused(tmp_path: Path, stage: str) -> None:
    """A stage with deadlines is not run without those who write its ticks."""
    with pytest.raises(ValueError, match="ticks"):
        decider(tmp_path, stage)


def test_a_batch_that_fails_ends_the_process(tmp_path: Path) -> None:
    """A batch whose sends failed is not left to Faust, which would commit it."""
    ends: list[Any] = []
    failing = decider(tmp_path, "catalog", ends)

    async def batch(events: Any) -> None:
        raise OSError(*events)

    failing.batch = batch  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no broker"):
        asyncio.run(failing._whole(["no broker"]))  # type: ignore[list-item]
    assert [str(error) for error in ends] == ["no broker"]


@pytest.mark.parametrize(
    ("offsets", "committed", "skipped"),
    [([5, 6, 7], 0, False), ([6], 0, True), ([5, 7], 0, True), ([5, 6, 5, 6, 7], 0, False), ([9, 10], 9, False), ([10], 9, True)],
)
def test_a_record_that_was_left_out_is_noticed(tmp_path: Path, offsets: list[int], committed: int, *, skipped: bool) -> None:
    """Records follow each other from the earliest, or from the committed offset; what comes again is no gap."""
    following = decider(tmp_path, "catalog")
    messages = [Place("made", 0, offset, ("made", 0)) for offset in offsets]
    following.next = {("made", 0): 5}
    following.committed = lambda message: committed  # type: ignore[method-assign]  # noqa: ARG005 - its name is part of its type

    async def follow() -> None:
        for message in messages:
            await following.follow(message)

    with pytest.raises(SkippedError) if skipped else nullcontext():
        asyncio.run(follow())


def test_a_cancelled_agent_ends_its_batch(tmp_path: Path) -> None:
    """A batch is whole before a cancelled agent lets go of it, for it is acknowledged then."""
    ends: list[Any] = []
    done: list[Any] = []
    slow = decider(tmp_path, "catalog", ends)

    async def batch(events: Any) -> None:
        for event in events:
            await asyncio.sleep(0.01)
            done.append(event)

    slow.batch = batch  # type: ignore[method-assign]

    async def cancelled() -> None:
        task = asyncio.ensure_future(slow._whole([1, 2, 3]))  # type: ignore[list-item]
        await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert (done, ends) == ([1, 2, 3], [])
