"""A turn of the embedded runner, without edges and children."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from processors.frontier import stage
from schemas.codec import decode, encode
from schemas.records import Complete, CrawlEvent, Rejected, Summary, Tick
from streams.clock import AHEAD, now_ms
from streams.edges.base import Finished, Staging
from streams.edges.parse_job import Frame, find_culprit
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
    """What an object of one file gives."""
    summary = Summary(oid=url, url=url, object_url=url, gatherer="g", version=1, time=1, type="Text", attempt="1")
    whole = Complete(object_url=url, version=1, time=1, attempt="1", count=1)
    return [Frame("made", 0, url.encode(), encode(record)) for record in (summary, whole)]


def finished(offset: int, url: str, owner: str = "") -> Finished:
    """An object that has ended; with an owner, all that it gave was staged."""
    return Finished("essence", "objects", 0, offset, [] if owner else frames(url), owner)


def published(turns: Turns) -> list[str]:
    """The URLs of the summaries, in order."""
    for _ in range(3):
        turns.take(Inbox([], [], []))
    return sorted(getattr(decode(logged.value or b""), "url", "") for logged in turns.store.read("summaries", 0, 0, 99))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_staged_beside_others(turns: Turns, order: tuple[int, int, int]) -> None:
    """An object whose records were staged is read like those that end in the same turn, before and behind it."""
    turns.take(Inbox([], [Staging("o", frames("http://staged/"))], []))
    ended = [finished(0, "http://staged/", "o"), finished(1, "http://b/"), finished(2, "http://c/")]
    turns.take(Inbox([ended[number] for number in order], [], [("essence", "objects", 0, Offsets(3))]))
    assert published(turns) == ["http://b/", "http://c/", "http://staged/"]
    assert turns.store.offsets("catalog")["made", 0] == Offsets(6)


@pytest.mark.parametrize("staged", [False, True])
def test_rejections_are_counted(turns: Turns, *, staged: bool) -> None:
    """What an object rejects is counted with its end, staged or not; what was staged and dropped is not."""
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


def test_a_turn_that_takes_long(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where it is, and the next ones go on: nothing is left out, and nothing decided twice."""
    monkeypatch.setattr("streams.embedded.turns.SPELL", 0)
    urls = [f"http://{n}/" for n in range(5)]
    turns.take(Inbox([finished(n, url) for n, url in enumerate(urls)], [], []))
    assert turns.store.offsets("catalog")["made", 0] == Offsets(1)
    count = 0
    while turns.take(Inbox([], [], [])):
        count += 1
    assert count > len(urls)
    assert published(turns) == urls
    assert turns.store.offsets("catalog")["made", 0] == Offsets(2 * len(urls))


def test_what_is_undone_is_not_counted(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a record that a stage could not process to its end, the closing table knows the rejection only."""
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


def test_an_event_of_a_time_to_come_is_rejected(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was imported moves the clock of the frontier no more than a tick does."""
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
def test_a_strange_tick_holds_up_nothing(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, ahead: int, ends: dict[str, int], letters: int
) -> None:
    """A tick that was imported, a time in the future, or of ends that are not there: it moves no clock, and the next is applied."""
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
    """Overwrite the rows of a stage in partition 0, but not their index, in a store that nobody has open."""
    connection = apsw.Connection(str(folder / FILE))
    ((number,),) = connection.execute("SELECT id FROM spaces WHERE name=? AND partition=0", (space,))
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (f"rows_{number}",))
    connection.close()
    with open(folder / FILE, "r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)


def test_an_unreadable_row_is_no_dead_letter(tmp_path: Path) -> None:
    """Where the disk does not give a stage its rows, the turn ends with what is wrong, and nothing of it stands."""
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


def test_full_disk(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that cannot be committed says so as it is, leaves nothing, and lets no other be taken for whole."""

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
def test_blamed(said: str, found: tuple[int, str]) -> None:
    """What a child says that it is at: the number of an object and the path of a member; nonsense blames the first one."""
    assert find_culprit(said) == found
