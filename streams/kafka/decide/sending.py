"""Sends the rows and outputs of a stateful stage to the broker.

Strategy: confluent-kafka sends them, in C: Faust's own producer would take 0.1 ms for each record, longer than most stages take to
decide one. A send waits until the broker has acknowledged everything; large sends are split into consecutive parts
(`client/producer.py`).

Laws:
- Each partition has the records in the order in which they were sent: the producer is idempotent.
- Records that the broker does not accept are retried for a while; then the send fails, and its process ends.
- A process that was suspended for about as long as its session lasts sends nothing, neither new records nor those waiting in the
  client, since others may own the partition by then: the next owner would recover an old row after a newer one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import SendSplitter, flush, ordered_producer, worker_client

PATIENCE = 30.0
"""Seconds that a send is retried, though a session is shorter: the broker may be restarting."""
LET_GO = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - its public name
"""Error code of the client for a record that expired in its queue."""
ANY = -1
"""Partition number that stands for the partition of the key."""


class Outgoing(NamedTuple):
    """A record to be sent; a dead letter has the headers of its origin. A value of None deletes the key."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int = ANY
    headers: Any = None


class RecordPosition(NamedTuple):
    """Partition and offset of an acknowledged record."""

    partition: int
    offset: int


class Sender:
    """Sends records with one producer. For one event loop."""

    def __init__(self, cluster: Cluster, session: Callable[[], float], awake: Callable[[], None] = lambda: None) -> None:
        """`session` returns the seconds that a record may wait in the client.

        `session` is called once, when the producer is created; `awake` before each send: it raises if the process was suspended.
        """
        self._session = session
        self._awake = awake
        self._settings = worker_client(cluster)
        self._producer: Producer | None = None
        self._left = 0
        self._failed: KafkaError | None = None

    @property
    def left(self) -> int:
        """Number of records not acknowledged yet; after an aborted send they may never be."""
        return self._left

    def begin(self) -> Producer:
        """Return the producer. If created some time before its first record, it knows a broker (`connected`)."""
        if self._producer is None:
            # After a suspension the client first drops records older than this, before it sends anything.
            self._producer = ordered_producer({**self._settings, "delivery.timeout.ms": int(self._session() * 1_000)})
        return self._producer

    async def send(self, records: Sequence[Outgoing]) -> list[RecordPosition]:
        """Send records, wait for their acknowledgement, and return their places. Raises KafkaException, and as `awake` does."""
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
            # Records after the first expired one are sent again after it, so that the last record of each key remains the last.
            self._failed, first = None, places.index(RecordPosition(ANY, ANY))

    async def _send(self, producer: Producer, records: Sequence[Outgoing], places: list[RecordPosition], first: int) -> None:
        """Send records from `first` on and wait for all answers; stop after a part in which a record failed."""
        splitter = SendSplitter()
        for number in range(first, len(records)):
            topic, key, value, to, headers = records[number]
            if splitter.begins_send(key, value):
                await self._answered(producer)
                if self._failed is not None:
                    return
                self._awake()
            places[number] = RecordPosition(ANY, ANY)
            told = partial(self._delivered, places, number)
            # Faust's messages have headers in a tuple, which the client does not accept.
            with_them = list(headers.items() if isinstance(headers, Mapping) else headers or ())
            while True:
                try:
                    producer.produce(topic, value, key, to, on_delivery=told, headers=with_them)
                except BufferError:
                    await flush(producer)
                    self._awake()
                else:
                    self._left += 1
                    break
        await self._answered(producer)

    async def _answered(self, producer: Producer) -> None:
        while self._left:
            await flush(producer)

    def _delivered(self, places: list[RecordPosition], number: int, error: KafkaError | None, message: Message) -> None:
        self._left -= 1
        if error is None:
            places[number] = RecordPosition(message.partition() or 0, message.offset() or 0)
        elif self._failed is None or self._failed.code() == LET_GO:
            # An error that cannot be retried takes precedence.
            self._failed = error
