"""Producer of an edge: sends outputs in order and waits for their acknowledgement.

Strategy: the producer is given a bounded group of records, then flushed (`client/producer.py`).

Laws:
- A producer that failed for good is not reused, since it may skip the record that failed: its process ends.
- A record that the broker rejects as too large is reported to the sender; the client retries all other errors until it gives up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from schemas.wire import SINGLE, Wire
from streams.edges.base import Finished
from streams.edges.parse_job import Frame
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import TOO_LARGE, SendSplitter, flush, ordered_producer, worker_client
from streams.kafka.edge.source import Headers


class Outbox:
    """Producer with the state of its sends. `settings`: further ones of the client; `wire` is the format of values."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, Any], wire: Wire = SINGLE) -> None:
        self._wire = wire
        self._producer = ordered_producer({**worker_client(cluster), **settings})
        self._prefix = cluster.prefix
        self._splitter = SendSplitter()
        self._left = 0
        self._failed: KafkaError | None = None
        self.wrote: Callable[[Frame, int, int], None] = lambda *_: None
        """Callback for an acknowledged frame, with its partition and offset."""
        self.refused: set[tuple[int, int]] = set()
        """Partition and offset of inputs of which the broker rejected an output as too large."""

    async def put(self, frames: Iterable[Frame], cause: tuple[int, int], headers: Headers) -> None:
        """Send the outputs of one input; `headers` go with dead letters. Raises KafkaException."""
        for frame in frames:
            value = self._wire.frame(frame.topic, frame.value)
            rejected = headers if frame.topic == "rejected" else []
            if self._splitter.begins_send(frame.key, value):
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
                    await flush(self._producer)
                except KafkaException as error:
                    if error.args[0].code() not in TOO_LARGE:
                        raise
                    self.refused.add(cause)
                    break
                else:
                    self._left += 1
                    break

    async def acknowledged(self) -> None:
        """Wait until the broker has acknowledged everything sent. Raises KafkaException if a send failed for good."""
        while self._left:
            await flush(self._producer)
        if self._failed is not None:
            raise KafkaException(self._failed)

    async def send(self, finished: Iterable[tuple[Finished, Headers]]) -> None:
        """Send the outputs of finished records, and wait for their acknowledgement. Raises KafkaException."""
        for one, headers in finished:
            await self.put(one.frames, (one.partition, one.offset), headers)
        await self.acknowledged()
        self._splitter = SendSplitter()

    def _delivered(self, error: KafkaError | None, message: Message, cause: tuple[int, int], frame: Frame) -> None:
        self._left -= 1
        if error is None:
            self.wrote(frame, message.partition() or 0, message.offset() or 0)
            return
        if error.code() in TOO_LARGE:
            self.refused.add(cause)
        else:
            self._failed = error
