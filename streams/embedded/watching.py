"""Telemetry of an embedded runner: metrics, progress, readiness, the trace of its records.

Strategy: the runner reports records and children as they come (`Turns.wrote`, `EssenceEdge.saw`, `IndexSink.saw`); the progress of
each stage is read from the store once a second, after a turn. The HTTP server runs on a thread of its own, and reports the last
values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from streams.clock import now_ms
from streams.embedded.runner import Embedded
from streams.store import Offsets
from streams.telemetry import Health, Logs, Metrics, Progress, Pulse, Written, observe
from streams.telemetry.observing import ended
from streams.topology.flow import Edge

EVERY = 1.0
"""Seconds between two reads of the progress."""


class Watch:
    """Watches a runner. `stall`: seconds without progress after which it counts as dead. `seen` is called after every turn."""

    def __init__(self, runner: Embedded, stall: float, logs: Logs, health: Health, metrics: Metrics) -> None:
        self._runner = runner
        self._logs = logs
        self._metrics = metrics
        self._progress = Progress(stall)
        # A turn may take as long as the disk needs for a flush.
        self._pulse = Pulse(stall)
        self._next = 0.0
        settings = runner.settings
        self._patience = {"fetch": settings.fetch.total_timeout, "essence": settings.limits.whole}
        """Seconds that one record may take at an edge."""
        runner.turns.wrote = self._wrote
        runner.took = lambda seconds: metrics.batch.observe(seconds, "turn")
        runner.essence.saw = lambda outcome: ended(metrics, outcome)
        for broker in (one.name for one in settings.flow.brokers):
            counted = lambda items, name=broker: metrics.index_items.add(name, "applied", by=items)  # noqa: E731 - bound to a name
            runner.sinks[f"index.{broker}"].saw = counted
        health.alive_when("loop", self._pulse.stopped)
        health.alive_when("progress", self._progress.stalled)
        health.ready_when("sandbox", self._sandbox)
        health.ready_when("index", lambda: "" if all(sink.opened() for sink in runner.sinks.values()) else "not open")
        health.started()

    def _sandbox(self) -> str:
        return "" if self._runner.essence.ready() else "the children have not started"

    def _wrote(self, written: Written) -> None:
        observe(self._metrics, written.stage, written.topic, written.record)
        self._logs.wrote(written)

    def seen(self) -> None:
        """Note that a turn has ended, and read the progress once a second."""
        self._pulse.beat()
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            self._look()

    def _look(self) -> None:
        """Measure the progress of each stage in each of its inputs."""
        store, oldest = self._runner.store, now_ms()
        for stage, topic, done in self._places():
            age = 0.0
            for partition, end in enumerate(store.ends(topic)):
                offsets = done.get((topic, partition), Offsets())
                lag = max(0, end - offsets.next - len(offsets.done))
                self._metrics.lag.set(lag, stage, topic, str(partition))
                self._progress.note(f"{stage} {topic}/{partition}", offsets, lag, self._patience.get(stage, 0.0))
                if lag:
                    first = store.read(topic, partition, offsets.next, 1)
                    age = max([age, *((oldest - logged.time) / 1000 for logged in first)])
            self._metrics.event_age.set(age, stage, topic)

    def _places(self) -> Iterator[tuple[str, str, dict[tuple[str, int], Offsets]]]:
        """Yield each stage with each of its inputs, and the offsets that it has finished."""
        for stage in self._runner.topology.stages:
            sink = isinstance(stage, Edge) and stage.kind == "sink"
            for topic in stage.inputs:
                if sink:
                    partitions = range(self._runner.partitions)
                    follower = self._runner.sinks[stage.name]
                    done = {(topic.name, p): Offsets(follower.applied(p)) for p in partitions}
                else:
                    done = self._runner.store.offsets(stage.name)
                yield stage.name, topic.name, done
