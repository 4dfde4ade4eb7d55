"""Whether a sink knows where to go on, and when it asks again."""

from __future__ import annotations

import time

FIRST, LONGEST = 0.2, 15.0
"""Seconds between two tries: at first, and at the most."""


class PositionKeeper:
    """What a sink knows of its place. `done`: it has been told where to go on, and nothing has failed since."""

    def __init__(self) -> None:
        self.done = False
        self._at = 0.0
        self._pause = FIRST
        self._failing = False

    def due(self) -> bool:
        """Whether to ask now."""
        return not self.done and time.monotonic() >= self._at

    def found(self) -> None:
        """It has been told."""
        self.done = True

    def lost(self) -> None:
        """It has to ask again, at once."""
        self.done = False
        self._at = 0.0

    def failed(self) -> bool:
        """It has to ask again, after a pause that grows; says whether that is news."""
        self.done = False
        self._at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST)
        news, self._failing = not self._failing, True
        return news

    def succeeded(self) -> bool:
        """Something was done again; says whether that is news."""
        self._pause = FIRST
        news, self._failing = self._failing, False
        return news
