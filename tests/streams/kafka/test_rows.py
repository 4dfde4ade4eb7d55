"""Rows of a Faust table, and the end of a batch; without a broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processors.frontier.rows import Table
from schemas.codec import decode, encode
from schemas.ports import Origin
from schemas.records import Annotation, Rejected, Summary
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.cursors import Cursors, prefix_end
from streams.kafka.client.topic_identity import base_rows, origin_base
from streams.kafka.decide.agents import LARGEST, Decider
from streams.kafka.decide.apps import application
from streams.kafka.decide.rows import TableRows, origin_bases
from streams.topology.flow import Stage, TopologySettings, topology
from tests.streams.kafka.test_following import Message


def decider(folder: Path, stage: str, ends: list[Any] | None = None) -> Decider:
    """A stage in an application that is not started."""
    found = topology(TopologySettings()).stage(stage)
    assert isinstance(found, Stage)
    cluster = Cluster("127.0.0.1:1")
    return Decider(application("rows", cluster, folder, 1), found, cluster, end=(ends if ends is not None else []).append)


@pytest.fixture
def rows(tmp_path: Path) -> TableRows:
    """Rows of a partition, in RocksDB."""
    decided = decider(tmp_path, "catalog")
    rows = TableRows(decided.table, 0, Cursors(()))
    for key in (b"a|2", b"a|1", b"b|1", b"a|3", b"\xff"):
        rows.put(key, b"of " + key)
    # Faust stores a row of its own there.
    rows._store.put(rows._own, b"7")
    return TableRows(decided.table, 0, Cursors(()))


def test_scan_returns_rows_in_order(rows: TableRows) -> None:
    """A scan returns the rows of a prefix, from behind a key, up to a limit, without Faust's own row."""
    assert [key for key, _ in rows.scan(b"a|")] == [b"a|1", b"a|2", b"a|3"]
    assert [key for key, _ in rows.scan(b"a|", b"a|1", 1)] == [b"a|2"]
    assert list(rows.scan(b"a|", limit=0)) == []
    assert [key for key, _ in rows.scan(b"")] == [b"a|1", b"a|2", b"a|3", b"b|1", b"\xff"]


def test_records_of_topic_made_again_are_new_to_rows(tmp_path: Path) -> None:
    """After a reset, rows have positions above all those of the old topic, and dead letters the real ones.

    The frontier decides a tick of a new topic of ticks once, although the last one of the old topic had a higher offset.
    """
    decided = decider(tmp_path, "frontier")
    rows = decided.rows(0)
    assert Table(rows).tick_once(-1 - 1_000_000)
    for key, value in base_rows(["frontier.ticks"], origin_base(time.time())).items():
        rows.put(key, value)
    at = Origin("frontier.ticks", 0, 3, 2)
    assert not Table(rows).tick_once(-1 - at.offset)
    decided.owned._bases[0] = origin_bases(decided.table, 0, decided.names.values())
    assert Table(rows).tick_once(-1 - decided.owned.origin(at).offset)
    assert not Table(rows).tick_once(-1 - decided.owned.origin(at).offset)
    assert decided.owned.origin(Origin("crawl", 0, 3, 2)) == Origin("crawl", 0, 3, 2)
    assert decided.owned.origin(at).committed == decided.owned.origin(at).offset - 1


def test_changes_of_failed_record_are_undone(rows: TableRows) -> None:
    """All changes of a failed record are undone, repeated ones too, and none of them would be sent."""
    before = dict(rows.scan(b""))
    rows.put(b"a|1", b"x")
    rows.put(b"a|1", b"y")
    rows.delete(b"a|2")
    rows.put(b"new", b"z")
    assert (rows.get(b"a|1"), rows.get(b"a|2"), rows.get(b"new")) == (b"y", None, b"z")
    rows.undo()
    assert dict(rows.scan(b"")) == before
    assert rows.written() == []


def queue(folder: Path) -> TableRows:
    """Rows with q| as the prefix of a queue: two in the queue, and one behind it."""
    cursors = Cursors((b"q|",))
    rows = TableRows(decider(folder, "catalog").table, 0, cursors)
    for key in (b"q|a|2", b"q|b|1", b"u|1"):
        rows.put(key, b"")
    return rows


def test_queue_scan_starts_at_first_known_row(tmp_path: Path) -> None:
    """A scan starts at the first row that the last one found; a lower row, put or restored, is found too."""
    rows = queue(tmp_path)

    def keys(prefix: bytes, after: bytes = b"") -> list[bytes]:
        return [key for key, _ in rows.scan(prefix, after)]

    assert (keys(b"q|"), keys(b"q|a|"), keys(b"q|c|")) == ([b"q|a|2", b"q|b|1"], [b"q|a|2"], [])
    rows._store.put(b"q|a|0", b"")
    assert (keys(b"q|"), keys(b"q|a|")) == ([b"q|a|2", b"q|b|1"], [b"q|a|2"])
    assert keys(b"q|", b"q|a") == [b"q|a|0", b"q|a|2", b"q|b|1"]
    rows._store.delete(b"q|a|0")
    rows.put(b"q|a|1", b"")
    rows.put(b"q|c|1", b"")
    assert (keys(b"q|a|"), keys(b"q|c|")) == ([b"q|a|1", b"q|a|2"], [b"q|c|1"])
    rows = TableRows(rows._table, 0, rows._cursors)
    rows.delete(b"q|a|1")
    assert keys(b"q|a|") == [b"q|a|2"]
    rows.undo()
    assert keys(b"q|a|") == [b"q|a|1", b"q|a|2"]


def test_derived_rows_have_no_changelog(tmp_path: Path) -> None:
    """Rows that are derived from other rows are written only to the local store."""
    rows = queue(tmp_path)
    assert [(row.topic, row.partition, row.key) for row in rows.written()] == [("rows-rows-changelog", 0, b"u|1")]


@pytest.mark.parametrize(("prefix", "end"), [(b"q|", b"q}"), (b"q\xff\xff", b"r"), (b"\xff", None), (b"", None)])
def test_behind_returns_end_of_prefix(prefix: bytes, end: bytes | None) -> None:
    """`behind` returns the lowest key behind all keys of a prefix, or None."""
    assert prefix_end(prefix) == end


def test_failed_batch_ends_process(tmp_path: Path) -> None:
    """A batch whose sends failed ends the process, since Faust would commit it."""
    ends: list[Any] = []
    failing = decider(tmp_path, "catalog", ends)

    async def batch(events: Any) -> None:
        raise OSError(*events)

    failing.batch = batch  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no broker"):
        asyncio.run(failing._whole(["no broker"]))  # type: ignore[list-item]
    assert [str(error) for error in ends] == ["no broker"]


def test_heartbeat_goes_on_while_broker_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the look-up of due offsets waits for a slow broker, the heartbeat of the process goes on."""
    monkeypatch.setattr("streams.kafka.decide.partition_ownership.BEAT", 0.01)
    ends: list[Any] = []
    decided = decider(tmp_path, "catalog", ends)
    owned, asked = decided.owned, asyncio.Event()

    async def look(_: Any, **__: Any) -> None:
        asked.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(owned, "_generation", 1)
    monkeypatch.setattr(owned, "places", list)
    monkeypatch.setattr(decided, "idle", lambda: True)
    monkeypatch.setattr(decided.following, "look", look)

    async def alive() -> None:
        tasks = [asyncio.ensure_future(owned._beats()), asyncio.ensure_future(owned._looks())]
        await asked.wait()
        before = owned.beat
        while owned.beat <= before:  # noqa: ASYNC110 - nothing tells of a beat; the test's own limit of time ends the wait
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()

    asyncio.run(alive())
    assert ends == []


@pytest.mark.parametrize(("size", "kept"), [(10, True), (LARGEST - 5, False)])
def test_oversized_output_makes_dead_letter_of_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, *, kept: bool
) -> None:
    """If a stage's output is too large, its rows are undone, and the dead letter has the input's bytes if they fit."""
    decided = decider(tmp_path, "catalog")
    value = encode(Annotation(url="u", object_url="u", time=1, attributes={"a": ("x" * size,)}))

    def process(rows: Any, record: Any, origin: Any) -> Iterator[Any]:
        rows.put(b"row", b"")
        yield Summary(
            oid="o", url="u", object_url="u", gatherer="g", version=1, time=1, type="T", attributes={"a": ("y" * LARGEST,)}
        )

    decided.stage = replace(decided.stage, process=process)
    monkeypatch.setattr(decided.following, "committed", lambda _: 0)
    message = Message(5)
    message.topic, message.key, message.value, message.timestamp, message.headers = "annotations", b"u", value, 1.0, [("a", b"b")]
    rows, (output,) = decided.decide(SimpleNamespace(message=message))  # type: ignore[arg-type]
    letter = decode(output.value or b"")
    assert isinstance(letter, Rejected)
    assert (letter.reason, letter.offset, letter.value) == ("error in catalog: ValueError", 5, value if kept else None)
    assert (rows, output.headers, output.topic) == ([], [("a", b"b")], "rejected")
    assert decided.rows(0).get(b"row") is None


def test_cancelled_agent_completes_its_batch(tmp_path: Path) -> None:
    """A cancelled agent completes its batch first, since it is acknowledged then."""
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
