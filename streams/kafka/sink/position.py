"""Start offsets of a sink: what they are, whether they are known, and the back-off of attempts to get them."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition

from sinks.index.errors import IndexDamaged
from streams.kafka.client.cluster import TIMEOUT

FIRST, LONGEST = 0.2, 15.0
"""Seconds between two attempts: first and longest."""


def start_of(consumer: Consumer, topic: str, partition: int, offset: int) -> TopicPartition:
    """Return the start offset of a partition, given that of the index. Raises IndexDamaged, KafkaException."""
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)
    where = f"{topic}, partition {partition}"
    if offset > high:
        raise IndexDamaged(f"the index holds more than its topic ({where}: {offset:,} of {high:,}): rebuild it")
    if 0 < offset < low:
        raise IndexDamaged(
            f"records were deleted before the index had them ({where}: from {low:,} on, {offset:,} wanted): rebuild it"
        )
    return TopicPartition(topic, partition, max(low, offset))


class PositionKeeper:
    """Whether the start offsets are known. `done`: the index returned them, and nothing has failed since."""

    def __init__(self) -> None:
        self.done = False
        self._at = 0.0
        self._pause = FIRST
        self._failing = False

    def due(self) -> bool:
        """Whether the index is to be asked now."""
        return not self.done and time.monotonic() >= self._at

    def found(self) -> None:
        """Record that the offsets are known."""
        self.done = True

    def lost(self) -> None:
        """Request an immediate new attempt."""
        self.done = False
        self._at = 0.0

    def failed(self) -> bool:
        """Request a new attempt after a growing pause; whether this is the first failure since a success."""
        self.done = False
        self._at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST)
        news, self._failing = not self._failing, True
        return news

    def succeeded(self) -> bool:
        """Reset the pause after a success; whether it is the first after a failure."""
        self._pause = FIRST
        news, self._failing = self._failing, False
        return news
