"""frontier: which URL is fetched when. It decides; the fetch edge does.

Strategy: every URL is a row; what is due waits in a queue for its host, and a host has few requests outstanding, so that a
slow one never holds up its partition. A run is a `seeded` event in every partition: it asks again for all that its root
asks for. A listing's children are compared with the rows in bulk: what is unchanged costs nothing.

Laws:
- It alone mints versions: max(last + 1, now), rising over the whole partition (law 3).
- It alone expires: a URL past its time-to-live goes when an attempt made since then failed, or when no root asks for it any
  more (law 4). A transient failure alone never removes.
- It reads no clock: time is the maximum seen in events and ticks.
- A redelivered event gives again what it gave: the row of a URL names the origin of its last request, and what an event ended stays
  noted under its origin until it is delivered for sure. A page that it had queued may be asked for anew.

Delivery: at least once; a repeated request carries its version again, or a higher one, and what is made from it is dropped or
absorbed.

Rows: see `rows.py`; the parts: `frontier_finding`, `frontier_answers`, on `frontier_asking`. Politeness per address is
the edge's; Crawl-delay travels with the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from processors.frontier.discovery import Finding
from processors.frontier.outcomes import Answering
from processors.frontier.requests import Decided, FrontierSettings
from processors.frontier.rows import DERIVED, HOST_WAKE, Table
from processors.frontier.state import Known
from schemas.ports import Origin, Rows
from schemas.records import MAX_LINKS, CrawlEvent, Tick

__all__ = ["DERIVED", "Decided", "FrontierSettings", "deadline", "frontier", "outstanding", "restore"]

DUE = ("ok", "failed", "refused", "waiting", "gone")
"""States in which a URL is asked for when it is due; of those that are gone only roots and pages ever are."""
TICK_BATCH = 5_000
"""URLs that one tick asks for at the most; the rest wait for the next, which is due at once."""


def frontier(rows: Rows, record: CrawlEvent | Tick, origin: Origin, settings: FrontierSettings) -> Iterator[Decided]:
    """Requests, removals and refusals for one event of `crawl` or one tick."""
    yield from Decision(Table(rows), record.time, origin, settings).decide(record)


def seen(rows: Rows) -> int:
    """The time of this partition, in ms since the epoch; 0 before its first event."""
    return Table(rows).advance(0).seen


def deadline(rows: Rows) -> int | None:
    """When the next URL or host of this partition is due, in ms since the epoch; None if nothing waits."""
    return Table(rows).next_due()


def restore(rows: Rows) -> None:
    """Rebuild the derived rows of a partition from its others."""
    Table(rows).rebuild()


def outstanding(rows: Rows, until: int) -> bool:
    """Whether anything waits in a queue, or for a retry due by `until` (ms): a run is not finished before."""
    return Table(rows).busy(until)


class Decision(Finding, Answering):
    """One event, decided."""

    def decide(self, record: CrawlEvent | Tick) -> Iterator[Decided]:
        """Dispatch on the kind of event; what was refused on the way goes out last, in chunks."""
        yield from self.told_again()
        if isinstance(record, Tick):
            yield from self.tick()
        elif handler := HANDLERS.get(record.kind):
            yield from handler(self, record)
        for (host, reason, url), links in self.refused.items():
            for start in range(0, len(links), MAX_LINKS):
                chunk = tuple(links[start : start + MAX_LINKS])
                yield CrawlEvent(kind="refused", host=host, time=self.now, url=url, links=chunk, reason=reason)

    def tick(self) -> Iterator[Decided]:
        hosts: dict[str, None] = {}
        paused = self.table.paused().union(self.settings.paused)
        if not self.table.tick_once(self.origin):
            yield from self.again()
        for host, digest in self.table.due(self.now, TICK_BATCH):
            hosts[host] = None
            if digest == HOST_WAKE:
                continue
            known = self.table.get(host, digest)
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

    def _look_again(self, host: str, digest: bytes, known: Known) -> Iterator[Decided]:
        """A URL that is gone, at its refresh. A root is looked at for as long as it is one."""
        root = self.known_root(known)
        if not known.depth or self.wanted_back(known, root):
            yield from self.revive(host, digest, known, root)
        else:
            self.table.forget(host, digest, known)


HANDLERS: Mapping[str, Callable[[Decision, CrawlEvent], Iterator[Decided]]] = {
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
}
