"""Dead letters on their way to `rejected`, awaited, with the headers of what they are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, Producer

from schemas.codec import encode
from schemas.records import Rejected
from streams.kafka.cluster import TIMEOUT, Cluster, ClusterError
from streams.kafka.mends import PARTITIONER
from streams.topology import REJECTED


class Letters:
    """Writes dead letters, from any thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._topic = cluster.topic(REJECTED.name)
        self._producer = Producer(cluster.client(enable__idempotence=True, linger__ms=5) | PARTITIONER)

    def send(self, letters: Iterable[tuple[Rejected, Any]]) -> None:
        """Write dead letters, each with headers, acknowledged. Raises ClusterError."""
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error)

        sent = False
        for letter, headers in letters:
            key = REJECTED.key(letter).encode()
            self._producer.produce(self._topic, encode(letter), key, headers=headers, on_delivery=delivered)
            sent = True
        if sent and (self._producer.flush(TIMEOUT) or failed):
            raise ClusterError(f"dead letters could not be written: {failed[0].str() if failed else 'no acknowledgement'}")
