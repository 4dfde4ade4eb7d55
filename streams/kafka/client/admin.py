"""Creation and configuration of Kafka topics from the topology; offsets and consumer lag.

Strategy: the wanted topics (`plan_topics`) and the settings that differ (`difference`) are data; `apply` only carries them out. The
changelogs of the stages are created here too, so that they get the same replication factor as the topology's topics.

Laws:
- Topics are created by this command, never automatically on first use. A second `apply` changes nothing.
- All topics have the same partition count (law 7). It is never changed, because keys would move away from their rows. If the count
  of any topic differs, nothing at all is changed.
- A compacted topic keeps removals for the removal retention (law 2); the others keep records for a fixed time, read or not.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from streams.kafka.client.acls import Right, missing_rights
from streams.kafka.client.cluster import REACH, REFUSED, TIMEOUT, Cluster, ClusterError, cluster_errors, sentence
from streams.kafka.client.reach import Contact
from streams.logs import Lag, stage_inputs
from streams.topology.flow import Stage, Topology

REMOVALS = 90 * 86_400_000
"""Retention of removals in ms (law 2)."""
MOVING = {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
"""Transient errors while the group coordinator moves or loads: the request is retried."""
LED = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}
"""Transient errors of a partition that was just created or moved.

Brokers list a topic before its leaders know it. The request is retried after the client has refreshed its metadata.
"""
TRIES = 300
PAUSE = 0.1
EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
STANDS: Any = IsolationLevel.READ_COMMITTED
"""End offsets exclude open transactions: consumers do not read those, and counting them as read would skip their records."""
MARGIN = 1 << 20
"""Bytes of a record beyond what a child process may produce: key, headers, batch header."""


class TopicPlan(NamedTuple):
    """The wanted state of a topic; `name` is the name on the cluster."""

    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str]


class Member(NamedTuple):
    """A worker in the group of a stage."""

    group: str
    name: str
    """Its client id: `worker.instance`, or machine and process."""
    host: str
    partitions: tuple[int, ...]
    """The partitions that it has, of each topic that the stage reads."""
    lag: int
    """Records in them that it has not read."""


class TopicState(NamedTuple):
    """The present state of a topic."""

    partitions: int
    replication: int
    settings: Mapping[str, str]


def plan_topics(topology: Topology, cluster: Cluster, retention: float, frame: int) -> list[TopicPlan]:
    """Return the wanted topics. retention: in seconds; frame: bytes of the largest record that a child process may produce."""
    safe = {"max.message.bytes": str(frame + MARGIN), "min.insync.replicas": str(max(1, cluster.replication - 1))}
    # The writer sets a record's time: `import` keeps the original times.
    safe["message.timestamp.type"] = "CreateTime"
    compacted = {"cleanup.policy": "compact", "delete.retention.ms": str(REMOVALS), **safe}
    made = []
    for topic in topology.topics:
        span = -1 if topic.keep == "always" else int(retention * 1000)
        deleted = {"cleanup.policy": "delete", "retention.ms": str(span), "retention.bytes": "-1", **safe}
        made.append((cluster.topic(topic.name), compacted if topic.keep == "compact" else deleted))
    made += [(cluster.changelog(s.name), compacted) for s in topology.stages if isinstance(s, Stage)]
    return [TopicPlan(name, cluster.partitions, cluster.replication, settings) for name, settings in made]


class Admin:
    """Administration of a cluster. Every method raises ClusterError."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._contact = Contact(cluster)
        self._client = self._contact.client

    def partitions(self) -> dict[str, int]:
        """Return the partition count of every existing topic, by its name on the cluster."""
        return {name: len(topic.partitions) for name, topic in self._listed().items()}

    def _listed(self) -> dict[str, Any]:
        with cluster_errors(self._cluster):
            return dict(self._contact.metadata(REACH).topics)

    def found(self, names: Iterable[str]) -> dict[str, TopicState]:
        """Return those of the topics that exist, with their effective settings (their own and the broker's defaults)."""
        wanted = set(names)
        there = {name: topic for name, topic in self._listed().items() if name in wanted}
        if not there:
            return {}
        with cluster_errors(self._cluster):
            asked = self._client.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in there])
            settings = {resource.name: future.result(TIMEOUT) for resource, future in asked.items()}
        return {
            name: TopicState(
                len(topic.partitions),
                min((len(partition.replicas) for partition in topic.partitions.values()), default=0),
                {key: str(entry.value) for key, entry in settings[name].items()},
            )
            for name, topic in there.items()
        }

    def apply(self, plan: Sequence[TopicPlan], *, change: bool = True) -> Iterator[str]:
        """Create missing topics and set what differs, unless `change` is false; yield a line for each difference."""
        there = self.found(topic.name for topic in plan)
        _refuse(plan, there)
        made = [topic.name for topic in plan if topic.name not in there]
        for topic in plan:
            now = there.get(topic.name)
            if now is None:
                if change:
                    self._make(topic)
                yield f"{topic.name}: {'made' if change else 'missing'}, {pluralize(topic.partitions)}"
                continue
            changed = difference(topic, now)
            if changed and change:
                self._set(topic.name, changed)
            for key, value in changed.items():
                before = now.settings.get(key, "not set")
                yield f"{topic.name}: {key} {f'was {before}, now' if change else f'is {before}, not'} {value}"
            if now.replication != topic.replication:
                yield f"{topic.name}: {pluralize(now.replication, 'replica')}, not {topic.replication}: reassign its partitions"
        if change:
            self._await(made)

    def _await(self, names: Collection[str]) -> None:
        """Wait until the brokers know the topics: the controller answers before it has informed them."""
        for _ in range(TRIES):
            if set(names) <= self._listed().keys():
                return
            time.sleep(PAUSE)
        raise ClusterError(f"{self._cluster.brokers}: the brokers do not hear of the new topics")

    def _make(self, topic: TopicPlan) -> None:
        new = NewTopic(topic.name, topic.partitions, topic.replication, config=dict(topic.settings))
        with cluster_errors(self._cluster):
            for future in self._client.create_topics([new], operation_timeout=TIMEOUT).values():
                try:
                    future.result(TIMEOUT)
                except KafkaException as error:
                    # Another process created the topic meanwhile; the next `apply` compares its settings.
                    if error.args[0].code() in REFUSED:
                        raise ClusterError(f"{topic.name}: {sentence(self._cluster, error.args[0])}") from error
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise

    def _set(self, name: str, settings: Mapping[str, str]) -> None:
        entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in settings.items()]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        with cluster_errors(self._cluster):
            for future in self._client.incremental_alter_configs([resource]).values():
                future.result(TIMEOUT)

    def missing_rights(self, wanted: Iterable[Right]) -> list[Right]:
        """Return the rights that the ACLs do not grant to this login."""
        # A login that is refused is then reported as such, at once: the questions about rights would wait, and have no reason.
        self._listed()
        return missing_rights(self._client, self._cluster, wanted)

    def offsets(self, places: Sequence[tuple[str, int]], spec: Any) -> dict[tuple[str, int], int]:
        """Return the offset for `spec` at each place (topic on the cluster, partition); -1 where there is none."""
        if not places:
            return {}
        with cluster_errors(self._cluster):
            for _ in range(TRIES):
                wanted = {TopicPartition(*place): spec for place in places}
                asked = self._client.list_offsets(wanted, request_timeout=TIMEOUT, isolation_level=STANDS)
                try:
                    return {(place.topic, place.partition): future.result(TIMEOUT).offset for place, future in asked.items()}
                except KafkaException as error:
                    if error.args[0].code() not in LED:
                        raise
                    time.sleep(PAUSE)
                    self._client.list_topics(timeout=TIMEOUT)
        raise ClusterError(f"{self._cluster.brokers}: {places[0][0]} has no leader")

    def since(self, places: Sequence[tuple[str, int]], time_ms: int) -> dict[tuple[str, int], int]:
        """Return the first offset at each place whose record has that time or a later one; -1 where none has."""
        return self.offsets(places, OffsetSpec.for_timestamp(time_ms))

    def committed(self, group: str, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a group by place; negative where it never committed."""
        # Not AdminClient's request for group offsets: the client crashes on the answer when the coordinator moves or is being
        # created (librdkafka #5040).
        client = Consumer(self._cluster.client(group__id=group, enable__auto__commit=False))
        wanted = [TopicPartition(*place) for place in places]
        try:
            with cluster_errors(self._cluster):
                for _ in range(TRIES):
                    try:
                        return {(at.topic, at.partition): at.offset for at in client.committed(wanted, timeout=TIMEOUT)}
                    except KafkaException as error:
                        if error.args[0].code() not in MOVING:
                            raise
                        time.sleep(PAUSE)
        finally:
            client.close()
        raise ClusterError(f"{self._cluster.brokers}: the coordinator of the group {group} is not to be had")

    def lags(self, topology: Topology, stages: Container[str] | None = None) -> Iterator[Lag]:
        """Yield the lag of all stages, or of those in `stages`, by topic and partition; topics that do not exist are left out."""
        counts = self.partitions()
        for stage, pairs in itertools.groupby(stage_inputs(topology), itemgetter(0)):
            if stages is not None and stage not in stages:
                continue
            topics = {self._cluster.topic(topic): topic for _, topic in pairs}
            group = self._cluster.group(stage)
            places = [(name, partition) for name in topics for partition in range(counts.get(name, 0))]
            if not places:
                continue
            # Committed offsets before end offsets: otherwise a record read in between would put the committed offset beyond the
            # end.
            committed = self.committed(group, places)
            starts, ends = self.offsets(places, EARLIEST), self.offsets(places, LATEST)
            for place in places:
                done = max(committed[place], starts[place])
                yield Lag(group, topics[place[0]], place[1], done, ends[place], ends[place] - done)

    def members(self, topology: Topology) -> Iterator[Member]:
        """Yield the members of the groups of all stages, in order of stage and name; a stage without any yields none."""
        lags: dict[str, dict[tuple[str, int], int]] = {}
        for one in self.lags(topology):
            lags.setdefault(one.group, {})[self._cluster.topic(one.topic), one.partition] = one.lag
        # A new client each time: one whose broker restarted twice gets no more answers about groups.
        client = AdminClient(self._cluster.client())
        with cluster_errors(self._cluster):
            asked = client.describe_consumer_groups(list(lags), request_timeout=TIMEOUT) if lags else {}
            found = {group: answer.result(2 * TIMEOUT).members or [] for group, answer in asked.items()}
        for group, known in lags.items():
            for member in sorted(found[group], key=lambda each: (each.client_id, each.member_id)):
                places = member.assignment.topic_partitions if member.assignment else []
                lag = sum(known.get((at.topic, at.partition), 0) for at in places)
                yield Member(group, member.client_id, member.host.lstrip("/"), tuple(sorted({at.partition for at in places})), lag)


def difference(wanted: TopicPlan, now: TopicState) -> dict[str, str]:
    """Return the settings that differ, with their wanted values."""
    return {key: value for key, value in wanted.settings.items() if now.settings.get(key) != value}


def pluralize(number: int, what: str = "partition") -> str:
    """Format a number with its noun in singular or plural."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _refuse(plan: Sequence[TopicPlan], there: Mapping[str, TopicState]) -> None:
    wrong = [(t.name, there[t.name].partitions, t.partitions) for t in plan if t.name in there]
    wrong = [one for one in wrong if one[1] != one[2]]
    if wrong:
        name, now, wanted = wrong[0]
        more = f" (and {pluralize(len(wrong) - 1, 'other topic')})" if len(wrong) > 1 else ""
        has = f"{more} have" if more else " has"
        raise ClusterError(f"{name}{has} {pluralize(now)}, not {wanted}: the number is fixed (take new topics, by kafka.prefix)")
