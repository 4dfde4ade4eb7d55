"""The frontier stage decides which URL is fetched when; the fetch edge executes the requests.

Strategy: every URL is a row; due URLs wait in a queue for their host, and a host has few requests outstanding, so that a
slow one never holds up its partition. A run is a `seeded` event in every partition: it requests again every URL of its
root. A listing's children are compared with the rows in bulk: unchanged children cost no record.

Laws:
- Only the frontier mints versions: max(last + 1, now), rising over the whole partition (law 3).
- Only the frontier expires: a URL past its time-to-live is ended when an attempt made since then failed, or when no root asks for
  it any more (law 4). A transient failure alone never removes.
- It reads no clock: time is the maximum seen in events and ticks.
- A redelivered event emits its outputs again: the row of a URL names the origin of its last request, and removals are retained
  under their origin until their delivery is certain. A page that the event had queued may be requested anew.

Delivery: at least once; a repeated request carries its version again, or a higher one, and records made from it are dropped or
absorbed.

Rows: see `rows.py` and `budget_rows.py`. Handlers: `discovery.py`, `run_start.py`, `outcomes.py`, `changes.py`, `budget_home.py`,
`grants.py` and `processors/registry/lifetime.py`, all based on `requests.py`. The pause per address is kept by the edge; that of a
host travels with the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from processors.frontier.grants import GrantHandlers
from processors.frontier.outcomes import OutcomeHandlers
from processors.frontier.requests import Output
from processors.frontier.rows import DERIVED, HOST_WAKE, Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.state import UrlState
from processors.registry.lifetime import REGISTERED, RegistrationHandlers
from schemas.ports import Origin, Rows
from schemas.records import MAX_LINKS, CrawlEvent, Tick

__all__ = ["DERIVED", "Output", "deadline", "frontier", "outstanding", "restore"]

DUE = ("ok", "failed", "refused", "waiting", "gone")
"""States in which a due URL is requested; among gone URLs only roots and pages are ever due."""
EVERYWHERE = ("seeded", "unseeded", "paused", "resumed")
"""Events sent to every partition: their host is that of the root, whose partition alone gets a link with `seeded`."""
TICK_BATCH = 5_000
"""Maximum number of URLs requested per tick; the rest wait for the next tick, which is due at once."""


def frontier(rows: Rows, record: CrawlEvent | Tick, origin: Origin, settings: FrontierSettings) -> Iterator[Output]:
    """Return the requests, removals and refusals for one event of `crawl` or one tick."""
    yield from Decision(Table(rows), record.time, origin, settings).decide(record)


def seen(rows: Rows) -> int:
    """Return the time of this partition in ms since the epoch; 0 before its first event."""
    return Table(rows).advance(0).seen


def deadline(rows: Rows) -> int | None:
    """Return when the next URL or host of this partition is due, in ms since the epoch; None if none is."""
    return Table(rows).next_due()


def restore(rows: Rows) -> None:
    """Rebuild the derived rows of a partition from its others."""
    Table(rows).rebuild()


def outstanding(rows: Rows, until: int) -> bool:
    """Return whether any queue is not empty, or a retry is due by `until` (ms): the run is not finished before."""
    return Table(rows).busy(until)


class Decision(GrantHandlers, OutcomeHandlers, RegistrationHandlers):
    """Decision on one event."""

    def decide(self, record: CrawlEvent | Tick) -> Iterator[Output]:
        """Dispatch on the kind of event, then emit the collected refusals in chunks."""
        yield from self.repeat_removals()
        if isinstance(record, Tick):
            yield from self.tick()
        elif handler := HANDLERS.get(record.kind):
            self.key = record.host if record.kind not in EVERYWHERE or record.links else ""
            yield from handler(self, record)
        yield from self.claims()
        for (host, reason, url), links in self.refused.items():
            for start in range(0, len(links), MAX_LINKS):
                chunk = tuple(links[start : start + MAX_LINKS])
                yield CrawlEvent(kind="refused", host=host, time=self.now, url=url, links=chunk, reason=reason)

    def tick(self) -> Iterator[Output]:
        hosts: dict[str, None] = {}
        paused = self.table.paused().union(self.settings.paused)
        if not self.table.tick_once(self.origin):
            yield from self.again()
        for host, digest in self.table.due(self.now, TICK_BATCH):
            hosts[host] = None
            if digest == HOST_WAKE:
                continue
            known = self.table.get(host, digest)
            if known is not None and known.state == REGISTERED:
                yield from self.lapse(host, digest, known)
            if known is None or known.state not in DUE:
                continue
            if known.roots and paused.issuperset(known.roots):
                self.table.schedule(host, digest, known.but(due=0), self.now + self.known_root(known).refresh * 1000)
            elif known.state == "gone":
                yield from self._look_again(host, digest, known.but(due=0))
            else:
                yield from self.ask(host, digest, known.but(due=0), self.known_root(known))
        for host in hosts:
            yield from self.pump(host)
        yield from self.continue_run()

    def _look_again(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Request a gone URL at its refresh, or forget it. A root is requested for as long as it is a root."""
        root = self.known_root(known)
        if not known.depth or self.is_requested_once_gone(known, root):
            if known.depth and not known.moved and self.is_full(root):
                self.table.schedule(host, digest, known, self.now + root.refresh * 1000)
            else:
                yield from self.revive(host, digest, known, root)
        else:
            self.table.forget(host, digest, known)


HANDLERS: Mapping[str, Callable[[Decision, CrawlEvent], Iterator[Output]]] = {
    "seeded": Decision.seeded,
    "unseeded": Decision.unseeded,
    "discovered": Decision.discovered,
    "resolved": Decision.resolved,
    "fetched": Decision.succeeded,
    "unchanged": Decision.succeeded,
    "failed": Decision.failed,
    "gone": Decision.gone,
    "refused": Decision.declined,
    "deferred": Decision.deferred,
    "paused": Decision.paused,
    "resumed": Decision.resumed,
    "claimed": Decision.claimed,
    "granted": Decision.granted,
    "registered": Decision.registered,
    "deregistered": Decision.deregistered,
    "changed": Decision.changed,
}
