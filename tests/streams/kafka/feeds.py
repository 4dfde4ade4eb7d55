"""Feeds on Kafka: a topic of summaries, workers that fill feeds from it, and what is in a feed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from schemas.codec import encode
from sinks.feed.errors import FeedMissing, FeedPartial
from sinks.feed.reader import FeedReader
from streams.kafka.client.cluster import Cluster
from streams.kafka.sink.index_sink import IndexSink, sink_options
from streams.operations.feed import feed_file, open_feed
from streams.topology.flow import FEED, TopologySettings, topology
from tests.sinks.feed.conftest import Stream, made
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.threads import beside

STAGE: Any = topology(TopologySettings(feed=True)).stage(FEED)
PARTITIONS = 2


class FeedWorld:
    """A topic of summaries, and workers that fill feeds from it."""

    def __init__(self, broker: Broker) -> None:
        self.cluster = Cluster(broker.address, f"{broker.topics.prefix}-")
        self.broker = broker
        self.topic = broker.topics.make("summaries", PARTITIONS)
        broker.topics.make("rejected", 1)

    def send(self, *names: str, partition: int) -> None:
        """Append summaries to a partition."""
        found = [made(name) for name in names]
        self.broker.append(self.topic, [(one.oid.encode(), encode(one)) for one in found], partition)

    @contextmanager
    def worker(self, folder: Path) -> Iterator[IndexSink]:
        """Run a worker that fills the feed of a folder."""
        with closing(open_feed(folder, "g")) as feed:
            sink = IndexSink(self.cluster, "main", feed, stage=STAGE, session=120.0, **sink_options(remote=False))
            with beside(lambda stop: sink.run(stop.is_set)):
                yield sink


def until(found: Callable[[], bool]) -> None:
    """Wait until something holds, for a minute at the most."""
    for _ in range(1_200):
        if found():
            return
        time.sleep(0.05)
    pytest.fail("it does not come to hold")


def titles(folder: Path) -> list[str] | None:
    """Return the titles in the stream of a feed; None while it must not be sent."""
    try:
        with closing(FeedReader(feed_file(folder))) as reader:
            reader.require_whole()
            return Stream(reader.complete()).titles
    except (FeedMissing, FeedPartial):
        return None


def offsets(folder: Path) -> dict[int, int]:
    """Return the offsets of a feed."""
    with closing(FeedReader(feed_file(folder))) as reader:
        return dict(reader.offsets())


def whole(folder: Path) -> list[int]:
    """Return the partitions that a feed has read to their ends."""
    with closing(FeedReader(feed_file(folder))) as reader:
        return [one.partition for one in reader.positions() if one.whole]
