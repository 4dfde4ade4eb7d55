"""The index sink of an embedded runner."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from schemas.codec import decode, encode
from schemas.query import Every
from schemas.records import Rejected, Summary
from sinks.index.tantivy.index import TantivyIndex
from streams.embedded import runner as running
from streams.embedded import sink as module
from streams.embedded.sink import IndexSink
from streams.store import Store
from streams.store.data_folder import index_folder


def summary(number: int) -> Summary:
    """One of many."""
    url = f"http://a/{number}"
    return Summary(oid=url, url=url, object_url=url, gatherer="g", version=1, time=1, type="Text", published=1)


def test_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far behind it is, the sink commits after a batch and a step at the most, and comes to the end of the topic."""
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "STEP", 4)
    commits: list[int] = []
    commit: Callable[..., None] = TantivyIndex.commit

    def counted(index: TantivyIndex, offsets: Mapping[int, int]) -> None:
        commits.append(sum(offsets.values()) - sum(index.offsets().values()))
        commit(index, offsets)

    monkeypatch.setattr(TantivyIndex, "commit", counted)
    with Store(tmp_path, {"broker.main": 2}) as store:
        records: list[Any] = [(b"%d" % number, summary(number)) for number in range(100)]
        store.append("broker.main", records)
        sink = IndexSink(tmp_path, "main")
        sink.start()
        for _ in range(600):
            if sink.caught_up(store.ends("broker.main")):
                break
            sink.nudge()
            time.sleep(0.05)
        sink.close()
    assert sink.error is None
    assert sum(commits) == 100
    assert max(commits) <= 14
    index = TantivyIndex(index_folder(tmp_path, "main"), writable=False)
    assert index.count(Every()) == 100


@pytest.mark.parametrize(("lacking", "busy", "nudges"), [(3, "yynn", 1), (2, "yn", 0), (3, "n", 0)])
def test_the_index_is_hastened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: int, busy: str, nudges: int) -> None:
    """When the last object has been fetched the index commits, once, if there is much to commit."""
    monkeypatch.setattr(running, "NEARLY", 3)
    runner = running.Embedded(tmp_path, running.EmbeddedSettings(children=1), pytest.fail)
    with closing(runner.store), closing(runner._reading):
        runner.store.append("broker.main", [(b"%d" % number, summary(number)) for number in range(lacking)])
        nudged: list[None] = []
        monkeypatch.setattr(runner.sinks["main"], "nudge", lambda: nudged.append(None))
        for answer in busy:
            monkeypatch.setattr(runner.fetch, "busy", partial(answer.__eq__, "y"))
            runner._hasten()
    assert len(nudged) == nudges


def test_an_index_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty topic is in the index when there is one: who asks it as soon as the sink has caught up finds it."""
    may_open = threading.Event()
    opening = IndexSink._open

    def slow(sink: IndexSink, store: Store) -> TantivyIndex:
        may_open.wait(30)
        return opening(sink, store)

    monkeypatch.setattr(IndexSink, "_open", slow)
    with Store(tmp_path, {"broker.main": 1}) as store:
        sink = IndexSink(tmp_path, "main")
        woken = threading.Event()
        sink.wake = woken.set
        sink.start()
        assert not sink.caught_up(store.ends("broker.main"))
        may_open.set()
        assert woken.wait(30)
        assert sink.caught_up(store.ends("broker.main"))
        sink.close()
    assert TantivyIndex(index_folder(tmp_path, "main"), writable=False).count(Every()) == 0


def test_what_is_no_change(tmp_path: Path) -> None:
    """Garbage becomes a dead letter with its bytes; what stands before it under its key is applied, and what stands behind it."""
    rejected = encode(Rejected(stage="x", reason="x", time=1))
    with Store(tmp_path, {"broker.main": 1, "rejected": 1}) as store:
        store.append("broker.main", [(b"1", summary(1))])
        with store.transaction() as tx:
            tx.append("broker.main", 0, b"1", b"garbage", 1)
            tx.append("broker.main", 0, b"2", rejected, 1)
        store.append("broker.main", [(b"3", summary(3))])
        sink = IndexSink(tmp_path, "main")
        sink.start()
        sink.close()
        assert sink.error is None
        letters = [cast("Rejected", decode(each.value or b"")) for each in store.read("rejected", 0, 0, 9)]
    assert [(each.stage, each.topic, each.offset, each.key, each.value) for each in letters] == [
        ("index", "broker.main", 1, b"1", b"garbage"),
        ("index", "broker.main", 2, b"2", rejected),
    ]
    assert letters[1].reason == "not a record: a Rejected"
    assert TantivyIndex(index_folder(tmp_path, "main"), writable=False).count(Every()) == 2


def ahead(folder: Path) -> None:
    """An index of another day: it has applied more than there is."""
    index = TantivyIndex(index_folder(folder, "main"))
    index.apply([summary(7)], {0: 9})
    index.close()


def damaged(folder: Path) -> None:
    """An index that cannot be read."""
    ahead(folder)
    (index_folder(folder, "main") / "meta.json").write_text("{")


@pytest.mark.parametrize("before", [ahead, damaged], ids=lambda before: before.__name__)
def test_an_index_that_is_not_of_this_log(tmp_path: Path, before: Callable[[Path], None]) -> None:
    """An index that knows more than the log, or that cannot be read, is made anew from the topic."""
    with Store(tmp_path, {"broker.main": 1}) as store:
        before(tmp_path)
        store.append("broker.main", [(b"1", summary(1)), (b"2", summary(2))])
        sink = IndexSink(tmp_path, "main")
        sink.start()
        sink.close()
        assert sink.error is None
    index = TantivyIndex(index_folder(tmp_path, "main"), writable=False)
    assert {hit.url for hit in index.search(Every()).hits} == {summary(1).url, summary(2).url}
    assert index.offsets() == {0: 2}
