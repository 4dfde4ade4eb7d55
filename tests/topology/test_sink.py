"""The index sink of an embedded runner."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas.query import Every
from schemas.records import Summary
from sinks.tantivy_index import TantivyIndex
from streams.embedded import sink as module
from streams.embedded.sink import IndexSink, index_folder
from streams.store import Store


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
