"""Health of a process: whether it is alive, and whether it is ready for work.

Strategy: each part of a process adds a check, a function that returns "" or one line that says what is wrong. /livez is about
progress: a process that answers and does not move is dead (Faust, issue 596 and others). /readyz is about what it needs.

Laws:
- No check blocks: it returns what was measured last, since it is called on another thread than the one that works.
- A check that raises counts as failed.
- An outside failure never makes a process dead: a restart does not repair a broker. It makes the process not ready.
- A process is not ready before all its checks are added, although it is asked from the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

STARTING = "starting"
"""The check that fails until all others have been added."""
HELD = "held"
"""The check that fails while the process waits for what others have to mend."""
Check = Callable[[], str]
"""Returns "" if all is well, else one line that says what is wrong."""


class Verdict(NamedTuple):
    """The answer of one endpoint: every check by its name, with its result."""

    checks: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Return whether no check has failed."""
        return not any(self.checks.values())


class Health:
    """The checks of one process."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._held = ""
        self._ready: dict[str, Check] = {STARTING: lambda: "not all checks are there yet"}

    def started(self) -> None:
        """Note that all checks have been added: from now on only they decide."""
        self._ready.pop(STARTING, None)

    def hold(self, reason: str) -> None:
        """Note why the process waits for others: it is alive and not ready, whatever its checks return. "": it goes on."""
        self._held = reason

    def alive_when(self, name: str, check: Check) -> None:
        """Add a check to /livez."""
        self._live[name] = check

    def ready_when(self, name: str, check: Check) -> None:
        """Add a check to /readyz."""
        self._ready[name] = check

    def alive(self) -> Verdict:
        """Return whether the process makes progress, or has nothing to do."""
        return Verdict({}) if self._held else _asked(self._live)

    def ready(self) -> Verdict:
        """Return whether the process is alive and has everything that it needs."""
        return Verdict({HELD: self._held}) if self._held else _asked(self._live | self._ready)


def _asked(checks: Mapping[str, Check]) -> Verdict:
    return Verdict({name: _said(check) for name, check in list(checks.items())})


def _said(check: Check) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a check that fails is bad news, not the end of the server
        return f"the check failed: {type(error).__name__}"


class _Seen(NamedTuple):
    position: Hashable
    since: float
    lag: int
    patience: float


class Progress:
    """The watchdog: a place with lag and without progress for longer than allowed is stalled. Times are seconds.

    `clock` is monotonic. `stall`: the allowed time of places that have none of their own.
    """

    def __init__(self, stall: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall = stall
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def note(self, place: str, position: Hashable, lag: int, patience: float = 0.0) -> None:
        """Note the progress of a place: `position` is any value that changes when it moves.

        `patience`: seconds that one record may take there beyond `stall`, such as an exchange with a server or an archive.
        """
        before, now = self._seen.get(place), self._clock()
        moved = before is None or before.position != position or before.lag == 0
        self._seen[place] = _Seen(position, now if moved or before is None else before.since, lag, self._stall + patience)

    def forget(self, place: str) -> None:
        """Forget a place that another worker has taken over."""
        self._seen.pop(place, None)

    def stalled(self) -> str:
        """Return which place is stalled, "" if none is. A check for `Health.alive_when`."""
        now = self._clock()
        standing = [p for p, seen in list(self._seen.items()) if seen.lag > 0 and now - seen.since > seen.patience]
        return f"no progress in {', '.join(sorted(standing)[:5])}" if standing else ""


class Pulse:
    """Detects whether a loop still runs: the loop calls `beat`."""

    def __init__(self, stall: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall = stall
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        """Note that the loop runs."""
        self._last = self._clock()

    def stopped(self) -> str:
        """Return for how long the loop has not run, "" if it runs. A check for `Health.alive_when`."""
        return "" if self._clock() - self._last <= self._stall else f"the loop has stood still for more than {self._stall:g} s"
