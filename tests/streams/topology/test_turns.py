"""A turn of the embedded runner, without edges and child processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from processors.broker.definition import Broker
from processors.frontier import stage
from schemas.codec import decode, encode
from schemas.records import Complete, CrawlEvent, Rejected, Summary, Tick
from streams.clock import AHEAD, now_ms
from streams.edges.base import Finished, Staging
from streams.edges.parse_job import Frame, find_culprit
from streams.embedded.tasks import AFTER_FAILURE
from streams.embedded.turns import Inbox, Turns
from streams.store import FolderBlobs, Offsets, Store, StoreError
from streams.store.schema import FILE, PAGE
from streams.topology.flow import TopologySettings, topology


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Turns]:
    """The deciding stages over a new store of one partition."""
    declared = topology(TopologySettings())
    with Store(tmp_path, {topic.name: 1 for topic in declared.topics}, runner=True) as store:
        made = Turns(declared, store, FolderBlobs(tmp_path / "blobs", owner=True), pytest.fail)
        made.begin()
        yield made


def frames(url: str) -> list[Frame]:
    """The output of an object with one file."""
    summary = Summary(oid=url, url=url, object_url=url, gatherer="g", version=1, time=1, type="Text", attempt="1")
    whole = Complete(object_url=url, version=1, time=1, attempt="1", count=1)
    return [Frame("made", 0, url.encode(), encode(record)) for record in (summary, whole)]


def finished(offset: int, url: str, owner: str = "") -> Finished:
    """A finished object; with an owner, all its output was staged."""
    return Finished("essence", "objects", 0, offset, [] if owner else frames(url), owner)


def published(turns: Turns) -> list[str]:
    """The sorted URLs of the published summaries."""
    for _ in range(3):
        turns.take(Inbox([], [], []))
    return sorted(getattr(decode(logged.value or b""), "url", "") for logged in turns.store.read("summaries", 0, 0, 99))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_staged_records_are_read_like_others(turns: Turns, order: tuple[int, int, int]) -> None:
    """Staged records of an object are read like those of objects that end in the same turn, before and behind it."""
    turns.take(Inbox([], [Staging("o", frames("http://staged/"))], []))
    ended = [finished(0, "http://staged/", "o"), finished(1, "http://b/"), finished(2, "http://c/")]
    turns.take(Inbox([ended[number] for number in order], [], [("essence", "objects", 0, Offsets(3))]))
    assert published(turns) == ["http://b/", "http://c/", "http://staged/"]
    assert turns.store.offsets("catalog")["made", 0] == Offsets(6)


@pytest.mark.parametrize("staged", [False, True])
def test_rejections_are_counted_at_end_of_object(turns: Turns, *, staged: bool) -> None:
    """The rejections of an object are counted at its end, staged or not; those staged and dropped are not counted."""
    letters = [Rejected(stage="essence", reason="damaged", time=1, url="http://a/", path=str(n)) for n in range(3)]
    made = [Frame("rejected", 0, b"k", encode(each)) for each in letters]
    if staged:
        turns.take(Inbox([], [Staging("o", made[:1]), Staging("o", []), Staging("o", made[:2])], []))
        assert not turns.tally.rejected
        turns.take(Inbox([Finished("essence", "objects", 0, 0, [], "o")], [Staging("o", made[2:])], []))
    else:
        turns.take(Inbox([Finished("essence", "objects", 0, 0, made)], [], []))
    assert turns.tally.rejected == {"damaged": 3}
    assert turns.store.ends("rejected") == [3]


def test_long_turn_is_continued_by_next_ones(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn ends after its time, and the next ones go on: no record is left out, and none is processed twice."""
    monkeypatch.setattr("streams.embedded.turns.SPELL", 0)
    urls = [f"http://{n}/" for n in range(5)]
    turns.take(Inbox([finished(n, url) for n, url in enumerate(urls)], [], []))
    assert turns.store.offsets("catalog")["made", 0] == Offsets(1)
    number = 0
    while turns.take(Inbox([], [], [])):
        number += 1
    assert number > len(urls)
    assert published(turns) == urls
    assert turns.store.offsets("catalog")["made", 0] == Offsets(2 * len(urls))


def test_brokers_keep_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where turns are too short for all Brokers, each is the first in its turn: none is many batches ahead of another."""
    monkeypatch.setattr("streams.embedded.turns.BATCH", 4)
    ticks = count()
    monkeypatch.setattr("streams.embedded.turns.time", SimpleNamespace(monotonic=lambda: next(ticks) / 100))
    names = ("a", "b", "c", "d")
    declared = topology(TopologySettings(brokers=tuple(Broker(name) for name in names)))
    with Store(tmp_path, {topic.name: 1 for topic in declared.topics}, runner=True) as store:
        turns = Turns(declared, store, FolderBlobs(tmp_path / "blobs", owner=True), pytest.fail)
        turns.begin()
        read: list[int] = []
        with store.transaction() as tx:
            for number in range(100):
                one = Summary(oid=str(number), url="u", object_url="u", gatherer="g", version=1, time=1, type="Text")
                tx.append("summaries", 0, one.oid.encode(), encode(one), 1)
        while turns.take(Inbox([], [], [])):
            read = [store.offsets(f"register.{name}").get(("summaries", 0), Offsets()).next for name in names]
            assert max(read) - min(read) <= 8
    assert read == [100] * len(names)


def test_undone_outputs_are_not_counted(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that a stage fails to process counts only as a rejection, not with its undone outputs."""
    (task,) = [task for task in turns.tasks if task.stage.name == "catalog"]
    process = task.stage.process

    def breaks(*given: Any) -> Iterator[Any]:
        yield from process(*given)
        raise KeyError("ours")

    monkeypatch.setattr(task, "stage", dataclasses.replace(task.stage, process=breaks))
    monkeypatch.setattr(turns, "log", lambda _: None)
    turns.take(Inbox([finished(0, "http://a/")], [], []))
    turns.take(Inbox([], [], []))
    assert (turns.tally.summaries, turns.tally.added) == (0, 0)
    assert turns.tally.rejected == {"error in catalog: KeyError": 2}


def test_stage_whose_tick_fails_gets_the_next_one_later(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick that a stage fails to process is rejected once; the stage gets another one only after a pause, so that a run ends."""
    (task,) = [task for task in turns.tasks if task.stage.name == "register.main"]

    def breaks(*_: Any) -> Iterator[Any]:
        raise KeyError("ours")

    monkeypatch.setattr(task, "stage", dataclasses.replace(task.stage, process=breaks))
    monkeypatch.setattr(task, "deadline", lambda _: 0)
    monkeypatch.setattr(turns, "log", lambda _: None)
    for _ in range(9):
        turns.take(Inbox([], [], []))
    assert turns.tally.rejected == {"error in register.main: KeyError": 1}
    assert not turns.wanted()
    task.failed -= AFTER_FAILURE
    assert turns.wanted()


def test_event_in_future_is_rejected(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """An imported event with a time in the future is rejected, as a tick is, and does not advance the frontier's clock."""
    logged: list[str] = []
    monkeypatch.setattr(turns, "log", logged.append)
    now = now_ms()
    with turns.store.transaction() as tx:
        for ahead in (2 * AHEAD, 0):
            event = CrawlEvent(kind="failed", host="a", url="http://a/", time=now + ahead)
            tx.append("crawl", 0, b"a", encode(event), now)
    turns.take(Inbox([], [], []))
    rows = turns.store.rows("frontier", 0)
    assert rows is not None
    assert stage.seen(rows) < now + AHEAD
    (letter,) = (decode(logged.value or b"") for logged in turns.store.read("rejected", 0, 0, 9))
    assert isinstance(letter, Rejected)
    assert letter.reason == "not a record: a time in the future"


@pytest.mark.parametrize(
    ("ahead", "ends", "letters"), [(2 * AHEAD, {}, 1), (0, {"crawl": 9}, 0), (0, {"junk": 9}, 0)], ids=["time", "ends", "topic"]
)
def test_invalid_tick_neither_moves_clock_nor_blocks(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, ahead: int, ends: dict[str, int], letters: int
) -> None:
    """An imported tick with a future time or unknown ends does not move the clock, and the next tick is applied."""
    logged: list[str] = []
    monkeypatch.setattr(turns, "log", logged.append)
    turns.take(Inbox([], [], []))
    now, first = now_ms(), turns.store.ends("frontier.ticks")[0]
    with turns.store.transaction() as tx:
        tx.append("frontier.ticks", 0, b"", encode(Tick(time=now + ahead, ends=ends)), now + ahead)
    turns.take(Inbox([], [], []))
    rows = turns.store.rows("frontier", 0)
    assert turns.store.offsets("frontier")["frontier.ticks", 0] == Offsets(first + 1)
    assert rows is not None
    assert now - AHEAD < stage.seen(rows) < now + AHEAD
    assert turns.store.ends("rejected") == [letters]
    assert [line.count("\n") for line in logged] == [0] * letters


def damage(folder: Path, space: str) -> None:
    """Overwrite the rows of a stage in partition 0, but not their index, in a closed store."""
    connection = apsw.Connection(str(folder / FILE))
    ((number,),) = connection.execute("SELECT id FROM spaces WHERE name=? AND partition=0", (space,))
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (f"rows_{number}",))
    connection.close()
    with open(folder / FILE, "r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)


def test_unreadable_row_fails_turn_without_dead_letter(tmp_path: Path) -> None:
    """If a stage's rows cannot be read, the turn raises the store's error, and none of its writes is kept."""
    declared = topology(TopologySettings())
    topics = {topic.name: 1 for topic in declared.topics}
    inbox = Inbox([finished(0, "http://a/")], [], [("essence", "objects", 0, Offsets(1))])
    with Store(tmp_path, topics, runner=True) as store:
        Turns(declared, store, FolderBlobs(tmp_path / "blobs", owner=True), pytest.fail).take(inbox)
    damage(tmp_path, "catalog")
    with Store(tmp_path, topics, runner=True) as store:
        again = Turns(declared, store, FolderBlobs(tmp_path / "blobs", owner=True), pytest.fail)
        ends = {topic: store.ends(topic) for topic in store.topics()}
        with pytest.raises(StoreError, match="malformed"):
            again.take(inbox)
        assert again.failed
        assert {topic: store.ends(topic) for topic in store.topics()} == ends
        assert store.ends("rejected") == [0]


def test_full_disk_fails_turn_without_writes(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that cannot be committed raises the error, writes nothing, and sets `failed`: no edge results are accepted."""

    def full(name: str) -> None:
        if name == "turn.register.main":
            raise OSError(28, "No space left on device")

    turns.take(Inbox([], [Staging("o", frames("http://staged/"))], []))
    monkeypatch.setattr("streams.embedded.turns.fault", full)
    ended = [finished(0, "http://a/"), finished(1, "http://staged/", "o"), finished(2, "http://c/")]
    with pytest.raises(OSError, match="No space"):
        turns.take(Inbox(ended, [], [("essence", "objects", 0, Offsets(3))]))
    assert turns.failed
    assert turns.store.ends("made") == [0]
    assert turns.store.offsets("essence") == {}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("", (0, "")),
        ("0\n", (0, "")),
        ("7\na/b", (7, "a/b")),
        ("7\na\nb", (7, "a\nb")),
        ("-1\na", (0, "")),
        ("a/b", (0, "")),
        ("9" * 5_000 + "\na", (0, "")),
    ],
)
def test_blamed_parses_position_of_child(said: str, found: tuple[int, str]) -> None:
    """`blamed` parses a child's position, an object's number and a member's path; an invalid one blames the first object."""
    assert find_culprit(said) == found
