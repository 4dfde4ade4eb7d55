"""Producer of dead letters to `rejected`: waits for acknowledgements, and keeps the headers of the original record.

Laws:
- Dead letters use the cluster's wire format: `rejected` has one format.
- A dead letter that is too large for the topic is sent without the bytes: a record of maximal size does not fit into a dead letter,
  and remains readable at the letter's origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message

from schemas.codec import encode
from schemas.records import Rejected
from streams.kafka.client.cluster import TIMEOUT, Cluster, ClusterError
from streams.kafka.client.producer import TOO_LARGE, SendSplitter, ordered_producer
from streams.kafka.client.registry import wire
from streams.topology.flow import REJECTED

Letter = tuple[Rejected, Any]
"""A dead letter and its headers."""


class DeadLetterProducer:
    """Writes dead letters, from any thread."""

    def __init__(self, cluster: Cluster) -> None:
        """Raises ClusterError for an invalid registry URL."""
        self._topic = cluster.topic(REJECTED.name)
        self._wire = wire(cluster, (REJECTED,))
        self._producer = ordered_producer(cluster.client())

    def send(self, letters: Iterable[Letter]) -> None:
        """Write dead letters and wait for their acknowledgement. Raises ClusterError, KafkaException."""
        large = self._too_large(letters)
        if large and self._too_large((msgspec.structs.replace(letter, value=None), headers) for letter, headers in large):
            raise ClusterError("dead letters could not be written: their keys and headers alone are too large for the log")

    def _too_large(self, letters: Iterable[Letter]) -> list[Letter]:
        """Write dead letters; return those that are too large by themselves. Raises ClusterError, KafkaException."""
        large = self._sent(letters)
        # The broker rejects a whole batch if one record, or all together, is too large: try each alone.
        return [each for one in large for each in self._sent([one])] if len(large) > 1 else large

    def _sent(self, letters: Iterable[Letter]) -> list[Letter]:
        """Write dead letters; return those refused as too large. Raises ClusterError, KafkaException."""
        large: list[Letter] = []
        failed: list[KafkaError] = []

        def delivered(one: Letter, error: KafkaError | None, _: Message) -> None:
            if error is not None and error.code() in TOO_LARGE:
                large.append(one)
            elif error is not None:
                failed.append(error)

        splitter = SendSplitter()
        for letter, headers in letters:
            key, value = REJECTED.key(letter).encode(), self._wire.frame(REJECTED.name, encode(letter))
            if splitter.begins_send(key, value):
                self._producer.flush(TIMEOUT)
            told = partial(delivered, (letter, headers))
            try:
                self._producer.produce(self._topic, value, key, headers=headers, on_delivery=told)
            except KafkaException as error:
                if error.args[0].code() not in TOO_LARGE:
                    raise
                large.append((letter, headers))
        if self._producer.flush(TIMEOUT) or failed:
            raise ClusterError(f"dead letters could not be written: {failed[0].str() if failed else 'no acknowledgement'}")
        return large
