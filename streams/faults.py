"""Named points at which a test can kill the process or simulate a full disk.

`fault("point")` does nothing, unless the environment of the process contained, at its start,
`HARVEST_FAULT=point:n:kill|enospc[,...]`: then the n-th call (from 1) of that point ends the process with SIGKILL, or
raises OSError(ENOSPC). The environment is read once, on import, so that an inactive point costs one empty call.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

VARIABLE = "HARVEST_FAULT"

Effect = Callable[[], None]


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _enospc() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


EFFECTS: dict[str, Effect] = {"kill": _kill, "enospc": _enospc}


def parse(text: str) -> dict[str, tuple[int, Effect]]:
    """Parse the value of HARVEST_FAULT into count and effect by point. Raises ValueError with one line for a malformed one."""
    plan: dict[str, tuple[int, Effect]] = {}
    for part in filter(None, text.split(",")):
        try:
            point, count, effect = part.split(":")
            plan[point] = (int(count), EFFECTS[effect])
        except (ValueError, KeyError):
            raise ValueError(f"{VARIABLE}: expected point:count:kill|enospc, got {part!r}") from None
    return plan


class Faults:
    """A fault plan with its counters: callable with the name of a point."""

    def __init__(self, plan: dict[str, tuple[int, Effect]]) -> None:
        self._plan = plan
        self._seen = dict.fromkeys(plan, 0)

    def __call__(self, point: str) -> None:
        """Count a call of the point, and trigger the effect planned for this count."""
        if point in self._plan:
            self._seen[point] += 1
            count, effect = self._plan[point]
            if self._seen[point] == count:
                effect()


def _off(point: str) -> None:
    """Do nothing: no fault is planned in this process."""


_PLAN = parse(os.environ.get(VARIABLE, ""))
fault: Callable[[str], None] = Faults(_PLAN) if _PLAN else _off
