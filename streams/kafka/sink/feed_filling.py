"""Fills a feed from a cluster: which partitions it has to read, up to which ends, and when it is whole.

A worker reads the partitions that its group gives it. Its feed is whole once it has read all partitions of the topic to their ends;
what others have read is in the feeds of other data folders. Laws:
- A partition counts as read once everything below an end that the topic had not more than FRESH seconds before was applied. While
  records are read, later ones may make Kafka drop those that come next: what is missing then is in later records.
- A partition that another worker takes over later stays as it is (`sinks/feed/partitions.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from sinks.feed.feed import Feed
from sinks.index.errors import IndexDamaged
from streams.kafka.client.cluster import TIMEOUT
from streams.kafka.sink.buffer import Part
from streams.kafka.sink.position import start_of

FRESH = 60.0
"""Seconds that it may take to reach an end. Kafka drops a superseded record once its segment is closed: not within seconds."""


class Goal(NamedTuple):
    """An end up to which a partition has to be read, and the time (monotonic) when the topic had it."""

    end: int
    asked: float


class FeedFilling:
    """Starts of a feed's partitions, and their ends; for the polling thread, while no request to the feed is under way."""

    def __init__(
        self, consumer: Consumer, topic: str, feed: Feed, note: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._consumer = consumer
        self._topic = topic
        self._feed = feed
        self._note = note
        self._clock = clock
        self._goals: dict[int, Goal] = {}
        self._here = 0
        """Number of partitions that were read here when that was last noted."""

    def starts(self, partitions: Collection[int]) -> list[TopicPartition]:
        """Store in the feed how far it has to be read, and return its start offsets; one that does not fit its topic is emptied.

        Raises OSError, KafkaException.
        """
        goals = {one: self._goal(one) for one in partitions}
        count, ends = self._count(), {one: goal.end for one, goal in goals.items()}
        self._feed.expect(count, ends)
        self._report(len(ends), count)
        try:
            places = self._places(partitions)
        except IndexDamaged as error:
            self._note(f"the feed is made anew: {error}")
            self._feed.empty()
            self._feed.expect(count, ends)
            places = self._places(partitions)
        whole = {one.partition for one in self._feed.positions() if one.whole}
        self._goals = {one: goal for one, goal in goals.items() if one not in whole}
        return places

    def proceed(self, parts: Mapping[int, Part]) -> None:
        """Store in the feed which partitions were read to their ends. Raises OSError, KafkaException."""
        reached: dict[int, int] = {}
        for partition, goal in list(self._goals.items()):
            part = parts.get(partition)
            if part is None or part.done < goal.end:
                continue
            again = self._goal(partition)
            if again.end > part.done and again.asked - goal.asked > FRESH:
                self._goals[partition] = again
            else:
                reached[partition] = part.done
        if reached:
            self._feed.mark_whole(reached)
            self._goals = {one: goal for one, goal in self._goals.items() if one not in reached}

    def touch(self, parts: Mapping[int, Part]) -> None:
        """Store in the feed that it has everything of the partitions that were read to their ends. Raises OSError."""
        self._feed.touch([partition for partition, part in parts.items() if part.end and part.done >= part.end])

    def _report(self, here: int, count: int) -> None:
        """Note once that other workers have some of the partitions."""
        before, self._here = self._here, here
        if here not in (count, before):
            why = "a feed is served once its own worker has read all of them"
            self._note(f"feed: {here} of {count} partitions are read here: {why}")

    def _places(self, partitions: Collection[int]) -> list[TopicPartition]:
        offsets = self._feed.offsets()
        return [start_of(self._consumer, self._topic, one, offsets.get(one, 0)) for one in partitions]

    def _goal(self, partition: int) -> Goal:
        asked = self._clock()
        return Goal(self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=TIMEOUT)[1], asked)

    def _count(self) -> int:
        """Return the number of partitions of the topic. Raises KafkaException."""
        found = self._consumer.list_topics(self._topic, timeout=TIMEOUT).topics[self._topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return len(found.partitions)
