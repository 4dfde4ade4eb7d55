"""The clock of the runners: the one place where it is read.

It never goes back: within a process it is the time of the start plus what a monotonic clock has measured since, and a start is not
before the last time that was applied, whatever the machine's clock says by then. A machine that sleeps does not stop it, where the
system has a clock for that (CLOCK_BOOTTIME): another process would be hours ahead, and what it appends would come from the future.
"""

from __future__ import annotations

import time

AHEAD = 3_600_000
"""ms that another machine's clock may be ahead of this one's: brokers, as they come, take no record from farther ahead either."""
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Ms since the epoch, rising."""

    def __init__(self) -> None:
        self._wall = self._machine = time.time_ns()
        self._start = time.clock_gettime_ns(STEADY)

    def __call__(self) -> int:
        """The time in ms since the epoch."""
        return (self._wall + time.clock_gettime_ns(STEADY) - self._start) // 1_000_000

    def machine(self) -> int:
        """The same, but for what it was told by `not_before`."""
        return (self._machine + time.clock_gettime_ns(STEADY) - self._start) // 1_000_000

    def not_before(self, ms: int) -> None:
        """From now on, no earlier than `ms`."""
        self._wall += max(0, ms - self()) * 1_000_000


now_ms = Clock()
