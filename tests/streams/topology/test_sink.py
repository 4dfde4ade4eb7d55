"""The index sink of the embedded runner."""

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
    """The summary of one of many objects."""
    url = f"http://a/{number}"
    return Summary(oid=url, url=url, object_url=url, gatherer="g", version=1, time=1, type="Text", published=1)


def test_sink_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large its lag, the sink commits after at most a batch and a step, and reaches the end of the topic."""
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
def test_index_commits_after_last_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: int, busy: str, nudges: int
) -> None:
    """After the fetch of the last object the index commits, once, if there is much to commit."""
    monkeypatch.setattr(running, "NEARLY", 3)
    runner = running.Embedded(tmp_path, running.EmbeddedSettings(children=1), pytest.fail)
    with closing(runner.store), closing(runner._reading):
        runner.store.append("broker.main", [(b"%d" % number, summary(number)) for number in range(lacking)])
        nudged: list[None] = []
        monkeypatch.setattr(runner.sinks["index.main"], "nudge", lambda: nudged.append(None))
        for answer in busy:
            monkeypatch.setattr(runner.fetch, "busy", partial(answer.__eq__, "y"))
            runner._hasten()
    assert len(nudged) == nudges


def test_sink_has_caught_up_only_when_index_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink with an empty topic has caught up only when its index exists."""
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


def test_undecodable_record_becomes_dead_letter(tmp_path: Path) -> None:
    """An undecodable record becomes a dead letter with its bytes; records before and behind it are applied."""
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
    """Make an index with a higher offset than its log has."""
    index = TantivyIndex(index_folder(folder, "main"))
    index.apply([summary(7)], {0: 9})
    index.close()


def damaged(folder: Path) -> None:
    """Make an index that cannot be read."""
    ahead(folder)
    (index_folder(folder, "main") / "meta.json").write_text("{")


@pytest.mark.parametrize("before", [ahead, damaged], ids=lambda before: before.__name__)
def test_unsuitable_index_is_rebuilt_from_topic(tmp_path: Path, before: Callable[[Path], None]) -> None:
    """An index that is ahead of the log, or cannot be read, is rebuilt from the topic."""
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


def test_index_of_other_languages_is_made_anew_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An index that was made for other languages is made anew from the topic, and one line says so."""
    with Store(tmp_path, {"broker.main": 1}) as store:
        store.append("broker.main", [(b"1", summary(1))])
        for languages in (("en",), ("de",)):
            sink = IndexSink(tmp_path, "main", languages=languages)
            sink.start()
            sink.close()
            assert sink.error is None
    (line,) = caplog.messages
    assert line.startswith("the index was made for the languages en, not de")
    assert line.endswith("it is made anew from broker.main")
    assert TantivyIndex(index_folder(tmp_path, "main"), writable=False).count(Every()) == 1
