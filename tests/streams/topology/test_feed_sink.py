"""The feed sink of the embedded runner, and filling a feed from a log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from schemas.codec import decode
from schemas.records import Record, Rejected
from sinks.feed.reader import FeedReader
from streams.embedded.feed_sink import FeedSink
from streams.operations import feed as module
from streams.operations.feed import feed_file, feed_offsets, fill_feed, open_feed
from streams.store import Store
from tests.sinks.feed.conftest import Stream, gone, made

TOPICS = {"summaries": 2, "rejected": 2}


def append(store: Store, records: Iterable[Record]) -> None:
    """Append summaries or removals."""
    store.append("summaries", [(one.oid.encode(), one) for one in records])  # type: ignore[attr-defined]


def titles(folder: Path) -> list[str]:
    """Return the titles of the summaries in a feed."""
    reader = FeedReader(feed_file(folder))
    try:
        return Stream(reader.complete()).titles
    finally:
        reader.close()


def applied(folder: Path, store: Store) -> FeedSink:
    """Run a sink until it has everything, and close it."""
    sink = FeedSink(folder, "g")
    sink.start()
    for _ in range(600):
        if sink.caught_up(store.ends("summaries")) or sink.error is not None:
            break
        sink.nudge()
        time.sleep(0.02)
    sink.close()
    assert sink.error is None
    return sink


def test_sink_follows_the_topic(tmp_path: Path) -> None:
    """The feed has what the topic has, over restarts; a runner knows which offsets were applied."""
    with Store(tmp_path, TOPICS) as store:
        append(store, [made("a"), made("b"), gone("a", 2)])
        applied(tmp_path, store)
        append(store, [made("c", 3), made("b", 3, title="b2")])
        sink = applied(tmp_path, store)
        assert titles(tmp_path) == ["b2", "c"]
        assert [sink.applied(p) for p in range(2)] == list(store.ends("summaries"))
        assert feed_offsets(tmp_path) == dict(enumerate(store.ends("summaries")))


def test_refused_and_undecodable_records_are_rejected(tmp_path: Path) -> None:
    """What is no summary, and what SOIF cannot express, becomes a dead letter of the feed; the rest is applied."""
    with Store(tmp_path, TOPICS) as store:
        append(store, [made("a"), replace(made("b"), url="http://a\nb"), made("c")])
        with store.transaction() as tx:
            tx.append("summaries", 0, b"k", b"no record", 1)
        applied(tmp_path, store)
        letters = [cast("Rejected", decode(one.value or b"")) for p in range(2) for one in store.read("rejected", p, 0, 9)]
        assert {one.stage for one in letters} == {"feed"}
        assert sorted(one.reason.partition(":")[0] for one in letters) == ["not a record", "refused by the feed"]
        assert titles(tmp_path) == ["a", "c"]


def test_feed_ahead_of_its_topic_is_filled_again(tmp_path: Path) -> None:
    """A feed of a later copy of the log is emptied: its marks and offsets are of records that do not exist."""
    with Store(tmp_path / "one", TOPICS) as store:
        append(store, [made(str(number)) for number in range(9)])
        applied(tmp_path / "one", store)
        epoch = FeedReader(feed_file(tmp_path / "one")).state().mark.epoch
    with Store(tmp_path / "two", TOPICS) as store:
        append(store, [made("a")])
        feed_file(tmp_path / "one").parent.rename(feed_file(tmp_path / "two").parent)
        applied(tmp_path / "two", store)
    assert titles(tmp_path / "two") == ["a"]
    assert FeedReader(feed_file(tmp_path / "two")).state().mark.epoch != epoch


def test_damaged_feed_is_made_anew(tmp_path: Path) -> None:
    """A feed that cannot be read is deleted, and filled from the topic."""
    with Store(tmp_path, TOPICS) as store:
        append(store, [made("a")])
        feed_file(tmp_path).parent.mkdir()
        feed_file(tmp_path).write_bytes(b"damaged" * 1_000)
        applied(tmp_path, store)
    assert titles(tmp_path) == ["a"]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_filling_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """Batches of any size give the same feed, and a limit ends after a batch."""
    monkeypatch.setattr(module, "BATCH", batch)
    with Store(tmp_path, TOPICS) as store:
        append(store, [made("a"), made("b"), gone("a", 2), made("c"), made("b", 0, title="old")])
        feed = open_feed(tmp_path, "g", store.ends("summaries"))
        letters: list[Sequence[Rejected]] = []
        assert fill_feed(store, feed, letters.append, limit=1) <= max(1, batch)
        fill_feed(store, feed, letters.append)
        assert fill_feed(store, feed, letters.append) == 0
        assert not letters
        feed.close()
    assert titles(tmp_path) == ["b", "c"]
