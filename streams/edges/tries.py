"""Tries of an object whose children end: how often and for how long it was tried, and which members are skipped (law 8).

Shared by the essence edge and by `harvest summarize`, so that both give the same records for the same file.

Laws:
- A member that ends its child is skipped alone, and the others are read. The number of skipped members, and the time for which
  members may hold their children, are bounded; after the last of them the rest of the object is only listed, each member with that
  reason.
- A container that makes no progress after one of its members ends there: what was read before stays, and what surrounds the
  container is read.
"""

from __future__ import annotations

import signal

from processors.essence.member import BEHIND
from schemas.records import MAX_REASON
from streams.sandbox.task import Clock
from streams.sandbox.values import Crashed, Outcome, SandboxLimits, TimedOut

MEMBERS = 64
"""Members of one object that are skipped one by one; after the last of them nothing more of it is opened."""
PATIENCE = 12
"""Members of one object that may hold a child until the deadline; after the last of them nothing more is opened."""
SHARE = 2
"""Divisor of an object's time: this part is spent on finding members that hold a child, the rest on all others."""
SPARED = 2
"""Times that an object is not blamed for a SIGKILL, which comes from outside: from a person, or from a kernel short of memory."""


class RetryState:
    """State of an object that was tried."""

    def __init__(self) -> None:
        self.skip: dict[str, str] = {}
        """Members not to be opened, with the reason; "": the object itself."""
        self.stop = ""
        """The member of `skip` after which nothing more is opened."""
        self.ends: dict[str, str] = {}
        """Members after which their containers are not read further, with the reason."""
        self.clock = Clock()
        self.timeouts = self.killed = 0

    def spared(self, outcome: Outcome) -> bool:
        """Return whether an object is tried again unchanged."""
        if isinstance(outcome, Crashed) and outcome.signal == signal.SIGKILL and self.killed < SPARED:
            self.killed += 1
            return True
        return False

    def failed_at(self, culprit: str, outcome: Outcome, limits: SandboxLimits) -> None:
        """Note what must not be opened in the next try."""
        self.timeouts += isinstance(outcome, TimedOut)
        spent = self.clock.spent >= limits.whole or (isinstance(outcome, TimedOut) and outcome.which != "deadline")
        behind, path = culprit.startswith(BEHIND), culprit.removeprefix(BEHIND)
        if behind and path in self.ends:
            # The container cannot even be ended.
            behind, path = False, path.rpartition("#")[0]
        if behind and not spent:
            self.ends[path] = outcome.reason[:MAX_REASON]
        elif spent or not path or path in self.skip:
            # A skipped member that fails again is not the cause: the whole object is skipped.
            self.skip[""] = outcome.reason[:MAX_REASON]
            # Reporting that takes little time, but some.
            self.clock.spent = min(self.clock.spent, max(limits.whole - limits.deadline, 0.0))
        else:
            self.skip[path] = outcome.reason[:MAX_REASON]
        late = self.timeouts >= PATIENCE or (self.timeouts and self.clock.spent * SHARE >= limits.whole)
        if not self.stop and (late or len(self.skip) + len(self.ends) >= MEMBERS):
            self.stop = path
