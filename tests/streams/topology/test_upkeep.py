"""Data that upkeep must keep: unread records, annotations, and bodies in flight."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processors.gatherer.catalog import catalog
from schemas.codec import encode
from schemas.ports import Origin
from schemas.records import Annotation, Complete, FetchedObject, Rejected, Root
from streams.clock import now_ms
from streams.embedded import Embedded, EmbeddedSettings, upkeep
from streams.logs import StoreLog
from streams.operations.dead_letters import RETRIED, standing
from streams.store import FolderBlobs, Offsets, Store, former
from streams.store.schema import FILE
from streams.topology.flow import TopologySettings, topology
from tests.streams.store.test_former import NUMBERS, write_former
from tests.streams.store.test_values import check_read, check_shares, summary

DAY = 86_400
MEMBERS = ("a", "b")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Any]:
    """The parts of a runner that upkeep uses, with one partition and a clock a month ahead of the file system's."""
    declared = topology(TopologySettings())
    with pytest.MonkeyPatch.context() as patch, Store(tmp_path, {t.name: 1 for t in declared.topics}, runner=True) as store:
        patch.setattr(now_ms, "_wall", now_ms._wall + 30 * DAY * 10**9)
        patch.setattr(upkeep, "GROWN", 1)
        kept = FolderBlobs(tmp_path / "blobs", owner=True, clock=now_ms)
        yield SimpleNamespace(store=store, topology=declared, blobs=kept, folder=tmp_path)


def test_upkeep_keeps_all_annotations(runner: Any) -> None:
    """Each annotation of a URL is a change of its own: none is dropped, read or unread."""
    urls = [f"http://h/a.tar#{member}" for member in MEMBERS]
    made = [Annotation(url=url, object_url="http://h/a.tar", time=1, attributes={"x": ("y",)}) for url in urls]
    runner.store.append("annotations", [(b"http://h/a.tar", each) for each in made])
    with runner.store.transaction() as tx:
        tx.commit_offset("catalog", "annotations", 0, Offsets(1))
    upkeep.upkeep(runner, 0)
    assert [each.offset for each in runner.store.read("annotations", 0, 0, 9)] == [0, 1]


@pytest.mark.parametrize(("topic", "reader"), [("summaries", "register.main"), ("made", "catalog")])
def test_upkeep_keeps_unread_records(runner: Any, topic: str, reader: str) -> None:
    """Records that a stage has yet to read are not compacted or trimmed, however old; once read, they are."""
    upkeep.upkeep(runner, 0)
    with runner.store.transaction() as tx:
        for number in range(4):
            tx.append(topic, 0, b"k", b"%d" % number, 1)
        tx.commit_offset(reader, topic, 0, Offsets(2))
    upkeep.upkeep(runner, 0)
    left = [each.offset for each in runner.store.read(topic, 0, 0, 9)]
    assert left[-2:] == [2, 3]
    assert len(left) < 4
    with runner.store.transaction() as tx:
        tx.commit_offset(reader, topic, 0, Offsets(4))
    upkeep.upkeep(runner, 0)
    assert len(runner.store.read(topic, 0, 0, 9)) < 2


def test_upkeep_keeps_bodies_in_flight(runner: Any) -> None:
    """A new body stays, whatever its time in the file system: its record is yet to be written."""
    digest, _, _ = runner.blobs.put(io.BytesIO(bytes(100_000)))
    upkeep.upkeep(runner, 7 * DAY)
    assert list(runner.blobs.digests()) == [digest]
    again, _, _ = FolderBlobs(runner.blobs._folder).put(io.BytesIO(bytes(100_000)))
    assert again == digest
    assert runner.blobs.put(io.BytesIO(bytes(100_000)))[0] == digest
    upkeep.upkeep(runner, 7 * DAY)
    assert list(runner.blobs.digests()) == [digest]


def test_upkeep_deletes_old_bodies_once_parsed(runner: Any) -> None:
    """An old body stays while an object that refers to it waits for parsing, and is then deleted."""
    old = FolderBlobs(runner.blobs._folder, clock=lambda: 1_000)
    named, _, _ = old.put(io.BytesIO(bytes(100_000)))
    old.put(io.BytesIO(bytes(100_001)))
    root = Root(url="http://h/", run="1")
    record = FetchedObject(url="http://h/", outcome="fetched", version=1, time=1, root=root, blob=named)
    runner.store.append("objects", [(b"http://h/", record)])
    upkeep.upkeep(runner, 7 * DAY)
    assert list(runner.blobs.digests()) == [named]
    with runner.store.transaction() as tx:
        tx.commit_offset("essence", "objects", 0, Offsets(1))
    upkeep.upkeep(runner, 7 * DAY)
    assert list(runner.blobs.digests()) == []


MODERNIZED = """
import sys
from pathlib import Path
from types import SimpleNamespace
from streams.embedded.upkeep import upkeep
from streams.store import FolderBlobs, Store
from streams.topology.flow import TopologySettings, topology
folder = Path(sys.argv[1])
declared = topology(TopologySettings())
with Store(folder, {topic.name: 1 for topic in declared.topics}, runner=True) as store:
    blobs = FolderBlobs(folder / "blobs", owner=True)
    upkeep(SimpleNamespace(store=store, topology=declared, blobs=blobs, folder=folder), 86_400)
"""


def noted(folder: Path) -> int | None:
    """What upkeep has noted of making the store smaller."""
    with Store(folder, readonly=True) as store:
        return upkeep._noted(store, upkeep.MODERN)


@pytest.mark.slow(4)
def test_upkeep_makes_an_old_store_smaller_once(tmp_path: Path) -> None:
    """An upkeep that is killed at any of its transactions loses nothing; the one that ends makes the file smaller, and notes it."""
    folder = tmp_path / "data"
    write_former(folder)
    before = (folder / FILE).stat().st_size
    command = [sys.executable, "-c", MODERNIZED, str(folder)]
    for transaction in (4, 8, 11, 13, 15, 16):
        killed = {**os.environ, "HARVEST_FAULT": f"log.commit:{transaction}:kill"}
        assert subprocess.run(command, env=killed, check=False).returncode == -signal.SIGKILL
        with Store(folder, readonly=True) as store:
            check_read(store, NUMBERS)
            assert [record.value for record in store.read("summaries", 0, 0, 999)] == [summary(number) for number in NUMBERS]
            assert store.damage() == ""
        assert noted(folder) is None
    subprocess.run(command, check=True)
    steps = noted(folder)
    assert steps
    assert check_shares(folder) == len(NUMBERS)
    assert (folder / FILE).stat().st_size < before * 2 / 3
    subprocess.run(command, check=True)
    assert noted(folder) == steps


def test_old_store_shrinks_once_trims_have_freed_half(runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old store that was too large to be written anew is once it has been trimmed, and then gives back what trims free."""
    folder = tmp_path / "old"
    write_former(folder)
    with Store(folder, {topic.name: 1 for topic in runner.topology.topics}, runner=True) as store:
        runner.store = store
        monkeypatch.setattr(former, "MOST", 0)
        upkeep.upkeep(runner, 0)
        size = store.stats().file_bytes
        upkeep.upkeep(runner, 0)
        assert former.is_former(store._state)
        assert store.stats().file_bytes == size
        monkeypatch.undo()
        store.trim("summaries", 9, {0: 999})
        store.forget([], ["catalog", "register.main"])
        upkeep.upkeep(runner, 0)
        assert not former.is_former(store._state)
    assert (folder / FILE).stat().st_size < size / 3


def test_chores_run_between_turns(tmp_path: Path) -> None:
    """Chores run step by step between turns, off the event loop; an error of theirs ends the runner."""
    places: list[int] = []

    def chores() -> Iterator[None]:
        for _ in range(3):
            places.append(threading.get_ident())
            yield
        raise OSError("no more")

    async def main() -> None:
        async with Embedded(tmp_path / "data", EmbeddedSettings(children=1), print) as runner:
            runner.chores = chores()
            with pytest.raises(OSError, match="no more"):
                await runner.run(forever=True)

    asyncio.run(main())
    assert len(places) == 3
    assert threading.get_ident() not in places


def test_upkeep_in_progress_is_not_restarted(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While upkeep is in progress no other one starts: its last steps would never be done."""
    monkeypatch.setattr(upkeep, "EVERY", 0.0)
    runner.chores = None
    service = upkeep.Service(runner, 0)
    service.seen()
    first = runner.chores
    assert first is not None
    service.seen()
    assert runner.chores is first
    runner.chores = None
    service.seen()
    assert runner.chores not in (None, first)


def rejected(url: str, version: int, *, path: str = "", reason: str = "damaged") -> Rejected:
    """A dead letter of essence."""
    return Rejected(stage="essence", reason=reason, url=url, path=path, version=version, time=1)


def reject(runner: Any, *letters: Rejected, time: int) -> None:
    """Append dead letters with a given time."""
    with runner.store.transaction() as tx:
        for letter in letters:
            tx.append("rejected", 0, letter.url.encode(), encode(letter), time)


def left(runner: Any) -> list[int]:
    """The offsets of the remaining dead letters."""
    return [logged.offset for logged in runner.store.read("rejected", 0, 0, 99)]


def complete(runner: Any, url: str, version: int) -> None:
    """Report to the catalogue that an object was parsed successfully."""
    with runner.store.transaction() as tx:
        rows = tx.rows("catalog", 0)
        for _ in catalog(
            rows, Complete(object_url=url, version=version, time=1, attempt="x", count=0), Origin("made", 0, version, 0)
        ):
            raise AssertionError("there is nothing to say of it")


def test_upkeep_keeps_current_rejections(runner: Any) -> None:
    """Of old rejections the latest of each origin stays while it is current; earlier ones, and those that ended, are dropped."""
    url, well, again = "http://h/a", "http://h/b", "http://h/c"
    reject(runner, rejected(url, 1), rejected(url, 2), rejected(url, 2, path="m"), time=1)
    reject(runner, rejected(well, 1), rejected(again, 1), rejected(again, 1, reason=RETRIED), time=1)
    complete(runner, well, 2)
    before = standing(StoreLog(runner.store))
    upkeep.upkeep(runner, 7 * DAY)
    assert left(runner) == [1, 2]
    assert standing(StoreLog(runner.store)) == before
    assert [(one.url, one.path, one.version) for one in before] == [(url, "", 2), (url, "m", 2)]


def test_upkeep_keeps_young_rejections(runner: Any) -> None:
    """Rejections younger than the retention stay, whatever their state, with the records that ended them or that they ended."""
    url = "http://h/a"
    reject(runner, rejected(url, 1, reason=RETRIED), time=1)
    reject(runner, rejected(url, 0), rejected("http://h/b", 1), time=now_ms())
    complete(runner, "http://h/b", 2)
    upkeep.upkeep(runner, 7 * DAY)
    assert left(runner) == [0, 1, 2]
    assert standing(StoreLog(runner.store)) == []


def test_rejections_are_read_only_after_growth(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic of rejections is read whole only if it has grown, not at every upkeep."""
    monkeypatch.setattr(upkeep, "GROWN", 3)
    for number, expected in enumerate(([0], [0, 1], [2], [2, 3], [2, 3, 4], [5])):
        reject(runner, rejected("http://h/a", number), time=1)
        upkeep.upkeep(runner, 7 * DAY)
        assert left(runner) == expected
