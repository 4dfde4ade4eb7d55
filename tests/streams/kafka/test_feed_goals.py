"""Up to which ends a feed on Kafka is read, without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from sinks.feed.feed import Feed
from sinks.feed.partitions import Position
from streams.kafka.sink.buffer import Part
from streams.kafka.sink.feed_filling import FRESH, FeedFilling
from tests.sinks.feed.conftest import made


class Topic:
    """A consumer's view of a topic, and a clock."""

    def __init__(self, *ends: int) -> None:
        self.ends = list(ends)
        self.now = 0.0
        self.error: KafkaError | None = None

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        """Return the first offset and the end of a partition."""
        return 0, self.ends[place.partition]

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Return the partitions of the topic."""
        return SimpleNamespace(topics={topic: SimpleNamespace(error=self.error, partitions=dict.fromkeys(range(len(self.ends))))})


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[Feed]:
    """An empty feed."""
    with closing(Feed(tmp_path / "feed", "g")) as found:
        yield found


def filling(topic: Topic, feed: Feed, notes: list[str]) -> FeedFilling:
    """Return the filling of a feed from a topic."""
    return FeedFilling(cast("Any", topic), "summaries", feed, notes.append, lambda: topic.now)


def test_slow_fill_is_read_up_to_a_newer_end(feed: Feed) -> None:
    """An end that was reached long after it was asked for is replaced by the present one: records may be gone meanwhile."""
    topic = Topic(10)
    found = filling(topic, feed, [])
    assert [place.offset for place in found.starts([0])] == [0]
    topic.ends, topic.now = [15], FRESH + 1
    found.proceed({0: Part(10)})
    assert not feed.positions()[0].whole
    topic.ends, topic.now = [17], FRESH + 5
    found.proceed({0: Part(14)})
    assert not feed.positions()[0].whole
    found.proceed({0: Part(15)})
    assert list(feed.positions()) == [Position(0, 15, None, True)]


def test_partitions_of_others_are_expected(feed: Feed) -> None:
    """A worker that has one of three partitions marks that one alone, and the feed knows of the others."""
    topic = Topic(0, 4, 4)
    found = filling(topic, feed, [])
    found.starts([1])
    found.proceed({1: Part(4)})
    assert list(feed.positions()) == [Position(0, 0, None, False), Position(1, 4, None, True), Position(2, 0, None, False)]


def test_unknown_number_of_partitions_changes_nothing(feed: Feed) -> None:
    """A broker that has no metadata of the topic just now is asked again later: a feed is not whole for want of partitions."""
    topic = Topic(1)
    topic.error = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    with pytest.raises(KafkaException):
        filling(topic, feed, []).starts([0])
    assert not feed.positions()


def test_markers_of_transactions_are_passed(feed: Feed) -> None:
    """A partition whose last offsets have no records is whole once it was read to its end."""
    found = filling(Topic(5), feed, [])
    found.starts([0])
    part = Part(4)
    found.proceed({0: part})
    assert not feed.positions()[0].whole
    part.end = 5
    found.proceed({0: part})
    assert list(feed.positions()) == [Position(0, 5, None, True)]


def test_feed_that_does_not_fit_its_topic_is_filled_again(feed: Feed) -> None:
    """A feed ahead of its topic is emptied, and read up to the end from the first record on."""
    feed.expect(1, {0: 9})
    feed.apply([made("old")], {0: 9})
    feed.mark_whole({0: 9})
    notes: list[str] = []
    assert [place.offset for place in filling(Topic(3), feed, notes).starts([0])] == [0]
    assert list(feed.positions()) == [Position(0, 0, 3, False)]
    assert notes[0].startswith("the feed is made anew: ")
