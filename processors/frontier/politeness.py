"""How much is requested of a host at a time: its pause in force, its credit, and how both follow its load.

Laws:
- The pause in force is the longest of those of the settings, of the root, of the host's Crawl-delay, and of its overload.
- A host has as many outstanding requests as fit into the patience of the fetch edge at that pause, at least one and at most
  `credit`: more would wait for longer than the edge lets them, and come back as `deferred`.
- 429, 503 and Retry-After concern the host, not only the URL (RFC 6585, 4; RFC 9110, 15.6.4 and 10.2.3): no request is made until
  the wait is over, at least one pause. The pause doubles with each such answer, and with each that takes twice the usual time;
  it is halved with every other answer, down to what it was.
- The usual time is a moving average, of slow answers too: a server that stays slow becomes usual.
"""

from __future__ import annotations

from processors.frontier.state import HostState
from schemas.records import CrawlEvent

OVERLOADED = (429, 503)
"""Statuses by which a server asks for fewer requests."""
LONGEST_PAUSE = 60_000
"""Longest pause in ms because of overload."""
LEAST_PAUSE = 500
"""Shortest such pause in ms, also where the settings have none."""
SLOW = 500
"""Time in ms below which no answer is slow."""
SMOOTHING = 8
"""Weight of the former average, in answers."""


def pause_of(site: HostState, pause: int) -> int:
    """Return the pause in force for a host in ms; `pause`: that of the settings or of the root, whichever is longer, in ms."""
    return max(pause, site.delay, site.slowed)


def requested_pause(site: HostState) -> int:
    """Return the pause in ms that a request states, beyond that of the settings; -1: none."""
    return max(site.delay, site.slowed or -1)


def credit_of(pause: int, credit: int, patience: int) -> int:
    """Return the maximum number of outstanding requests for a host with a pause and a patience of the edge, both in ms."""
    return max(1, min(credit, patience // pause)) if pause > 0 else credit


def doubled(pause: int) -> int:
    """Return the pause after an answer that shows overload, in ms."""
    return max(pause, min(2 * pause, LONGEST_PAUSE), LEAST_PAUSE)


def hold_of(status: int, wait: int, pause: int) -> int:
    """Return for how many ms a host gets no request after a failure; `wait`: by Retry-After, `pause`: in force, both in ms."""
    return max(wait, doubled(pause)) if status in OVERLOADED else wait


def after_answer(site: HostState, event: CrawlEvent, pause: int, now: int) -> HostState:
    """Return the row of a host after the answer to one of its requests; `pause` as in `pause_of`, `now` in ms."""
    base = max(pause, site.delay)
    if event.kind == "failed":
        if hold := hold_of(event.status, event.wait, max(base, site.slowed)):
            held: HostState = site.but(slowed=doubled(max(base, site.slowed)), next_allowed=max(site.next_allowed, now + hold))
            return held
        return site
    if event.kind not in ("fetched", "unchanged", "gone"):
        return site
    slow = event.latency >= SLOW and 0 < 2 * site.usual < event.latency
    slowed = doubled(max(base, site.slowed)) if slow else site.slowed // 2
    usual = site.usual
    if event.latency >= 0:
        usual = max(1, usual + (event.latency - usual) // SMOOTHING if usual else event.latency)
    changed: HostState = site.but(slowed=slowed if slowed > max(base, LEAST_PAUSE // 2) else 0, usual=usual)
    return changed
