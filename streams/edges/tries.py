"""How often, and for how long, an object was tried whose children end, and what of it is not opened again (law 8).

Shared by the essence edge and by `harvest summarize`, so that both give the same records of the same file.

Laws:
- A member that ends its child is skipped alone, and the others are read. What is skipped, and for how long members may hold their
  children, is bounded; behind the last of them the rest of the object is only listed, each of its members with that as the reason.
- A container that gets no further behind one of its members, having to read it all the same, ends there: what was read before
  stands, and what lies around the container is read.
"""

from __future__ import annotations

import signal

from processors.essence.member import BEHIND
from schemas.records import MAX_REASON
from streams.sandbox.task import Clock
from streams.sandbox.values import Crashed, Outcome, SandboxLimits, TimedOut

MEMBERS = 64
"""Members of one object that are skipped one by one; behind the last of them, no more of it is opened."""
PATIENCE = 12
"""Members of one object that may hold a child until the deadline; the same behind them."""
SHARE = 2
"""The part of the time of an object in which members that hold a child are looked for: what is left is for all the others."""
SPARED = 2
"""Times that an object is not blamed for a SIGKILL: it comes from outside, from a person, or from a kernel short of memory."""


class Tries:
    """What is known of an object that was tried."""

    def __init__(self) -> None:
        self.skip: dict[str, str] = {}
        """Members that are not to be opened, with why; "": the object itself."""
        self.stop = ""
        """The member of `skip` behind which nothing is opened any more."""
        self.ends: dict[str, str] = {}
        """Members behind which their containers are not read any further, with why."""
        self.clock = Clock()
        self.timeouts = self.killed = 0

    def spared(self, outcome: Outcome) -> bool:
        """Whether an object is tried again as it is."""
        if isinstance(outcome, Crashed) and outcome.signal == signal.SIGKILL and self.killed < SPARED:
            self.killed += 1
            return True
        return False

    def failed_at(self, culprit: str, outcome: Outcome, limits: SandboxLimits) -> None:
        """Note what is not to be opened when it is tried again."""
        self.timeouts += isinstance(outcome, TimedOut)
        spent = self.clock.spent >= limits.whole or (isinstance(outcome, TimedOut) and outcome.which != "deadline")
        behind, path = culprit.startswith(BEHIND), culprit.removeprefix(BEHIND)
        if behind and path in self.ends:
            # Its container cannot even be ended.
            behind, path = False, path.rpartition("#")[0]
        if behind and not spent:
            self.ends[path] = outcome.reason[:MAX_REASON]
        elif spent or not path or path in self.skip:
            # A member that is skipped and fails all the same is not what is wrong: the whole object is skipped.
            self.skip[""] = outcome.reason[:MAX_REASON]
            # To say so takes next to no time, but some.
            self.clock.spent = min(self.clock.spent, max(limits.whole - limits.deadline, 0.0))
        else:
            self.skip[path] = outcome.reason[:MAX_REASON]
        late = self.timeouts >= PATIENCE or (self.timeouts and self.clock.spent * SHARE >= limits.whole)
        if not self.stop and (late or len(self.skip) + len(self.ends) >= MEMBERS):
            self.stop = path
