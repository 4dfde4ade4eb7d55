"""Topic ids of a stage's topics: notices a topic that was deleted and made again, and a changelog that lost records.

Strategy: Kafka gives each topic an id, and a topic of the same name another one. A worker stores the ids of the topics that its
stage reads as metadata of committed offsets, in a group of their own without members (`STAGE.topics`), and compares them when it
starts and while it runs. They are stored with each of these topics, and with `rejected`: Kafka deletes what was committed for a
topic together with it.

Laws:
- Offsets, rows and tables that belong to another topic are never continued: the worker ends with a line that names the remedy.
- Where no id is stored, the present ones are: at the first start, and after the retention of offsets (by default 7 days without a
  worker), when the committed offsets of the stage are gone as well.
- A compacted changelog begins and ends where it did, or later: a later start means that records were deleted by request or by
  another cleanup policy, an earlier end that a broker lost them. What was noticed is stored, and remains noticed after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.kafka.client.admin import EARLIEST, LATEST, Admin
from streams.kafka.client.brokers import TIMEOUT, retry_coordinator
from streams.kafka.client.cluster import Cluster, changelog_of, identity_group
from streams.topology.flow import REJECTED, Edge, Stage, streamed

RENEW = 600.0
"""Seconds after which a running worker stores the ids again: brokers delete offsets of groups without members after some days."""


def read_topics(stage: Stage[Any, Any] | Edge[Any, Any]) -> list[str]:
    """Return the topics whose offsets a stage stores: inputs, ticks, changelog."""
    if not isinstance(stage, Stage):
        return [topic.name for topic in stage.inputs]
    ticks = [stage.ticks.name] if stage.ticks else []
    return [*(topic.name for topic in stage.inputs), *ticks, changelog_of(stage.name)]


def remedy(stage: Stage[Any, Any] | Edge[Any, Any]) -> str:
    """Return what makes a stage start over on topics that are others than before."""
    if (broker := streamed(stage.name)) is not None:
        what = f"the files feed/broker.{broker}.*" if broker else "the folder feed"
        return f"delete {what} in the data folder of its worker"
    if isinstance(stage, Edge) and stage.kind == "sink":
        return f"harvest index rebuild --broker {stage.name.removeprefix('index.')}"
    return f"harvest topics reset {stage.name}"


class KnownTopics(msgspec.Struct, frozen=True):
    """Ids of existing topics, by name without the prefix; sums of first and end offsets of the changelog's partitions."""

    ids: dict[str, str] = {}
    first: int = 0
    end: int = 0


class TopicChange(NamedTuple):
    """A topic, by its name without the prefix, and what happened to it, as the end of a sentence."""

    topic: str
    what: str


class TopicIdentities:
    """Stored and present ids of the topics of one stage. Every method raises ClusterError, KafkaException or TimeoutError."""

    def __init__(self, cluster: Cluster, stage: Stage[Any, Any] | Edge[Any, Any]) -> None:
        self._cluster = cluster
        self._names = read_topics(stage)
        self._changelog = changelog_of(stage.name) if isinstance(stage, Stage) else ""
        self._group = cluster.group(identity_group(stage.name))
        self._client, self._admin = AdminClient(cluster.client()), Admin(cluster)

    def present(self) -> KnownTopics:
        """Return what the brokers have now; topics that do not exist are left out."""
        full = {self._cluster.topic(name): name for name in self._names}
        asked = self._client.describe_topics(TopicCollection(list(full)), request_timeout=TIMEOUT)
        found = {full[name]: answer for name, future in asked.items() if (answer := _existing(future)) is not None}
        parts = len(found[self._changelog].partitions) if self._changelog in found else 0
        first, end = (self._offsets(parts, spec) for spec in (EARLIEST, LATEST))
        return KnownTopics({name: str(one.topic_id) for name, one in found.items()}, first, end)

    def _offsets(self, partitions: int, spec: Any) -> int:
        """Return the sum of offsets of the changelog."""
        places = [(self._cluster.topic(self._changelog), partition) for partition in range(partitions)]
        return sum(max(0, offset) for offset in self._admin.offsets(places, spec).values())

    def stored(self) -> KnownTopics | None:
        """Return what was stored last; None if nothing was."""
        with closing(self._consumer()) as client:
            found = retry_coordinator(partial(client.committed, self._places(), timeout=TIMEOUT))
        texts = [(at.offset, at.metadata) for at in found if at.metadata and at.offset >= 0]
        return msgspec.json.decode(max(texts)[1], type=KnownTopics) if texts else None

    def store(self, known: KnownTopics, before: KnownTopics | None = None) -> None:
        """Store ids and first offsets. Topics that do not exist keep the id of `before`."""
        known = msgspec.structs.replace(known, ids={**(before.ids if before else {}), **known.ids})
        text, stamp = msgspec.json.encode(known).decode(), int(time.time())
        # The offset is a time: if only some of these commits were made, the latest counts.
        places = [TopicPartition(at.topic, at.partition, stamp, metadata=text) for at in self._places(known.ids)]
        with closing(self._consumer()) as client:
            retry_coordinator(partial(client.commit, offsets=places, asynchronous=False))

    def _consumer(self) -> Consumer:
        return Consumer(self._cluster.client(group__id=self._group, enable__auto__commit=False))

    def _places(self, names: Iterable[str] | None = None) -> list[TopicPartition]:
        wanted = self._names if names is None else [name for name in self._names if name in names]
        return [TopicPartition(self._cluster.topic(name), 0) for name in (*wanted, REJECTED.name)]

    def changes(self, known: KnownTopics | None, now: KnownTopics) -> Iterator[TopicChange]:
        """Yield the topics that are others than those of `known`, and a changelog that lost records since."""
        if known is None:
            return
        for name, topic_id in now.ids.items():
            if known.ids.get(name, topic_id) != topic_id:
                yield TopicChange(name, "was deleted and made again")
        same = known.ids.get(self._changelog) == now.ids.get(self._changelog)
        if same and now.first > known.first:
            yield TopicChange(self._changelog, f"lost its first {now.first - known.first:,} offsets: records were deleted")
        if same and now.end < known.end:
            yield TopicChange(self._changelog, f"lost its last {known.end - now.end:,} offsets")


class TopicWatch:
    """Compares the topics of a running worker with those of its start; for the watchdog's thread."""

    def __init__(self, cluster: Cluster, stage: Stage[Any, Any] | Edge[Any, Any]) -> None:
        self._cluster, self._stage = cluster, stage
        self._identities = TopicIdentities(cluster, stage)
        self._known: KnownTopics | None = None
        self._due = 0.0

    def __call__(self) -> str:
        """Return why the worker has to end; "" if all is as it was. Raises ClusterError, KafkaException, TimeoutError."""
        if self._known is None:
            self._known = self._identities.stored() or self._identities.present()
            self._due = time.monotonic() + RENEW
        now = self._identities.present()
        for change in self._identities.changes(self._known, now):
            self._identities.store(self._known)
            return change_line(self._cluster, self._stage, change)
        self._known = msgspec.structs.replace(now, ids={**self._known.ids, **now.ids})
        if time.monotonic() >= self._due:
            self._identities.store(self._known)
            self._due = time.monotonic() + RENEW
        return ""


def change_line(cluster: Cluster, stage: Stage[Any, Any] | Edge[Any, Any], change: TopicChange) -> str:
    """Return the line with which a worker ends."""
    return f"{cluster.topic(change.topic)}: it {change.what}; {stage.name} has to start over ({remedy(stage)})"


def _existing(future: Any) -> Any:
    """Return the description of a topic; None if it does not exist. Raises KafkaException, TimeoutError."""
    try:
        return future.result(2 * TIMEOUT)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def origin_base(now_s: float) -> int:
    """Return the base that is added to the offsets of a topic from now on, so that they are above all earlier ones in rows.

    Seconds since EPOCH, times the most records that a partition can have taken in a second.
    """
    return (int(now_s) - EPOCH) << RATE_BITS


EPOCH, RATE_BITS = 1_700_000_000, 30
BASE = b"\0base|"
"""First bytes of the key of a row, in each partition of a changelog, with the base of a topic, whose name follows."""


def base_rows(topics: Iterable[str], base: int) -> Mapping[bytes, bytes]:
    """Return the rows with the base of each topic, by key."""
    return {BASE + name.encode(): b"%d" % base for name in topics}
