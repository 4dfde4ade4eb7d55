"""What the pipeline is doing now: hosts, roots, and stages with their rates; the stages from either engine's log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sinks.index.errors import IndexDamaged
from streams.logs import LogAccess
from streams.topology.flow import Topology


class HostActivity(NamedTuple):
    """A host with URLs in its queue, requests in flight or errors."""

    host: str
    pause: float
    """Seconds between two requests."""
    queue: int
    in_flight: int
    errors: int
    """Transient failures in a row."""
    next: int | None
    """Time in ms since the epoch before which it is not requested; None: it may be requested now."""


class RootActivity(NamedTuple):
    """A root, with the number of its URLs by state."""

    root: str
    paused: bool
    known: int
    waiting: int
    """In a queue, in flight, or before their next try."""
    done: int
    failed: int
    refused: int


class StageActivity(NamedTuple):
    """A stage: records still to be read, and records read per second; None: unknown before a second reading."""

    stage: str
    lag: int
    rate: float | None


class Activity(NamedTuple):
    """All of it; `notes` say what is left out or unknown."""

    hosts: Sequence[HostActivity]
    roots: Sequence[RootActivity]
    stages: Sequence[StageActivity]
    notes: Sequence[str] = ()


class StageRates:
    """Lag of each stage, and its rate since the reading before. Ticks are not counted. `clock`: returns seconds."""

    def __init__(self, log: LogAccess, drawn: Topology, clock: Callable[[], float]) -> None:
        self._log = log
        self._drawn = drawn
        self._clock = clock
        self._names = sorted((stage.name for stage in drawn.stages), key=len, reverse=True)
        self._before: tuple[float, Counter[str]] | None = None

    def read(self) -> tuple[list[StageActivity], list[str]]:
        """Return the stages in flow order, and notes."""
        lags: Counter[str] = Counter()
        done: Counter[str] = Counter()
        notes = []
        now = self._clock()
        try:
            for one in self._log.lags(self._drawn):
                if not one.topic.endswith(".ticks"):
                    # On Kafka a group has a prefix before the name of its stage.
                    name = next((name for name in self._names if one.group.endswith(name)), one.group)
                    lags[name] += max(0, one.lag)
                    done[name] += one.end - max(0, one.lag)
        except IndexDamaged as error:
            notes.append(f"the lag of an index is not known: {error}")
        before, self._before = self._before, (now, done)
        return [StageActivity(name, lag, _rate(name, before, (now, done))) for name, lag in lags.items()], notes


def _rate(name: str, before: tuple[float, Counter[str]] | None, after: tuple[float, Counter[str]]) -> float | None:
    if before is None or after[0] <= before[0] or name not in before[1]:
        return None
    # A stage that was made to start over has read less than before.
    return max(0, after[1][name] - before[1][name]) / (after[0] - before[0])
