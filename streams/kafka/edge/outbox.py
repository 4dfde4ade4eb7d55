"""What an edge gives, on its way to the broker: sent in order, and known to be there.

Strategy: a producer is given what goes out together, up to a limit, and is then asked to send it (`mends.flushed`).

Laws:
- A producer that fails for good is not used again: it may leave out what it failed at. Its process ends.
- A record that the broker finds too large is told to whoever sent it; all else is tried again by the client until it gives up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.wire import SINGLE, Wire
from streams.edges.base import Finished
from streams.edges.parse_job import Frame
from streams.kafka.decide.client_workarounds import HELD, PARTITIONER, Parts, flushed
from streams.kafka.edge.source import Headers

LARGEST = 64 << 20
"""Bytes of a message that the client lets pass; what the topic takes, the broker says."""
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.RECORD_LIST_TOO_LARGE})


def producing(kafka: str) -> dict[str, Any]:
    """Settings of a producer that keeps what it is given in order; `kafka`: host:port, parted by commas."""
    return {
        "bootstrap.servers": kafka,
        "client.id": "harvest",
        "acks": "all",
        "enable.idempotence": True,
        "message.max.bytes": LARGEST,
        **HELD,
        # What the client has to say is said where all else is.
        "logger": logging.getLogger("harvest.kafka"),
        **PARTITIONER,
    }


class Outbox:
    """A producer, and what it has sent. `prefix` stands before each name of a topic there, `wire` is how values stand."""

    def __init__(self, kafka: str, prefix: str, settings: Mapping[str, Any], wire: Wire = SINGLE) -> None:
        self._wire = wire
        self._producer = Producer({**producing(kafka), **settings})
        self._prefix = prefix
        self._parts = Parts()
        self._left = 0
        self._failed: KafkaError | None = None
        self.wrote: Callable[[Frame, int, int], None] = lambda *_: None
        """Is told of a frame that the broker has, and where: partition and offset."""
        self.refused: set[tuple[int, int]] = set()
        """Partition and offset of inputs whose outputs the broker did not take, all of them."""

    async def put(self, frames: Iterable[Frame], cause: tuple[int, int], headers: Headers) -> None:
        """Send the outputs of one input; `headers` go with what is rejected. Raises KafkaException."""
        for frame in frames:
            value = self._wire.frame(frame.topic, frame.value)
            rejected = headers if frame.topic == "rejected" else []
            if self._parts.counted(frame.key, value):
                await self.acknowledged()
            while True:
                try:
                    self._producer.produce(
                        self._prefix + frame.topic,
                        value,
                        frame.key,
                        frame.partition,
                        on_delivery=lambda error, message, frame=frame: self._delivered(error, message, cause, frame),  # type: ignore[misc]
                        headers=rejected,
                    )
                except BufferError:
                    await flushed(self._producer)
                except KafkaException as error:
                    if error.args[0].code() not in TOO_LARGE:
                        raise
                    self.refused.add(cause)
                    break
                else:
                    self._left += 1
                    break

    async def acknowledged(self) -> None:
        """Wait until the broker has all that was put. Raises KafkaException where it will never have it."""
        while self._left:
            await flushed(self._producer)
        if self._failed is not None:
            raise KafkaException(self._failed)

    async def send(self, finished: Iterable[tuple[Finished, Headers]]) -> None:
        """Send what records gave, and wait until the broker has it. Raises KafkaException."""
        for one, headers in finished:
            await self.put(one.frames, (one.partition, one.offset), headers)
        await self.acknowledged()
        self._parts = Parts()

    def _delivered(self, error: KafkaError | None, message: Message, cause: tuple[int, int], frame: Frame) -> None:
        self._left -= 1
        if error is None:
            self.wrote(frame, message.partition() or 0, message.offset() or 0)
            return
        if error.code() in TOO_LARGE:
            self.refused.add(cause)
        else:
            self._failed = error
