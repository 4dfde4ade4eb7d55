"""What a worker says of itself: metrics, whether it moves and is ready, the trace of what it has written.

Strategy: the worker's parts tell of what they have done anyway: the agent and the outbox of what the broker has acknowledged, the
watchdog of how far each partition is. Nothing asks the broker on behalf of a metric.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from schemas.codec import decode
from streams.clock import now_ms
from streams.sandbox.values import Outcome
from streams.telemetry import Check, Health, Logs, Metrics, Progress, Written, observe
from streams.telemetry.observing import ended

Place = tuple[str, int]
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
        self._places: set[Place] = set()
        health.alive_when("progress", self._progress.stalled)

    def beats(self, beat: Check) -> None:
        """`beat` says whether the loop goes round."""
        self.health.alive_when("loop", beat)

    def needs(self, name: str, check: Check) -> None:
        """What the worker is not ready without."""
        self.health.ready_when(name, check)

    def started(self) -> None:
        """The worker has said what it needs: before, it passes for ready by no means."""
        self.health.started()

    def since(self, beat: float) -> str:
        """What is wrong with a loop that went round last at `beat` (monotonic)."""
        return "" if time.monotonic() - beat <= self._stall else f"the loop has stood still for more than {self._stall:g} s"

    def looked(self, seen: Mapping[Place, Standing]) -> None:
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
        self._places = set(seen)
        for topic in {place[0] for place in seen}:
            if not any(standing.lag for place, standing in seen.items() if place[0] == topic):
                self.metrics.event_age.set(0, self.stage, topic.removeprefix(self._prefix))

    def worked(self, topic: str, time_ms: float, seconds: float) -> None:
        """A batch of a topic is done, of which the oldest record was written at `time_ms`; it took `seconds`."""
        self.metrics.event_age.set(max(0.0, (now_ms() - time_ms) / 1000), self.stage, topic)
        self.metrics.batch.observe(seconds, self.stage)

    def wrote(self, written: Written) -> None:
        """The broker has a record."""
        if written.record is None and written.topic.partition(".")[0] in SAY:
            written = written._replace(record=decode(written.value))
        observe(self.metrics, written.stage, written.topic, written.record)
        self.logs.wrote(written)

    def ended(self, outcome: Outcome) -> None:
        """A child of the sandbox is done with a chunk."""
        ended(self.metrics, outcome)
