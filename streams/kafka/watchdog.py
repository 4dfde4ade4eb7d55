"""A watchdog: it ends a process whose offset stands while there is something to read.

Cause: a consumer may stop fetching, or committing, after a rebalance or a recovery, and say nothing (Faust #596, #175, #523, #532).
That a process lives, or answers, tells nothing of that; its offsets do.

Strategy: a thread with a client of its own asks the broker, so that it sees what others see, whatever the worker's loop does. What
an edge has in flight has deadlines of its own and may take its time, as long as the edge's loop turns.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams.kafka.telling import Place
from streams.kafka.telling import Standing as Seen

TIMEOUT = 10.0
LOOKS = 6
"""Looks in the time that an offset may stand."""


class Standing(NamedTuple):
    """Where a partition stands, and since when."""

    offset: int
    metadata: str
    since: float


def end(why: str) -> None:
    """End the process: whoever supervises it starts it again."""
    print(f"harvest: {why}", file=sys.stderr, flush=True)  # noqa: T201 - its last word
    os._exit(1)


class Watchdog(threading.Thread):
    """Watches the partitions of a group that this process has (`mine`), but for those that may stand (`excused`)."""

    def __init__(
        self,
        brokers: str,
        group: str,
        stall: float,
        mine: Callable[[], Iterable[Place]],
        excused: Callable[[], Iterable[Place]] = tuple,
        end: Callable[[str], None] = end,
        looked: Callable[[Mapping[Place, Seen]], None] = lambda _: None,
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._brokers, self._group, self._stall = brokers, group, stall
        self._mine, self._excused, self._end, self._looked = mine, excused, end, looked
        self._seen: dict[Place, Standing] = {}

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
                self._seen.clear()
            last = now
            try:
                self.look(client, now)
            except KafkaException:
                # No broker answers: nothing can be told, and nothing could move.
                self._seen.clear()
            except Exception as error:  # noqa: BLE001 - a mistake of ours: who is not watched may stand for ever
                self._end(f"the watchdog failed: {error!r}")

    def look(self, client: Consumer, now: float) -> None:
        """One look. Raises KafkaException."""
        places = [TopicPartition(topic, partition) for topic, partition in self._mine()]
        excused = set(self._excused())
        seen: dict[Place, Standing] = {}
        looked: dict[Place, Seen] = {}
        for found in client.committed(places, timeout=TIMEOUT) if places else ():
            place = found.topic, found.partition
            low, high = client.get_watermark_offsets(found, timeout=TIMEOUT)
            offset, metadata = max(found.offset, low), found.metadata or ""
            before = self._seen.get(place)
            looked[place] = Seen((offset, metadata), max(0, high - offset), place in excused)
            if offset >= high or place in excused:
                continue
            seen[place] = before if before and before[:2] == (offset, metadata) else Standing(offset, metadata, now)
            if now - seen[place].since > self._stall:
                self._end(f"{place[0]}-{place[1]}: stands at {offset} of {high} for more than {self._stall:.0f} s")
        self._seen = seen
        self._looked(looked)
