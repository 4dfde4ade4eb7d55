"""What a stage that decides gives, rows and outputs, on its way to the broker.

Strategy: confluent-kafka sends it, in C: Faust's own producer would take a tenth of a millisecond for each record, which is more
than most stages decide in. Whoever sends waits until the broker has acknowledged all of it, and what is much goes in several
parts, one behind the other (`mends.flushed`).

Laws:
- Records are sent in their order, and stand so in each partition: the producer is idempotent.
- What the broker does not take is tried again for a while; whoever waits is told in the end, and its process ends.
- Nothing leaves a process that was asleep for about as long as its session lasts, since others may own the partition by then:
  neither what it is told to send, nor what waited in the client. An old row behind a newer one would be what the next owner finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.kafka.decide.client_workarounds import Parts, flushed
from streams.kafka.edge.outbox import producing

PATIENCE = 30.0
"""Seconds that a broker has to take records, though a session is shorter: it may be starting anew."""
LET_GO = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - its public name
"""What the client says of a record that has waited for too long."""
ANY = -1
"""For a partition: that of the key."""


class Outgoing(NamedTuple):
    """A record on its way; a dead letter has the headers of what it is about. No value: the key is to be forgotten."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int = ANY
    headers: Any = None


class RecordPosition(NamedTuple):
    """Where a record stands."""

    partition: int
    offset: int


class Sender:
    """A producer. For one event loop."""

    def __init__(self, kafka: str, session: Callable[[], float], awake: Callable[[], None] = lambda: None) -> None:
        """`kafka`: host:port, parted by commas; `session` gives the seconds that a record may wait in the client.

        It is asked once, when the producer is made; `awake` before each send: it raises where the process was asleep for as long.
        """
        self._session = session
        self._awake = awake
        self._settings = producing(kafka)
        self._producer: Producer | None = None
        self._left = 0
        self._failed: KafkaError | None = None

    @property
    def left(self) -> int:
        """Records that the broker has not acknowledged yet: where the sending was given up, it may never have them."""
        return self._left

    def begin(self) -> Producer:
        """The producer. Made some time before its first record, it knows a broker by then (`mends.met`)."""
        if self._producer is None:
            # As it wakes the client lets go of what has waited for too long, before it sends anything.
            self._producer = Producer({**self._settings, "delivery.timeout.ms": int(self._session() * 1_000)})
        return self._producer

    async def send(self, records: Sequence[Outgoing]) -> list[RecordPosition]:
        """Send records, and wait until the broker has them; gives where each stands. Raises KafkaException, and as `awake` does."""
        if not records:
            return []
        self._awake()
        until = time.monotonic() + PATIENCE
        places, first = [RecordPosition(ANY, ANY)] * len(records), 0
        while True:
            await self._send(self.begin(), records, places, first)
            if self._failed is None:
                return places
            if self._failed.code() != LET_GO or time.monotonic() > until:
                raise KafkaException(self._failed)
            self._awake()
            # What came behind the first that was let go comes again behind it, so that of each key the last one stays the last.
            self._failed, first = None, places.index(RecordPosition(ANY, ANY))

    async def _send(self, producer: Producer, records: Sequence[Outgoing], places: list[RecordPosition], first: int) -> None:
        """Send them from the first on, and wait until each was answered; not those behind a part of which one was not taken."""
        parts = Parts()
        for number in range(first, len(records)):
            topic, key, value, to, headers = records[number]
            if parts.counted(key, value):
                await self._answered(producer)
                if self._failed is not None:
                    return
                self._awake()
            places[number] = RecordPosition(ANY, ANY)
            told = partial(self._delivered, places, number)
            # Faust's messages have them in a tuple, which the client does not take.
            with_them = list(headers.items() if isinstance(headers, Mapping) else headers or ())
            while True:
                try:
                    producer.produce(topic, value, key, to, on_delivery=told, headers=with_them)
                except BufferError:
                    await self._look(producer)
                    self._awake()
                else:
                    self._left += 1
                    break
        await self._answered(producer)

    async def _answered(self, producer: Producer) -> None:
        while self._left:
            await self._look(producer)

    async def _look(self, producer: Producer) -> None:
        await flushed(producer)

    def _delivered(self, places: list[RecordPosition], number: int, error: KafkaError | None, message: Message) -> None:
        self._left -= 1
        if error is None:
            places[number] = RecordPosition(message.partition() or 0, message.offset() or 0)
        elif self._failed is None or self._failed.code() == LET_GO:
            # Of what went wrong, that which cannot be tried again counts.
            self._failed = error
