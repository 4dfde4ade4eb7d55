"""A feed on Kafka is whole only once it has read every partition to its end: fills, and workers with folders of their own."""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from sinks.feed.errors import FeedPartial
from sinks.feed.feed import Feed
from sinks.feed.reader import FeedReader
from sinks.gateway.ports import CollectionError
from streams.cli.collection import GathererCollection
from streams.config.settings import load
from streams.kafka.sink.feed_filling import FeedFilling
from streams.operations.feed import feed_file, open_feed
from tests.streams.kafka.conftest import Broker, Run
from tests.streams.kafka.feeds import PARTITIONS, FeedWorld, offsets, titles, until, whole


@pytest.fixture
def world(broker: Broker) -> FeedWorld:
    """A topic with summaries in both partitions."""
    found = FeedWorld(broker)
    found.send("a", "b", partition=0)
    found.send("c", partition=1)
    return found


def test_feed_is_refused_until_it_is_filled(world: FeedWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a worker fills a new feed, no part of it is sent, even after a restart; once it is filled, it is sent as a whole."""
    applied, hold = Feed.apply, threading.Event()

    def held(self: Feed, changes: Any, offsets: Any) -> Any:
        # One partition is applied; the batch of the other one waits.
        if any(one.url.endswith("/c") for one in changes):
            applied(self, [one for one in changes if not one.url.endswith("/c")], {0: 2})
            hold.wait()
            raise OSError("no space left")
        return applied(self, changes, offsets)

    with monkeypatch.context() as patch:
        patch.setattr(Feed, "apply", held)
        with world.worker(tmp_path):
            until(lambda: feed_file(tmp_path).exists() and bool(offsets(tmp_path)))
            assert offsets(tmp_path) == {0: 2}
            with closing(FeedReader(feed_file(tmp_path))) as reader, pytest.raises(FeedPartial, match=r"partition 1 at 0 of 1$"):
                reader.require_whole()
            hold.set()
    assert titles(tmp_path) is None
    with world.worker(tmp_path):
        until(lambda: titles(tmp_path) is not None)
        assert titles(tmp_path) == ["a", "b", "c"]


def test_two_workers_with_folders_of_their_own_send_nothing(
    world: FeedWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two workers reads one partition to its end, and neither feed is sent; when one ends, the other reads all."""
    one, other = tmp_path / "one", tmp_path / "other"
    starts = FeedFilling.starts

    def apart(self: FeedFilling, partitions: Collection[int]) -> list[TopicPartition]:
        # The worker that comes first does not read both partitions before the other one comes.
        if len(partitions) == PARTITIONS:
            raise OSError("the other worker is not there yet")
        return starts(self, partitions)

    with world.worker(one) as first:
        with monkeypatch.context() as patch:
            patch.setattr(FeedFilling, "starts", apart)
            with world.worker(other) as second:
                for folder, sink in ((one, first), (other, second)):
                    until(lambda folder=folder: bool(whole(folder)))  # type: ignore[misc]
                    assert [(world.topic, partition) for partition in whole(folder)] == sink.places()
                    assert titles(folder) is None
        until(lambda: titles(one) is not None)
        assert titles(one) == ["a", "b", "c"]


def test_workers_with_one_folder_fill_it_together(world: FeedWorld, tmp_path: Path) -> None:
    """Two workers that share a data folder read a partition each, and their feed is whole, and follows both."""
    with world.worker(tmp_path) as first, world.worker(tmp_path) as second:
        until(lambda: len(first.places()) == len(second.places()) == 1)
        world.send("d", partition=0)
        world.send("e", partition=1)
        until(lambda: titles(tmp_path) == ["a", "b", "c", "d", "e"])


def test_whole_feed_is_sent_after_a_partition_is_taken_away(world: FeedWorld, tmp_path: Path) -> None:
    """A feed that was whole lacks nothing that it had when another worker takes over a partition: it is sent as it is."""
    one, other = tmp_path / "one", tmp_path / "other"
    with world.worker(one) as first:
        until(lambda: titles(one) is not None)
        with world.worker(other) as second:
            until(lambda: len(first.places()) == len(second.places()) == 1)
            ((_, kept),) = first.places()
            world.send("new", partition=1 - kept)
            until(lambda: sum(offsets(other).values()) >= 2)
            assert titles(one) == ["a", "b", "c"]
            assert titles(other) is None
        until(lambda: titles(one) == ["a", "b", "c", "new"])


def test_partial_feed_is_refused_with_its_reason(
    world: FeedWorld, harvest: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway, `export` and `doctor` refuse a feed that lacks a partition in one line; once it is whole, it is served."""
    monkeypatch.setenv("HARVEST_FEED_ENABLED", "true")
    reason = "1 of 2 partitions are not read to the end yet: partition 1 is read elsewhere"
    with closing(GathererCollection(load(None))) as gateway, closing(open_feed(tmp_path / "harvest-data", "g")) as feed:
        feed.expect(PARTITIONS, {0: 2})
        feed.mark_whole({0: 2})
        with pytest.raises(CollectionError, match=f"^the stream is not complete: {reason}$"):
            gateway.feed()
        assert gateway.status().more[-1] == f"the stream for other Gatherers: not complete, so it is not served: {reason}"
        assert f"NOT OK  feed: not complete, so it is not served: {reason}\n" in harvest("doctor", code=1).stdout
        assert harvest("export", "summaries", "all.soif.gz", code=1).stderr == f"harvest: the stream is not complete: {reason}\n"
        assert not Path("all.soif.gz").exists()
        feed.mark_whole({1: 0})
        gateway.feed().close()
        assert "ok      feed: complete, 0 summaries, 1 records behind summaries\n" in harvest("doctor", code=1).stdout
        harvest("export", "summaries", "all.soif.gz")
