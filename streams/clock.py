"""The monotonic clock of the runners, the only place where they read the time.

It never goes back: within a process it is the start time plus the reading of a monotonic clock, and the start time is not before
the last time that was applied, even if the machine's clock is behind by then. Where the system has CLOCK_BOOTTIME, the clock keeps
running while the machine sleeps: otherwise the process would fall hours behind others, and their records would seem to come from
the future.
"""

from __future__ import annotations

import time

AHEAD = 3_600_000
"""Greatest lead (ms) of another machine's clock over this one: Kafka brokers, by default, refuse records from farther ahead too."""
MONOTONIC_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Ms since the epoch, never decreasing."""

    def __init__(self) -> None:
        self._wall = self._machine = time.time_ns()
        self._start = time.clock_gettime_ns(MONOTONIC_CLOCK)

    def __call__(self) -> int:
        """Return the time in ms since the epoch."""
        return (self._wall + time.clock_gettime_ns(MONOTONIC_CLOCK) - self._start) // 1_000_000

    def machine(self) -> int:
        """Return the time in ms since the epoch by this machine alone, without the corrections of `not_before`."""
        return (self._machine + time.clock_gettime_ns(MONOTONIC_CLOCK) - self._start) // 1_000_000

    def not_before(self, ms: int) -> None:
        """Never return a time before `ms` from now on."""
        self._wall += max(0, ms - self()) * 1_000_000


now_ms = Clock()
