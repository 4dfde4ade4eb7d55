"""Metrics, health checks and trace of a worker.

Strategy: the worker's parts report what they do anyway: the agent and the outbox report acknowledged records, the watchdog the
progress of each partition. No metric causes a request to the broker.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
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
"""Topics whose records are decoded for the metrics; the first part of their names."""


class PartitionProgress(NamedTuple):
    """Progress of a partition: a value that changes with it, the lag, and whether a standstill is excused."""

    position: Hashable
    lag: int
    excused: bool


class WorkerTelemetry:
    """Telemetry of one worker of a stage. `prefix` starts the names of topics on the broker."""

    def __init__(self, stage: str, prefix: str, stall: float, health: Health, metrics: Metrics, logs: Logs) -> None:
        self.stage = stage
        self.health = health
        self.metrics = metrics
        self.logs = logs
        self._prefix = prefix
        self._stall = stall
        self._progress = Progress(stall)
        self.refused_at = -math.inf
        """Time (monotonic) when the cluster last refused this worker."""
        self.refused: Callable[[], None] = lambda: None
        """Called before the end of the process; does not return if the cluster refuses this worker."""
        self._places: set[PartitionId] = set()
        self._answered = monotonic()
        """Time (monotonic) of the broker's last answer to the watchdog; initially the start of the worker."""
        self._oldest: dict[str, float] = {}
        """By topic: time (ms) of the oldest record in the last finished batch; unfinished records are about as old."""
        self._standing: dict[tuple[str, int], tuple[Hashable, float]] = {}
        """By partition with a lag: its position, and the time (ms) since when it has been there."""
        health.alive_when("progress", self._progress.stalled)

    def end(self, why: str) -> None:
        """Log the reason, and end the process: its supervisor restarts it."""
        self.refused()
        self.logs.last(why)
        os._exit(1)

    def retains(self, topics: Iterable[str], seconds: float) -> None:
        """Report the age at which the broker deletes records of some inputs, against which their age is an alert."""
        for topic in topics:
            self.metrics.retention.set(seconds, self.stage, topic)

    def hold(self, reason: str) -> None:
        """Make the worker not ready for a reason that lies in the cluster; "": it is gone, and standstills count from now on."""
        if not reason:
            for topic, partition in self._places:
                self._progress.forget(f"{topic.removeprefix(self._prefix)}/{partition}")
        else:
            self.refused_at = monotonic()
        self.health.hold(reason)

    def beats(self, beat: Check) -> None:
        """Register the check of the event loop."""
        self.health.alive_when("loop", beat)

    def needs(self, name: str, check: Check) -> None:
        """Register a readiness check."""
        self.health.ready_when(name, check)

    def started(self) -> None:
        """Mark all readiness checks as registered: before that, the worker is never ready."""
        self.health.started()

    def broker(self) -> str:
        """Return an error if no broker has answered the watchdog for half of `stall`, in which it asks several times; else ""."""
        silent = monotonic() - self._answered
        return "" if silent <= self._stall / 2 else f"no broker has answered for {silent:.0f} s"

    def since(self, beat: float) -> str:
        """Return an error if a loop's last iteration, at `beat` (monotonic), is older than `stall`; else ""."""
        return "" if monotonic() - beat <= self._stall else f"the loop has stood still for more than {self._stall:g} s"

    def looked(self, seen: Mapping[PartitionId, PartitionProgress]) -> None:
        """Update metrics and progress after the watchdog has checked all partitions of this worker."""
        for place, standing in seen.items():
            topic, partition = place[0].removeprefix(self._prefix), str(place[1])
            self.metrics.lag.set(standing.lag, self.stage, topic, partition)
            # An excused partition may stand still without limit, as for the watchdog.
            self._progress.note(f"{topic}/{partition}", standing.position, 0 if standing.excused else standing.lag)
        for place in self._places - set(seen):
            topic, partition = place[0].removeprefix(self._prefix), str(place[1])
            self.metrics.lag.forget(self.stage, topic, partition)
            self._progress.forget(f"{topic}/{partition}")
        for topic in {place[0] for place in self._places} - {place[0] for place in seen}:
            self._oldest.pop(topic.removeprefix(self._prefix), None)
            self.metrics.event_age.forget(self.stage, topic.removeprefix(self._prefix))
        self._places = set(seen)
        # Without partitions no broker was asked; but then the worker is not ready anyway.
        self._answered = monotonic()
        self._age(seen)

    def _age(self, seen: Mapping[PartitionId, PartitionProgress]) -> None:
        """Update the age of unfinished records, which grows while nothing is finished."""
        now, before = now_ms(), self._standing
        standings = {(place[0].removeprefix(self._prefix), place[1]): standing for place, standing in seen.items()}
        stand = dict[tuple[str, int], tuple[Hashable, float]]()
        for place, standing in standings.items():
            position, since = before.get(place, (None, now))
            if standing.lag:
                stand[place] = standing.position, since if position == standing.position else now
        # Replaced in one step: another thread reads it to compute the age.
        self._standing = stand
        behind = {topic for topic, _ in stand}
        for topic in {topic for topic, _ in standings}:
            if topic not in behind:
                # The lag is gone: the next record is new, whatever the age before.
                self._oldest.pop(topic, None)
            self._tell_age(topic)

    def _tell_age(self, topic: str) -> None:
        times = [since for (name, _), (_, since) in list(self._standing.items()) if name == topic]
        oldest = min([*times, self._oldest.get(topic, math.inf)])
        self.metrics.event_age.set(max(0.0, (now_ms() - oldest) / 1000), self.stage, topic)

    def worked(self, topic: str, time_ms: float, seconds: float) -> None:
        """Report a finished batch of a topic: time of its oldest record (ms), and duration in seconds."""
        self._oldest[topic] = time_ms
        self._tell_age(topic)
        self.metrics.batch.observe(seconds, self.stage)

    def wrote(self, written: Written) -> None:
        """Report a record that the broker has acknowledged."""
        if written.record is None and written.topic.partition(".")[0] in SAY:
            written = written._replace(record=decode(written.value))
        observe(self.metrics, written.stage, written.topic, written.record)
        self.logs.wrote(written)

    def indexed(self, broker: str, outcome: str, items: int) -> None:
        """Report changes that were sent to a Broker's index: applied, refused, or to be sent again (retried)."""
        if items:
            self.metrics.index_items.add(broker, outcome, by=items)

    def ended(self, outcome: Outcome) -> None:
        """Report that a parser process has finished a chunk."""
        ended(self.metrics, outcome)
