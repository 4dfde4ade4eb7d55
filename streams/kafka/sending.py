"""What a stage that decides gives, rows and outputs, on its way to the broker.

Strategy: confluent-kafka sends it, in C: Faust's own producer would take a tenth of a millisecond for each record, which is more
than most stages decide in. Whoever sends waits until the broker has acknowledged all of it.

Laws:
- Records are sent in their order, and stand so in each partition: the producer is idempotent.
- What the broker does not take is tried again for about as long as a session lasts, since others may own the partition then;
  whoever waits is told, and its process ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.kafka.outbox import LULL, producing

PATIENCE = 30.0
"""Seconds that a broker has to take a record, also where a session is shorter: it may be starting anew."""
ANY = -1
"""For a partition: that of the key."""


class Outgoing(NamedTuple):
    """A record on its way; a dead letter has the headers of what it is about. No value: the key is to be forgotten."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int = ANY
    headers: Any = None


class Place(NamedTuple):
    """Where a record stands."""

    partition: int
    offset: int


class Sender:
    """A producer. For one event loop."""

    def __init__(self, kafka: str, session: Callable[[], float]) -> None:
        """`kafka`: host:port, parted by commas; `session` gives the seconds of a session, once there is something to send."""
        self._session = session
        self._settings = producing(kafka)
        self._producer: Producer | None = None
        self._left = 0
        self._failed: KafkaError | None = None

    @property
    def left(self) -> int:
        """Records that the broker has not acknowledged yet: where the sending was given up, it may never have them."""
        return self._left

    async def send(self, records: Sequence[Outgoing]) -> list[Place]:
        """Send records, and wait until the broker has them; gives where each stands. Raises KafkaException."""
        if not records:
            return []
        if self._producer is None:
            patience = max(self._session(), PATIENCE)
            self._producer = Producer({**self._settings, "delivery.timeout.ms": int(patience * 1_000)})
        places = [Place(ANY, ANY)] * len(records)
        for number, (topic, key, value, to, headers) in enumerate(records):
            told = partial(self._delivered, places, number)
            # Faust's messages have them in a tuple, which the client does not take.
            with_them = list(headers.items() if isinstance(headers, Mapping) else headers or ())
            while True:
                try:
                    self._producer.produce(topic, value, key, to, on_delivery=told, headers=with_them)
                except BufferError:
                    await self._look(self._producer)
                else:
                    self._left += 1
                    break
        while self._left:
            await self._look(self._producer)
        if self._failed is not None:
            raise KafkaException(self._failed)
        return places

    async def _look(self, producer: Producer) -> None:
        if not producer.poll(0):
            await asyncio.sleep(LULL)

    def _delivered(self, places: list[Place], number: int, error: KafkaError | None, message: Message) -> None:
        self._left -= 1
        if error is None:
            places[number] = Place(message.partition() or 0, message.offset() or 0)
        else:
            self._failed = error
