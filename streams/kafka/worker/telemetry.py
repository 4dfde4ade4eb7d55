"""What a worker says of itself: metrics, whether it moves and is ready, the trace of what it has written.

Strategy: the worker's parts tell of what they have done anyway: the agent and the outbox of what the broker has acknowledged, the
watchdog of how far each partition is. Nothing asks the broker on behalf of a metric.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping
from time import monotonic
from typing import NamedTuple

from schemas.codec import decode
from streams.clock import now_ms
from streams.sandbox.values import Outcome
from streams.telemetry import Check, Health, Logs, Metrics, Progress, Written, observe
from streams.telemetry.observing import ended

PartitionId = tuple[str, int]
"""A topic, by its name on the broker, and a partition."""
SAY = ("crawl", "rejected", "copies")
"""Topics whose records count by what they say; the first part of their names."""


class Standing(NamedTuple):
    """How far a partition is: anything that changes when it moves, what is left, and whether it may stand."""

    position: Hashable
    lag: int
    excused: bool


class Telling:
    """One worker of a stage. `prefix` stands before the names of topics on the broker."""

    def __init__(self, stage: str, prefix: str, stall: float, health: Health, metrics: Metrics, logs: Logs) -> None:
        self.stage = stage
        self.health = health
        self.metrics = metrics
        self.logs = logs
        self._prefix = prefix
        self._stall = stall
        self._progress = Progress(stall)
        self._places: set[PartitionId] = set()
        self._answered = monotonic()
        """When a broker answered the watchdog last; a worker that begins has the time that it has later."""
        self._oldest: dict[str, float] = {}
        """By topic, when the oldest record of what was finished last was written (ms): what is unfinished is about as old."""
        self._standing: dict[tuple[str, int], tuple[Hashable, float]] = {}
        """By partition that has a lag, where it stands and since when (ms)."""
        health.alive_when("progress", self._progress.stalled)

    def end(self, why: str) -> None:
        """Say so, and end the process: whoever supervises it starts it again."""
        self.logs.last(why)
        os._exit(1)

    def beats(self, beat: Check) -> None:
        """`beat` says whether the loop goes round."""
        self.health.alive_when("loop", beat)

    def needs(self, name: str, check: Check) -> None:
        """What the worker is not ready without."""
        self.health.ready_when(name, check)

    def started(self) -> None:
        """The worker has said what it needs: before, it passes for ready by no means."""
        self.health.started()

    def broker(self) -> str:
        """What is wrong with the broker: the watchdog asks it several times in half of `stall`, and tells only what it was told."""
        silent = monotonic() - self._answered
        return "" if silent <= self._stall / 2 else f"no broker has answered for {silent:.0f} s"

    def since(self, beat: float) -> str:
        """What is wrong with a loop that went round last at `beat` (monotonic)."""
        return "" if monotonic() - beat <= self._stall else f"the loop has stood still for more than {self._stall:g} s"

    def looked(self, seen: Mapping[PartitionId, Standing]) -> None:
        """The watchdog has looked at all partitions of this worker."""
        for place, standing in seen.items():
            topic, partition = place[0].removeprefix(self._prefix), str(place[1])
            self.metrics.lag.set(standing.lag, self.stage, topic, partition)
            # What is excused may stand for as long as it is: the watchdog has the same word.
            self._progress.note(f"{topic}/{partition}", standing.position, 0 if standing.excused else standing.lag)
        for place in self._places - set(seen):
            topic, partition = place[0].removeprefix(self._prefix), str(place[1])
            self.metrics.lag.forget(self.stage, topic, partition)
            self._progress.forget(f"{topic}/{partition}")
        for topic in {place[0] for place in self._places} - {place[0] for place in seen}:
            self._oldest.pop(topic.removeprefix(self._prefix), None)
            self.metrics.event_age.forget(self.stage, topic.removeprefix(self._prefix))
        self._places = set(seen)
        # Without a partition nobody was asked; then the worker is not ready for that.
        self._answered = monotonic()
        self._age(seen)

    def _age(self, seen: Mapping[PartitionId, Standing]) -> None:
        """How old what is not finished is: it grows as long as nothing is."""
        now, before = now_ms(), self._standing
        standings = {(place[0].removeprefix(self._prefix), place[1]): standing for place, standing in seen.items()}
        stand = dict[tuple[str, int], tuple[Hashable, float]]()
        for place, standing in standings.items():
            position, since = before.get(place, (None, now))
            if standing.lag:
                stand[place] = standing.position, since if position == standing.position else now
        # At once: another thread tells the age too.
        self._standing = stand
        behind = {topic for topic, _ in stand}
        for topic in {topic for topic, _ in standings}:
            if topic not in behind:
                # What comes next is new, however old that was.
                self._oldest.pop(topic, None)
            self._tell_age(topic)

    def _tell_age(self, topic: str) -> None:
        times = [since for (name, _), (_, since) in list(self._standing.items()) if name == topic]
        oldest = min([*times, self._oldest.get(topic, math.inf)])
        self.metrics.event_age.set(max(0.0, (now_ms() - oldest) / 1000), self.stage, topic)

    def worked(self, topic: str, time_ms: float, seconds: float) -> None:
        """A batch of a topic is done, of which the oldest record was written at `time_ms`; it took `seconds`."""
        self._oldest[topic] = time_ms
        self._tell_age(topic)
        self.metrics.batch.observe(seconds, self.stage)

    def wrote(self, written: Written) -> None:
        """The broker has a record."""
        if written.record is None and written.topic.partition(".")[0] in SAY:
            written = written._replace(record=decode(written.value))
        observe(self.metrics, written.stage, written.topic, written.record)
        self.logs.wrote(written)

    def indexed(self, broker: str, outcome: str, items: int) -> None:
        """So many changes were handed to the index of a Broker: applied, refused, or to be handed to it again (retried)."""
        if items:
            self.metrics.index_items.add(broker, outcome, by=items)

    def ended(self, outcome: Outcome) -> None:
        """A child of the sandbox is done with a chunk."""
        ended(self.metrics, outcome)
