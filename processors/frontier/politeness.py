"""How much is requested of a host at a time: its pause in force, and its credit.

Laws:
- The pause in force is the longest of those of the settings, of the root, of the host's Crawl-delay, and of its overload.
- A host has as many outstanding requests as fit into the patience of the fetch edge at that pause, at least one and at most
  `credit`: more would wait for longer than the edge lets them, and come back as `deferred`.
"""

from __future__ import annotations

from processors.frontier.state import HostState


def pause_of(site: HostState, pause: int) -> int:
    """Return the pause in force for a host in ms; `pause`: that of the settings or of the root, whichever is longer, in ms."""
    return max(pause, site.delay, site.slowed)


def credit_of(pause: int, credit: int, patience: int) -> int:
    """Return the maximum number of outstanding requests for a host with a pause and a patience of the edge, both in ms."""
    return max(1, min(credit, patience // pause)) if pause > 0 else credit
