"""Health: what a process says of itself when it is asked whether it lives, and whether it may be sent work.

Strategy: whoever knows something brings a check, a function that answers "" or says in one line what is wrong. /livez is about
progress: a process that answers and does not move is dead (Faust, issue 596 and others). /readyz is about what it needs.

Laws:
- No check blocks: it says what was seen last. Whoever asks is on another thread than whoever works.
- A check that raises says that something is wrong.
- Nothing of the world outside makes a process dead: a restart does not mend a broker. It makes it not ready.
- Nobody is ready before all who know something have brought their checks: it is asked from the first moment on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

STARTING = "starting"
"""The check that fails until all others are there."""
Check = Callable[[], str]
"""Gives "" where all is well, else what is wrong, in one line."""


class Verdict(NamedTuple):
    """The answer to one question: every check by its name, with what it said."""

    checks: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.checks.values())


class Health:
    """The checks of one process."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {STARTING: lambda: "not all checks are there yet"}

    def started(self) -> None:
        """All checks are there: from now on they alone decide."""
        self._ready.pop(STARTING, None)

    def alive_when(self, name: str, check: Check) -> None:
        """Have /livez ask this too."""
        self._live[name] = check

    def ready_when(self, name: str, check: Check) -> None:
        """Have /readyz ask this too."""
        self._ready[name] = check

    def alive(self) -> Verdict:
        """Whether the process moves, or has nothing to do."""
        return _asked(self._live)

    def ready(self) -> Verdict:
        """Whether it lives, and has all that it needs for its work."""
        return _asked(self._live | self._ready)


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
    """The watchdog: a place with lag where nothing has moved for longer than it may take is stalled. Times are seconds.

    `clock` is monotonic. `stall` is for places that are not told otherwise.
    """

    def __init__(self, stall: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall = stall
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def note(self, place: str, position: Hashable, lag: int, patience: float = 0.0) -> None:
        """Say how far a place has come: `position` is anything that changes when it moves.

        `patience` is what one record may take there beyond `stall`: an exchange with a server, an archive.
        """
        before, now = self._seen.get(place), self._clock()
        moved = before is None or before.position != position or before.lag == 0
        self._seen[place] = _Seen(position, now if moved or before is None else before.since, lag, self._stall + patience)

    def forget(self, place: str) -> None:
        """Say no more of a place: it went to another worker."""
        self._seen.pop(place, None)

    def stalled(self) -> str:
        """What stands still; "" where nothing does. Fit for `Health.alive_when`."""
        now = self._clock()
        standing = [p for p, seen in list(self._seen.items()) if seen.lag > 0 and now - seen.since > seen.patience]
        return f"no progress in {', '.join(sorted(standing)[:5])}" if standing else ""


class Pulse:
    """Whether a loop goes round: `beat` is called by the loop."""

    def __init__(self, stall: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall = stall
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        """The loop is here."""
        self._last = self._clock()

    def stopped(self) -> str:
        """How the loop stands still; "" where it does not. Fit for `Health.alive_when`."""
        return "" if self._clock() - self._last <= self._stall else f"the loop has stood still for more than {self._stall:g} s"
