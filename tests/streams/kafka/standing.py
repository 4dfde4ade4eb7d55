"""Progress of a flow's stages, as the broker reports it; what is missing is described in words.

Groups are described by clients created for each request: a confluent-kafka 2.16 client that lived through a restart of its broker
gets no more answers about groups, or aborts the process by an assertion of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # exported without saying so

from streams.topology.flow import Edge, Stage, Topic, Topology, TopologySettings, topology
from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker

Place = tuple[str, int]
"""A topic (without prefix) and a partition."""

TOPOLOGY = topology(TopologySettings())


def inputs(stage: Stage[Any, Any] | Edge[Any, Any]) -> list[Topic[Any]]:
    """All topics that a stage reads, ticks included."""
    ticks = stage.ticks if isinstance(stage, Stage) else None
    return [*stage.inputs, *([ticks] if ticks else ())]


def written(place: Place) -> str:
    """A place as TOPIC-PARTITION."""
    return f"{place[0]}-{place[1]}"


class Standing:
    """The topics and groups of one test, whose names begin with `prefix`."""

    def __init__(self, broker: Broker, prefix: str, partitions: int, drawn: Topology = TOPOLOGY) -> None:
        self._topology = drawn
        self._broker, self._prefix, self._partitions = broker, prefix, partitions
        self._askers: dict[str, Consumer] = {}
        """Consumers that look up the committed offsets, by group."""

    def close(self) -> None:
        """Close the clients."""
        for client in self._askers.values():
            client.close()

    def ends(self) -> dict[Place, int]:
        """The end offset of each partition. Raises KafkaException, after a refresh of the partition leaders for the next call."""
        places = [self._at((topic.name, p)) for topic in self._topology.topics for p in range(self._partitions)]
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        client = self._broker.topics.client
        asked = client.list_offsets(dict.fromkeys(places, latest), request_timeout=TIMEOUT)
        try:
            return {self._place(at): told.result(TIMEOUT).offset for at, told in asked.items()}
        except KafkaException:
            # A restarted broker leads with a new epoch, which this client would never learn of.
            client.list_topics(timeout=TIMEOUT)
            raise

    def unread(self, read_to: Mapping[Place, int], ends: Mapping[Place, int]) -> Iterator[str]:
        """One sentence about the partitions that a reader of all topics has not read to the end; `read_to`: next offsets."""
        behind = [place for place, end in ends.items() if read_to.get(place, 0) < end]
        if behind:
            least = min(behind)
            more = f", and {len(behind) - 1} more are behind" if behind[1:] else ""
            yield f"{written(least)} was read here to {read_to.get(least, 0)} of {ends[least]}{more}"

    def uncommitted(self, stage: Stage[Any, Any] | Edge[Any, Any], ends: Mapping[Place, int]) -> Iterator[str]:
        """A sentence for each partition that a stage has not committed to its end. Raises KafkaException."""
        group = self._prefix + stage.name
        if group not in self._askers:
            self._askers[group] = self._broker.client(group)
        places = [self._at((topic.name, partition)) for topic in inputs(stage) for partition in range(self._partitions)]
        for found in self._askers[group].committed(places, timeout=TIMEOUT):
            place = self._place(found)
            if max(0, found.offset) < ends[place]:
                yield f"{stage.name} has committed {max(0, found.offset)} of {ends[place]} in {written(place)}"

    def shares(self, stage: str) -> tuple[ConsumerGroupState, list[int]]:
        """The state of a stage's group, and the number of partitions of each member. Raises KafkaException."""
        group = self._prefix + stage
        client = AdminClient({"bootstrap.servers": self._broker.address, "log_level": 0})
        found = client.describe_consumer_groups([group], request_timeout=TIMEOUT)[group].result()
        return found.state, [len(member.assignment.topic_partitions) for member in found.members]

    def groups(self, stages: Sequence[str]) -> Iterator[str]:
        """The same in words, for several stages."""
        for stage in stages:
            try:
                state, shares = self.shares(stage)
            except KafkaException as error:
                yield f"{stage} {error.args[0].name()}"
            else:
                yield f"{stage} {state.name} ({' and '.join(map(str, shares)) or 'nobody'})"

    def _at(self, place: Place) -> TopicPartition:
        return TopicPartition(self._prefix + place[0], place[1])

    def _place(self, at: TopicPartition) -> Place:
        return at.topic.removeprefix(self._prefix), at.partition
