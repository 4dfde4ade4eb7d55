"""How much is requested of a host at a time: its pause in force, its credit, and how both follow its load.

Laws:
- The pause in force is the longest of those of the settings, of the root, of the host's Crawl-delay, and of its overload.
- A host has as many outstanding requests as fit into the patience of the fetch edge at that pause, at least one and at most
  `credit`: more would wait for longer than the edge lets them, and come back as `deferred`.
- A pause beyond that patience passes here, all but half of the patience: a request is not in flight while its host rests. One
  beyond a minute passes here as a whole: an edge that has started since would not know of the rest.
- 429, 503 and Retry-After concern the host, not only the URL (RFC 6585, 4; RFC 9110, 15.6.4 and 10.2.3): no request is made until
  the wait is over, at least one pause. The pause doubles with such an answer, and with one that takes twice the usual time, but
  once for all requests that were made before it did; it is halved with every other answer for a page, down to what it was.
  robots.txt is small: that it was answered does not show that the host has recovered.
- A host at the longest pause is held for a moment more than a run waits for: its queue is left to the next run, or to the service.
- One slow answer changes nothing, the next one in a row doubles the pause: a host has one exchange at a time, so that a stall of
  this process, which counts as time of the server, makes one answer slow.
- The usual time is a moving average, of slow answers too: a server that stays slow becomes usual.
"""

from __future__ import annotations

from processors.frontier.state import HostState
from schemas.records import CrawlEvent

OVERLOADED = (429, 503)
"""Statuses by which a server asks for fewer requests."""
LONGEST_PAUSE = 60_000
"""Longest pause in ms because of overload."""
EDGE_START = 60_000
"""Longest time in ms that the fetch edge leaves each host alone after its start, for an answer that it does not know of."""
MOMENT = 1_000
"""Time in ms by which a host at the longest pause is held beyond it."""
LEAST_PAUSE = 500
"""Shortest such pause in ms, also where the settings have none."""
SLOW = 500
"""Time in ms below which no answer is slow."""
SHARE = 8
"""No answer is slow that takes less than this part of the pause: requests that are so rare are not the reason."""
SLOW_ANSWERS = 2
"""Slow answers in a row from which the pause doubles."""
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


def rested(site: HostState, pause: int, patience: int, now: int) -> HostState:
    """Return the row of a host that was requested until now; `pause`: in force, `patience`: of the edge, both in ms."""
    early = patience // 2 if pause <= EDGE_START else 0
    rests = now + pause - early if pause > patience else 0
    row: HostState = site if rests <= site.rests else site.but(rests=rests)
    return row


def doubled(pause: int) -> int:
    """Return the pause after an answer that shows overload, in ms."""
    return max(pause, min(2 * pause, LONGEST_PAUSE), LEAST_PAUSE)


def hold_of(status: int, wait: int, pause: int) -> int:
    """Return for how many ms a host gets no request after a failure; `wait`: by Retry-After, `pause`: in force, both in ms."""
    if status not in OVERLOADED:
        return wait
    longer = doubled(pause)
    return max(wait, longer if longer < LONGEST_PAUSE else longer + MOMENT)


def after_answer(site: HostState, event: CrawlEvent, pause: int, now: int, minted: int) -> HostState:
    """Return the row of a host after the answer to one of its requests.

    `pause`: as in `pause_of`; `now`: in ms; `minted`: the last version of any request.
    """
    base = max(pause, site.delay)
    if event.kind == "failed" or (event.kind == "resolved" and event.robots is None):
        # The request may be older than the last change of the pause.
        former = site.slowed // 2 if event.version <= site.slowed_at else site.slowed
        if hold := hold_of(event.status, event.wait, max(base, former)):
            held: HostState = _slower(site, event, base, minted).but(next_allowed=max(site.next_allowed, now + hold))
            return held
        return site
    if event.kind not in ("fetched", "unchanged", "gone"):
        return site
    usual, latency = site.usual, event.latency
    measured: HostState = site
    if latency >= 0:
        measured = site.but(usual=max(1, usual + (latency - usual) // SMOOTHING if usual else latency))
    if latency >= max(SLOW, base // SHARE) and 0 < 2 * usual < latency:
        measured = measured.but(slow=site.slow + 1)
        return _slower(measured, event, base, minted) if measured.slow >= SLOW_ANSWERS else measured
    eased: HostState = measured.but(slowed=_halved(site.slowed, base), slow=0)
    return eased


def _halved(slowed: int, base: int) -> int:
    return slowed // 2 if slowed // 2 > max(base, LEAST_PAUSE // 2) else 0


def _slower(site: HostState, event: CrawlEvent, base: int, minted: int) -> HostState:
    slower: HostState = (
        site if event.version <= site.slowed_at else site.but(slowed=doubled(max(base, site.slowed)), slowed_at=minted)
    )
    return slower
