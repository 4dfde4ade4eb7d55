"""Rate of a counter over the last ten seconds: steadier than that between two updates, and not that of the whole run."""

from __future__ import annotations

from collections import deque

WINDOW = 10.0
"""Seconds that the rate covers, or all since the beginning if these are fewer."""
STEP = 0.25
"""Seconds between two samples that are kept."""


class RecentRate:
    """Samples of a counter, at most one for each `STEP`. Times are seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._samples = deque([(now, 0)])

    def add(self, now: float, count: int) -> None:
        """Take a sample, and drop those before the window, but for the last of them."""
        if now - self._samples[-1][0] >= STEP:
            self._samples.append((now, count))
        while len(self._samples) > 1 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()

    def per_second(self, now: float, count: int) -> float:
        """Return the rate at a time when the counter has this value."""
        self.add(now, count)
        begun, before = self._samples[0]
        # Samples are taken as often as the counter grows: it had the value of an older sample until the window began.
        return (count - before) / max(min(now - begun, WINDOW), STEP)
