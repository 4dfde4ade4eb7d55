"""How often, and for how long, an object was tried whose children end, and what of it is not opened again (law 8).

Shared by the essence edge and by `harvest summarize`, so that both give the same records of the same file.
"""

from __future__ import annotations

import signal

from schemas.records import MAX_REASON
from streams.sandbox.task import Clock
from streams.sandbox.values import Crashed, Limits, Outcome, TimedOut

MEMBERS = 64
"""Members of one object that are skipped one by one; then the whole object is."""
PATIENCE = 3
"""Members of one object that may hold a child until the deadline; behind the last of them, the object is given up."""
SPARED = 2
"""Times that an object is not blamed for a SIGKILL: it comes from outside, from a person, or from a kernel short of memory."""


class Tries:
    """What is known of an object that was tried."""

    def __init__(self) -> None:
        self.skip: dict[str, str] = {}
        """Members that are not to be opened, with why; "": the object itself."""
        self.stop = ""
        """The member of `skip` behind which it is given up."""
        self.clock = Clock()
        self.timeouts = self.killed = 0

    def spared(self, outcome: Outcome) -> bool:
        """Whether an object is tried again as it is."""
        if isinstance(outcome, Crashed) and outcome.signal == signal.SIGKILL and self.killed < SPARED:
            self.killed += 1
            return True
        return False

    def failed_at(self, culprit: str, outcome: Outcome, limits: Limits) -> None:
        """Note what is not to be opened when it is tried again."""
        self.timeouts += isinstance(outcome, TimedOut)
        spent = self.clock.spent >= limits.whole or (isinstance(outcome, TimedOut) and outcome.which != "deadline")
        # A member that is skipped and fails all the same, or a second end: the whole object is skipped.
        known = culprit in self.skip or len(self.skip) >= MEMBERS or bool(self.stop)
        if spent or known:
            culprit = ""
            # To say so takes next to no time, but some.
            self.clock.spent = min(self.clock.spent, max(limits.whole - limits.deadline, 0.0))
        elif self.timeouts >= PATIENCE:
            self.stop = culprit
        self.skip[culprit] = outcome.reason[:MAX_REASON]
