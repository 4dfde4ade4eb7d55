"""Event handlers for fetch outcomes: fetched, unchanged, failed, gone, refused, deferred, and hosts resolved.

Laws:
- An answer to any request but the URL's latest is ignored.
- An answer that shows overload concerns its host: see `politeness.py`. What its queue has stays there.
- A transient failure is retried, then left to the next run; it removes a URL only past its time-to-live (law 4).
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier import robots
from processors.frontier.changes import ChangeHandlers
from processors.frontier.politeness import OVERLOADED, after_answer, pause_of, rested
from processors.frontier.requests import Output, is_described_by_listing
from processors.frontier.rows import HOST_WAKE
from processors.frontier.sitemaps import SitemapHandlers
from processors.frontier.state import HostState, UrlState
from processors.frontier.visits import answered_whole, visited
from processors.identity import url_digest
from processors.schemes import scheme_of
from schemas.plan import NO_FOLDER, NOT_LOCAL
from schemas.records import DOUBT, MOVED, OTHER_BASE, REFETCHED, CrawlEvent, Rejected

LONGEST_DELAY = 60.0
"""Upper limit of Crawl-delay in seconds; with a longer one no page would ever be fetched."""


MINUTE = 60_000
ENOUGH = 4
"""Answers in a row by which a host asks for fewer requests until its robots.txt is requested again, before any page."""


class OutcomeHandlers(SitemapHandlers, ChangeHandlers):
    """Handlers of the events that the fetch edge writes to `crawl`."""

    def resolved(self, event: CrawlEvent) -> Iterator[Output]:
        """Store a host's address and robots.txt, or handle the failed look-up."""
        site = self.table.host(event.host)
        if event.version != site.asking:
            yield from self._resolved_again(event)
            return
        site = site.but(asking=0, address=event.addresses[0] if event.addresses else "")
        if event.robots is not None:
            delay = robots.crawl_delay(event.robots, self.settings.agent)
            self.table.put_robots(event.host, event.robots)
            site = site.but(robots=b"", delay=int(min(delay, LONGEST_DELAY) * 1000) if delay else -1, tries=0, failures=0)
            first = self.table.first(event.host)
            site = self._loaded(site, event, first[1] if first else None)
            # Valid for the first request after it, however long the pause is.
            until = max(self.now + self.settings.robots_ttl, site.rests + MINUTE if site.rests else 0)
            self.table.put_host(event.host, site.but(robots_until=until))
            yield from self.find_sitemaps(event.host, event.robots, event.root)
            yield from self.pump(event.host)
        else:
            yield from self._unresolved(event, site)

    def _unresolved(self, event: CrawlEvent, site: HostState) -> Iterator[Output]:
        """Have the look-up of a host repeated, or leave its queue to the next run."""
        first = self.table.first(event.host)
        site = self._loaded(site, event, first[1] if first else None)
        if event.retryable and site.tries + 1 < self.settings.tries and event.wait <= self.settings.patience:
            due = max(self.now + self.backoff(site.tries, event.wait), site.next_allowed)
            self.table.put_host(event.host, site.but(tries=site.tries + 1, next_allowed=due))
            self.table.wake_at(event.host, HOST_WAKE, due)
            return
        self.table.put_host(event.host, site.but(tries=0))
        if site.next_allowed > self.now:
            self.table.wake_at(event.host, HOST_WAKE, site.next_allowed)  # for links that are found meanwhile
        rules = self.table.robots(event.host, site)
        for digest, known in self.table.waiting(event.host):
            # URLs that the last known robots.txt forbids are refused: they would not have been fetched in any case.
            if robots.allowed(rules, self.settings.agent, known.url):
                yield from self.give_up(event.host, digest, known, event.reason)
            else:
                yield from self.forbid(event.host, digest, known)
            self.table.dequeue(event.host, digest, known)

    def _loaded(self, site: HostState, event: CrawlEvent, known: UrlState | None) -> HostState:
        """Return the row of a host after an answer, whose pause depends on the roots of the URL that was requested."""
        pause = max(self.settings.pause, self.pause_of(known) if known is not None else -1)
        site = after_answer(site, event, pause, self.now, self.table.minted())
        return site if event.kind == "deferred" else rested(site, pause_of(site, pause), self.settings.edge_patience, self.now)

    def _resolved_again(self, event: CrawlEvent) -> Iterator[Output]:
        """Handle a redelivered `resolved`: give up the same URLs again, repeat the same requests."""
        if event.robots is None:
            for digest, known in list(self.table.between(event.host, b"", b"\xff" * 16)):
                if known.state == "failed" and known.origin == self.origin:
                    yield from self.give_up(event.host, digest, known, event.reason)
        else:
            yield from self.find_sitemaps(event.host, event.robots, event.root)
        yield from self.pump(event.host)

    def _answered(self, event: CrawlEvent) -> tuple[bytes, UrlState | None]:
        """Return the digest and row that an answer concerns and release its credit; the row is None if no request matches."""
        digest = url_digest(event.url)
        known = self.table.get(event.host, digest)
        # A late answer to an earlier request must not release the credit of the newer one.
        later = known is not None and known.state == "asked" and known.version > event.version
        if scheme_of(event.host).paced and not later:
            site = self.table.host(event.host)
            if digest in site.flying:
                left = site.but(flying=tuple(d for d in site.flying if d != digest))
                rested = self._loaded(left, event, known)
                self.table.put_host(event.host, rested)
                if rested.next_allowed > site.next_allowed:
                    self.table.wake_at(event.host, HOST_WAKE, rested.next_allowed)
        if known is None or known.version != event.version or known.state == "gone":
            return digest, None
        return digest, known

    def succeeded(self, event: CrawlEvent) -> Iterator[Output]:
        """Record that a URL was fetched or found unchanged."""
        digest, known = self._answered(event)
        if known is None:
            yield from self._answered_again(event, digest)
        else:
            root = self.known_root(known)
            if known.probed and event.kind == "fetched":
                self.suspect_marks(event.host, digest, root)
            known = visited(known, event, self.now).but(
                state="ok",
                whole_at=answered_whole(known, event, self.now),
                probed=False,
                confirmed=self.now,
                since=0,
                tries=0,
                missing=0,
                held=False,
                rules=event.rules,
                listing=event.listing or known.listing,
                validators=event.validators or known.validators,
            )
            known = self.passed_on(known, event)
            yield from self.confirmations(known)
            due = 0 if is_described_by_listing(known) and known.depth else self.now + self.refresh_of(known, root)
            self.table.schedule(event.host, digest, known, due)
            self._answers(event.host)
            if known.whole or known.again:
                # Another root found it meanwhile: its links must be admitted for that root too. Or it has changed since.
                yield from self.ask(event.host, digest, known.but(due=due), root)
        yield from self.pump(event.host)

    def _answered_again(self, event: CrawlEvent, digest: bytes) -> Iterator[Output]:
        """Handle a redelivered answer that had caused an immediate request."""
        known = self.table.get(event.host, digest)
        if known is not None:
            yield from self.confirmations(known)
        if known is not None and known.state == "asked" and known.origin == self.origin:
            yield from self.repeat(event.host, digest, known)

    def _answers(self, host: str) -> None:
        """Reset a host's count of failures."""
        site = self.table.host(host)
        if site.failures:
            self.table.put_host(host, site.but(failures=0))

    def _count_failure(self, host: str, *, overloaded: bool) -> None:
        """Count a failure of a host; after as many in a row as its credit, or as are enough, have the host resolved anew."""
        site = self.table.host(host)
        dead = site.failures + 1 >= min(self.settings.credit, ENOUGH if overloaded else self.settings.credit)
        self.table.put_host(
            host, site.but(failures=0 if dead else site.failures + 1, robots_until=0 if dead else site.robots_until)
        )

    def failed(self, event: CrawlEvent) -> Iterator[Output]:
        """Schedule a retry, or give up until the next run."""
        if event.reason in REFETCHED:
            self._refetch(event)
            return
        digest, known = self._answered(event)
        if known is None:
            yield from self._answered_again(event, digest)
        elif event.reason == NO_FOLDER and self.asks_server(known):
            self.table.enqueue(event.host, digest, known.but(state="queued"))
        elif known.again:
            yield from self.ask_changed(event.host, digest, known.but(state="failed"))
        else:
            known = known.but(tries=known.tries + 1, whole=known.whole or event.reason == OTHER_BASE)
            if event.reason.startswith(DOUBT):
                known = known.but(held=True, missing=known.missing or self.now)
            wait = self.backoff(known.tries - 1, event.wait)
            if event.retryable and scheme_of(event.host).paced:
                self._count_failure(event.host, overloaded=event.status in OVERLOADED)
            if event.retryable and known.tries < self.settings.tries and wait <= self.settings.patience:
                self.table.schedule(event.host, digest, known.but(state="waiting"), self.now + wait)
            else:
                yield from self.give_up(event.host, digest, known, event.reason)
        yield from self.pump(event.host)

    def _refetch(self, event: CrawlEvent) -> None:
        """Have an object that was not summarized fetched in full by the next run, even if the source is unchanged."""
        digest = url_digest(event.url)
        known = self.table.get(event.host, digest)
        if known is not None and known.state != "gone":
            self.table.put(event.host, digest, known.but(rules="", whole=known.state != "ok", whole_at=0))

    def give_up(self, host: str, digest: bytes, known: UrlState, reason: str) -> Iterator[Output]:
        """Leave a URL to the next run or refresh; past its time-to-live it expires."""
        version = known.version or self.table.mint(self.now)
        yield Rejected(stage="fetch", reason=reason, time=self.now, url=known.url, version=version)
        yield from self.keep_or_expire(
            host, digest, self.doubt_unreadable(known).but(state="failed", version=version, origin=self.origin)
        )

    def gone(self, event: CrawlEvent) -> Iterator[Output]:
        """Handle a URL that the source reports as missing or moved."""
        digest, known = self._answered(event)
        if known is None:
            yield from self._answered_again(event, digest)
        elif event.reason == NOT_LOCAL and self.asks_server(known):
            self.table.enqueue(event.host, digest, known.but(state="queued"))
        elif known.again:
            yield from self.ask_changed(event.host, digest, known.but(state="failed"))
        else:
            if known.probed:
                self.suspect_marks(event.host, digest, self.known_root(known))
                known = known.but(probed=False)
            yield from (self._moved if event.reason == MOVED else self.missing)(event, digest, known)
        yield from self.pump(event.host)

    def _moved(self, event: CrawlEvent, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Mark a URL as moved; the edge has sent its removal to essence."""
        gone = self.gone_row(known).but(moved=True)
        if len(known.trail) > len(event.trail):
            # A longer trail led here meanwhile: see `DiscoveryHandlers.found`. "gone" is never written in between: after a crash it
            # would remain.
            yield from self.ask(event.host, digest, gone, self.known_root(known))
        else:
            self.table.schedule(event.host, digest, gone, self.now + self.known_root(known).refresh * 1000 if known.lasts else 0)

    def declined(self, event: CrawlEvent) -> Iterator[Output]:
        """Record that the edge may not fetch a URL."""
        if not event.version:
            return  # written by the frontier itself
        digest, known = self._answered(event)
        if known is not None:
            yield from self.refuse(event.host, digest, known)
        yield from self.pump(event.host)

    def deferred(self, event: CrawlEvent) -> Iterator[Output]:
        """Queue a URL again whose wait was too long for the edge, and leave its host alone meanwhile."""
        digest, known = self._answered(event)
        held = self.table.host(event.host).next_allowed > self.now + self.settings.patience
        if known is not None and event.wait > self.settings.patience and not held and self.lapsed(known):
            yield from self.give_up(event.host, digest, known, "its host asks for too long a wait")
        elif known is not None:
            due = self.now + event.wait
            self._leave_alone(event.host, known, due)
            self.table.enqueue(event.host, digest, known.but(state="queued"))
        yield from self.pump(event.host)

    def _leave_alone(self, host: str, known: UrlState, due: int) -> None:
        """Let a host rest until `due` ms if the pause of a URL explains that, so that a run waits; otherwise hold it."""
        site = self.table.host(host)
        pause = pause_of(site, max(self.settings.pause, self.pause_of(known)))
        if self.settings.edge_patience < pause >= due - self.now and site.next_allowed <= self.now:
            site = site.but(rests=max(site.rests, due))
        else:
            site = site.but(next_allowed=max(site.next_allowed, due))
        self.table.put_host(host, site)
        self.table.wake_at(host, HOST_WAKE, due)

    def backoff(self, tries: int, wait: int) -> int:
        """Return the ms to wait before the next try."""
        return max(wait, self.settings.backoff << 2 * tries)
