"""The log of actions: who asked for what, and what became of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

KEPT = 100
"""Actions that are kept in memory for the page."""
STRANGERS = 20
"""Refusals of those who have not logged in that are kept beside them: however many, they push no action out."""
MAX_VALUE = 200
"""Maximum characters of an argument and of an outcome."""


class Action(NamedTuple):
    """An action that was asked for."""

    time: int
    """ms since the epoch."""
    client: str
    action: str
    arguments: str
    """Escaped and bounded."""
    outcome: str
    """Escaped and bounded."""


class Journal:
    """Keeps the latest actions, and writes each as a line through `log`. `clock`: returns seconds."""

    def __init__(self, log: Callable[[str], object], clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock
        self._latest: deque[Action] = deque(maxlen=KEPT)
        self._strangers: deque[Action] = deque(maxlen=STRANGERS)

    def note(self, client: str, action: str, arguments: Mapping[str, str], outcome: str, *, stranger: bool = False) -> None:
        """Record an action; `stranger`: of somebody who has not logged in."""
        given = " ".join(f"{name}={_escaped(value)}" for name, value in arguments.items() if value)
        # Where any proxy is believed (serve.proxies), the address is what a client says.
        found = Action(int(self._clock() * 1_000), _escaped(client)[1:-1], action, given, _escaped(outcome)[1:-1])
        (self._strangers if stranger else self._latest).append(found)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.time / 1_000))
        self._log(f"administration: {moment} {found.client} {action}{f' {given}' if given else ''}: {found.outcome}")

    def latest(self) -> Sequence[Action]:
        """Return the latest actions, the last one first."""
        return sorted((*self._strangers, *self._latest), key=lambda action: action.time)[::-1]


def _escaped(value: str) -> str:
    """Return text in quotes, without controls and marks of direction, and not too long."""
    return repr(value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}…")
