"""State of a sink's start offsets, and the back-off of attempts to get them."""

from __future__ import annotations

import time

FIRST, LONGEST = 0.2, 15.0
"""Seconds between two attempts: first and longest."""


class PositionKeeper:
    """Whether the start offsets are known. `done`: the index returned them, and nothing has failed since."""

    def __init__(self) -> None:
        self.done = False
        self._at = 0.0
        self._pause = FIRST
        self._failing = False

    def due(self) -> bool:
        """Whether the index is to be asked now."""
        return not self.done and time.monotonic() >= self._at

    def found(self) -> None:
        """Record that the offsets are known."""
        self.done = True

    def lost(self) -> None:
        """Request an immediate new attempt."""
        self.done = False
        self._at = 0.0

    def failed(self) -> bool:
        """Request a new attempt after a growing pause; whether this is the first failure since a success."""
        self.done = False
        self._at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST)
        news, self._failing = not self._failing, True
        return news

    def succeeded(self) -> bool:
        """Reset the pause after a success; whether it is the first after a failure."""
        self._pause = FIRST
        news, self._failing = self._failing, False
        return news
