"""Watchdog: ends a process whose offsets do not advance although there is something to read.

Cause: a consumer may stop fetching, or committing, after a rebalance or a recovery, without an error (Faust #596, #175, #523,
#532). That the process lives, or answers, proves nothing; its offsets do.

Strategy: a thread with a client of its own asks the broker, so that it sees what others see, whatever the worker's loop does.
Records in flight in an edge have deadlines of their own and may take their time, as long as the edge's loop runs.

A topic that was deleted and made again has another id: offsets belong to the old one, and the process ends at once
(`client/topic_identity.py`). A topic that is missing is silently left out by rebalances in between. The owner of a partition must
read the same partition of all topics of its group, since the assignors used here give all partitions of a number to one member. A
missing topic is tolerated no longer than an offset that stands still, even with records in flight: none of them can be committed.

A worker without partitions is fine while others have them all: it is a standby. If a partition without an owner stands still, this
worker should have had it, and has silently lost its place in the group.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.kafka.client.cluster import Cluster, ClusterError
from streams.kafka.worker.telemetry import PartitionId
from streams.kafka.worker.telemetry import PartitionProgress as Seen

TIMEOUT = 10.0
GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - its own codes
NOWHERE = -1
"""Placeholder for the offset of a missing partition."""
LOOKS = 6
"""Checks per `stall` interval."""


class CommittedPosition(NamedTuple):
    """Committed position of a partition, and since when it has been there (monotonic)."""

    offset: int
    metadata: str
    since: float


class Watchdog(threading.Thread):
    """Watches the partitions of this process (`mine`), and those of the same numbers in the group's other topics.

    An existing partition may stand still while it is `excused`.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        stall: float,
        mine: Callable[[], Iterable[PartitionId]],
        excused: Callable[[], Iterable[PartitionId]],
        end: Callable[[str], None],
        looked: Callable[[Mapping[PartitionId, Seen]], None] = lambda _: None,
        everywhere: Callable[[], Iterable[PartitionId]] = tuple,
        changed: Callable[[], str] = str,
        refused: Callable[[], bool] = bool,
    ) -> None:
        """`end` ends the process with a reason; `everywhere` returns all partitions that the group reads.

        `changed` returns why the topics are others than those of the start; "": they are not. It raises as `look` does.
        `refused` returns whether the cluster refuses the login or rights of this process, which excuses any standstill.
        """
        super().__init__(name="watchdog", daemon=True)
        self._cluster, self._group, self._stall = cluster, group, stall
        self._mine, self._excused, self._end, self._looked = mine, excused, end, looked
        self._everywhere, self._changed, self._refused = everywhere, changed, refused
        self._seen: dict[PartitionId, CommittedPosition] = {}
        self._others: dict[PartitionId, CommittedPosition] = {}
        """As `_seen`, for all partitions of the group, while this process has none."""

    def run(self) -> None:
        """Check periodically, without end."""
        client = Consumer(self._cluster.client(group__id=self._group, enable__auto__commit=False))
        last = time.monotonic()
        while True:
            time.sleep(self._stall / LOOKS)
            now = time.monotonic()
            if now - last > self._stall:
                # The process or machine was suspended, which excuses a standstill.
                self._forget()
            last = now
            try:
                if self._refused():
                    self._forget()
                else:
                    self.look(client, now)
            except (KafkaException, ClusterError, TimeoutError):
                # No broker answers: nothing is known, and nothing could advance.
                self._forget()
            except Exception as error:  # noqa: BLE001 - a mistake of ours: who is not watched may stand for ever
                self._end(f"the watchdog failed: {error!r}")

    def _forget(self) -> None:
        self._seen.clear()
        self._others.clear()

    def look(self, client: Consumer, now: float) -> None:
        """Check all partitions once. Raises KafkaException, ClusterError, TimeoutError."""
        if why := self._changed():
            self._end(why)
        places = [TopicPartition(topic, partition) for topic, partition in self._due()]
        self._others = {} if places else self._look_around(client, now)
        excused = set(self._excused())
        seen: dict[PartitionId, CommittedPosition] = {}
        looked: dict[PartitionId, Seen] = {}
        for found in client.committed(places, timeout=TIMEOUT) if places else ():
            place = found.topic, found.partition
            before = self._seen.get(place)
            if (ends := _ends(client, found)) is None:
                seen[place] = before if before and before.offset == NOWHERE else CommittedPosition(NOWHERE, "", now)
                if now - seen[place].since > self._stall:
                    self._end(f"{place[0]}-{place[1]}: not there for more than {self._stall:.0f} s (harvest topics apply)")
                continue
            low, high = ends
            offset, metadata = max(found.offset, low), found.metadata or ""
            looked[place] = Seen((offset, metadata), max(0, high - offset), place in excused)
            if offset >= high or place in excused:
                continue
            seen[place] = before if before and before[:2] == (offset, metadata) else CommittedPosition(offset, metadata, now)
            if now - seen[place].since > self._stall:
                self._end(f"{place[0]}-{place[1]}: stands at {offset} of {high} for more than {self._stall:.0f} s")
        self._seen = seen
        self._looked(looked)

    def _due(self) -> set[PartitionId]:
        """Return the partitions that this process must read: the number of one of its own, in all topics of its group."""
        mine = set(self._mine())
        numbers = {partition for _, partition in mine}
        return mine.union(place for place in self._everywhere() if place[1] in numbers)

    def _look_around(self, client: Consumer, now: float) -> dict[PartitionId, CommittedPosition]:
        """Return lagging partitions of the group; end the process if one stands still without an owner. Raises KafkaException."""
        places = [TopicPartition(topic, partition) for topic, partition in self._everywhere()]
        found: dict[PartitionId, CommittedPosition] = {}
        for at in client.committed(places, timeout=TIMEOUT) if places else ():
            if (ends := _ends(client, at)) is None:
                continue  # a worker with partitions is ended for that
            low, high = ends
            offset, metadata = max(at.offset, low), at.metadata or ""
            if offset < high:
                before = self._others.get((at.topic, at.partition))
                stands = before is not None and before[:2] == (offset, metadata)
                found[at.topic, at.partition] = before if before and stands else CommittedPosition(offset, metadata, now)
        late = [place for place, standing in found.items() if now - standing.since > self._stall]
        if late and (nobodys := sorted(set(late) - assigned_partitions(self._cluster, self._group))):
            topic, partition = nobodys[0]
            where = f"{topic}-{partition}: stands at {found[nobodys[0]].offset}"
            self._end(f"{where} for more than {self._stall:.0f} s, nobody of the group has it, and this process has none")
        return found


def _ends(client: Consumer, place: TopicPartition) -> tuple[int, int] | None:
    """Return the first and the end offset of a partition; None if it does not exist. Raises KafkaException."""
    try:
        return client.get_watermark_offsets(place, timeout=TIMEOUT)
    except KafkaException as error:
        if error.args[0].code() in GONE:
            return None
        raise


def assigned_partitions(cluster: Cluster, group: str) -> set[PartitionId]:
    """Return the partitions assigned to the members of a group. Raises KafkaException."""
    # A new client each time: one whose broker restarted twice gets no more answers about groups.
    client = AdminClient(cluster.client())
    (asked,) = client.describe_consumer_groups([group], request_timeout=TIMEOUT).values()
    members = asked.result(2 * TIMEOUT).members or []
    return {(at.topic, at.partition) for member in members if member.assignment for at in member.assignment.topic_partitions}
