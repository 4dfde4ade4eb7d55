"""A watchdog: it ends a process whose offset stands while there is something to read.

Cause: a consumer may stop fetching, or committing, after a rebalance or a recovery, and say nothing (Faust #596, #175, #523, #532).
That a process lives, or answers, tells nothing of that; its offsets do.

Strategy: a thread with a client of its own asks the broker, so that it sees what others see, whatever the worker's loop does. What
an edge has in flight has deadlines of its own and may take its time, as long as the edge's loop turns.

A topic that was deleted and made anew is left out by the rebalances of the time between, and nobody notices: who has a partition of
one topic of its group has to read that of all, since the assignors that are used here give all those of a number to one member. A
topic that is not there is waited for no longer than for an offset, whatever is in flight: nothing of that can be committed.

A worker without partitions is well where others have them all: it waits to take over. Where a partition stands that nobody has, it
is one that should have had it, and lost its place in the group without a word.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.kafka.worker.telemetry import PartitionId
from streams.kafka.worker.telemetry import Standing as Seen

TIMEOUT = 10.0
GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - its own codes
NOWHERE = -1
"""In place of the offset in a partition that there is not."""
LOOKS = 6
"""Looks in the time that an offset may stand."""


class Standing(NamedTuple):
    """Where a partition stands, and since when."""

    offset: int
    metadata: str
    since: float


class Watchdog(threading.Thread):
    """Watches the partitions of a group that this process has (`mine`), and those of the same numbers in the group's other topics.

    Where one is there, it may stand while it is `excused`.
    """

    def __init__(
        self,
        brokers: str,
        group: str,
        stall: float,
        mine: Callable[[], Iterable[PartitionId]],
        excused: Callable[[], Iterable[PartitionId]],
        end: Callable[[str], None],
        looked: Callable[[Mapping[PartitionId, Seen]], None] = lambda _: None,
        everywhere: Callable[[], Iterable[PartitionId]] = tuple,
    ) -> None:
        """`end` ends the process, and says why; `everywhere`: all partitions that the group reads."""
        super().__init__(name="watchdog", daemon=True)
        self._brokers, self._group, self._stall = brokers, group, stall
        self._mine, self._excused, self._end, self._looked = mine, excused, end, looked
        self._everywhere = everywhere
        self._seen: dict[PartitionId, Standing] = {}
        self._others: dict[PartitionId, Standing] = {}
        """The same for all partitions, while this process has none."""

    def run(self) -> None:
        """Look now and then, for ever."""
        client = Consumer(
            {"bootstrap.servers": self._brokers, "group.id": self._group, "enable.auto.commit": False, "log_level": 0}
        )
        last = time.monotonic()
        while True:
            time.sleep(self._stall / LOOKS)
            now = time.monotonic()
            if now - last > self._stall:
                # The process, or the machine, was asleep: what stood meanwhile stood for no fault of anybody's.
                self._forget()
            last = now
            try:
                self.look(client, now)
            except KafkaException:
                # No broker answers: nothing can be told, and nothing could move.
                self._forget()
            except Exception as error:  # noqa: BLE001 - a mistake of ours: who is not watched may stand for ever
                self._end(f"the watchdog failed: {error!r}")

    def _forget(self) -> None:
        self._seen.clear()
        self._others.clear()

    def look(self, client: Consumer, now: float) -> None:
        """One look. Raises KafkaException."""
        places = [TopicPartition(topic, partition) for topic, partition in self._due()]
        self._others = {} if places else self._look_around(client, now)
        excused = set(self._excused())
        seen: dict[PartitionId, Standing] = {}
        looked: dict[PartitionId, Seen] = {}
        for found in client.committed(places, timeout=TIMEOUT) if places else ():
            place = found.topic, found.partition
            before = self._seen.get(place)
            if (ends := _ends(client, found)) is None:
                seen[place] = before if before and before.offset == NOWHERE else Standing(NOWHERE, "", now)
                if now - seen[place].since > self._stall:
                    self._end(f"{place[0]}-{place[1]}: not there for more than {self._stall:.0f} s (harvest topics apply)")
                continue
            low, high = ends
            offset, metadata = max(found.offset, low), found.metadata or ""
            looked[place] = Seen((offset, metadata), max(0, high - offset), place in excused)
            if offset >= high or place in excused:
                continue
            seen[place] = before if before and before[:2] == (offset, metadata) else Standing(offset, metadata, now)
            if now - seen[place].since > self._stall:
                self._end(f"{place[0]}-{place[1]}: stands at {offset} of {high} for more than {self._stall:.0f} s")
        self._seen = seen
        self._looked(looked)

    def _due(self) -> set[PartitionId]:
        """What this process has to read: who has a partition of one topic of its group has it of all."""
        mine = set(self._mine())
        numbers = {partition for _, partition in mine}
        return mine.union(place for place in self._everywhere() if place[1] in numbers)

    def _look_around(self, client: Consumer, now: float) -> dict[PartitionId, Standing]:
        """Where others stand; ends the process where nobody does, for too long. Raises KafkaException."""
        places = [TopicPartition(topic, partition) for topic, partition in self._everywhere()]
        found: dict[PartitionId, Standing] = {}
        for at in client.committed(places, timeout=TIMEOUT) if places else ():
            if (ends := _ends(client, at)) is None:
                continue  # who has partitions is ended for that
            low, high = ends
            offset, metadata = max(at.offset, low), at.metadata or ""
            if offset < high:
                before = self._others.get((at.topic, at.partition))
                stands = before is not None and before[:2] == (offset, metadata)
                found[at.topic, at.partition] = before if before and stands else Standing(offset, metadata, now)
        late = [place for place, standing in found.items() if now - standing.since > self._stall]
        if late and (nobodys := sorted(set(late) - owned(self._brokers, self._group))):
            topic, partition = nobodys[0]
            where = f"{topic}-{partition}: stands at {found[nobodys[0]].offset}"
            self._end(f"{where} for more than {self._stall:.0f} s, nobody of the group has it, and this process has none")
        return found


def _ends(client: Consumer, place: TopicPartition) -> tuple[int, int] | None:
    """The first offset of a partition, and the next; None where there is none. Raises KafkaException."""
    try:
        return client.get_watermark_offsets(place, timeout=TIMEOUT)
    except KafkaException as error:
        if error.args[0].code() in GONE:
            return None
        raise


def owned(brokers: str, group: str) -> set[PartitionId]:
    """The partitions that members of a group have. Raises KafkaException."""
    # A client for each question: one that has seen its broker start twice gets no answer about groups any more.
    client = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    (asked,) = client.describe_consumer_groups([group], request_timeout=TIMEOUT).values()
    members = asked.result(2 * TIMEOUT).members or []
    return {(at.topic, at.partition) for member in members if member.assignment for at in member.assignment.topic_partitions}
