"""State and request scheduling shared by all frontier handlers.

A request is written to the rows before it is emitted, and each host has few outstanding (its credit). The order of writes allows
for a crash that loses the later ones: first the host's list of URLs in flight, then the URL's row, then the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from processors.frontier import robots
from processors.frontier.plans.options import PlanTable
from processors.frontier.plans.plan_rules import PlanRules
from processors.frontier.politeness import credit_of, pause_of, requested_pause
from processors.frontier.rows import HOST_WAKE, Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.state import HostState, UrlState
from processors.frontier.visits import keep_digest, needs_confirmation, needs_whole, next_visit, usual_price
from processors.schemes import scheme_of
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, Outcome, Rejected, Root

Output = FetchRequest | FetchedObject | CrawlEvent | Rejected

LISTINGS = ("folder", "listing")
FORBIDDEN = 64
"""URLs that one event refuses at most by robots.txt: the patterns of a hostile one take 15 ms a URL."""
ALWAYS = (1 << 63) - 1
"""A time in ms after all others."""


class RequestScheduler(PlanRules):
    """One event against the rows of its partition."""

    def __init__(self, table: Table, time: int, origin: Origin, settings: FrontierSettings) -> None:
        self.table = table
        self.plans = PlanTable(table.rows)
        clock = table.advance(time)
        self.now = clock.seen
        ticked = origin.topic.endswith(".ticks")
        self.origin = -1 - origin.offset if ticked else origin.offset
        self.committed = origin.committed
        self.settings = settings
        self._last = clock.ending
        self.ended_before: set[tuple[str, bytes]] = set()
        """URLs that an earlier delivery of this event ended: (host, digest)."""
        self.refused: dict[tuple[str, str, str], list[Link]] = {}
        self.roots: dict[str, Root] = {}
        self.trusted: dict[str, bool] = {}
        """Whether the marks of a host count, as far as this event asked: see `listed.py`."""
        self.probes: dict[str, int] = {}
        """Of how many URLs of a root one is requested to verify its mark, as far as this event asked."""
        self.suspects: dict[str, tuple[bytes, ...]] = {}
        """`HostState.suspects`, as far as this event asked."""
        self.recorded: set[bytes] = set()
        """Digests in the rows `m|` of the slice of a listing that this event brings."""

    def ask(self, host: str, digest: bytes, known: UrlState, root: Root) -> Iterator[Output]:
        """Queue a URL for its host; a file is requested at once, since reading a folder needs no politeness."""
        self.table.unschedule(host, digest, known)
        if known.state == "asked" and self._left_folder(host, digest, known):
            known = self._overtaken(known)
        elif known.state == "asked" and known.origin != self.origin:
            # Already in flight: this root gets that answer too. The run is noted, so that the URL is not requested twice in it.
            self.table.put(host, digest, known if known.run == root.run else known.but(run=root.run, trail=()))
            return
        if known.run != root.run:
            known = known.but(run=root.run, tries=0, trail=())
        reason = self.outside(host, known)
        if not reason and scheme_of(known.url).paced and self.local_file(known) is None:
            self.table.enqueue(host, digest, known.but(state="queued", moved=False))
            return
        if known.state == "queued":
            self.table.dequeue(host, digest, known)
        if reason:
            yield from self.refuse(host, digest, known)
            self.refused.setdefault((host, reason, ""), []).append(Link(url=known.url))
        else:
            yield self.request(host, digest, known)

    def is_direct(self, host: str, digest: bytes, known: UrlState) -> bool:
        """Return whether the request for a URL did not wait in the queue of its host."""
        return not scheme_of(host).paced or (self.local_file(known) is not None and digest not in self.table.host(host).flying)

    def _left_folder(self, host: str, digest: bytes, known: UrlState) -> bool:
        """Return whether a URL in flight was requested from a local folder that its roots do not map it to any more."""
        return scheme_of(host).paced and self.local_file(known) is None and digest not in self.table.host(host).flying

    def repeat(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Repeat the request of a redelivered event, unless `pump` does so; one to a former local folder joins the queue."""
        if self.is_direct(host, digest, known):
            yield self.request(host, digest, known)
        elif digest not in self.table.host(host).flying:
            self.table.enqueue(host, digest, self._overtaken(known))

    def _overtaken(self, known: UrlState) -> UrlState:
        """Return the row of a queued URL whose request in flight is out of date: its new version has that answer ignored."""
        row: UrlState = known.but(state="queued", version=max(self.table.mint(self.now), known.version + 1))
        return row

    def is_requested_once_gone(self, known: UrlState, root: Root) -> bool:
        """Return whether a gone URL is requested once more, since the source's answer may have changed."""
        # A URL that moved is requested for as long as it redirects; a missing one until the time-to-live has passed.
        return known.lasts and bool(known.since) and (known.moved or self.now <= known.since + root.ttl * 1000)

    def revive(self, host: str, digest: bytes, known: UrlState, root: Root) -> Iterator[Output]:
        """Request a gone URL on behalf of all its roots that still exist."""
        if known.moved:
            self.table.uncount(known)
        roots = tuple(url for url in known.roots if self.table.root(url) is not None)
        self.table.count_similar(known.url, 1)
        for url in roots:
            self.table.count(url, 1)
        yield from self.ask(host, digest, known.but(roots=roots, moved=False), root)

    def request(self, host: str, digest: bytes, known: UrlState, site: HostState | None = None) -> FetchRequest:
        """Make the request for a URL, with a new version; a redelivered event repeats its request unchanged."""
        repeated = known.state == "asked" and known.origin == self.origin
        # Redelivered: the same request again, which may be older than the mark.
        version = known.version if repeated else max(self.table.mint(self.now), known.version + 1)
        whole = known.whole or not self.same_rules(known) or known.state == "gone" or not known.confirmed
        whole = whole or needs_whole(known, self.known_root(known), self.now, self.settings.whole_every)
        if known.listing or known.kind in LISTINGS:
            # An unchanged listing would have no slices, by which its children are confirmed.
            whole = whole or needs_confirmation(known, self.now, self.settings.confirm)
        # Validators are dropped until an answer arrives, so that a redelivery or a retry is unconditional too.
        validators = None if whole else known.validators
        # The answer to an unconditional request does not reveal whether the content has changed.
        probed = known.probed and validators is not None
        file = self.local_file(known) if site is None or digest not in site.flying else None
        asked = keep_digest(known, validators).but(
            state="asked", version=version, origin=self.origin, whole=False, moved=False, validators=validators, probed=probed
        )
        asked = asked if repeated else asked.but(pending=False, left_mark="", again=False)
        self.table.put(host, digest, asked)
        return FetchRequest(
            url=known.url,
            host=host,
            version=version,
            time=self.now,
            root=self._requested_for(known),
            depth=known.depth,
            address=site.address if site else "",
            validators=validators,
            pause=max(requested_pause(site) if site else -1, self.pause_of(known)),
            rules=self.settings.rules,
            moves=known.moves,
            trail=known.trail,
            as_listing=known.kind == "listing",
            local=file.url if file else "",
            within=file.within if file else "",
        )

    def pump(self, host: str) -> Iterator[Output]:
        """Yield requests for a host while it has credit: first robots.txt, then its queue."""
        if not scheme_of(host).paced:
            return
        site = self.table.host(host)
        yield from self._pumped_again(host, site)
        site = self._opened(host, site) if site.opens else site
        if self._rests(host, site) or max(site.next_allowed, site.opens) > self.now:
            return
        if site.robots_until <= self.now:
            yield from self._resolve(host, site)
        # No pause makes the credit larger: most events of a busy host need no look at its queue.
        elif len(site.flying) < self.settings.credit:
            yield from self._from_queue(host, site)

    def _from_queue(self, host: str, site: HostState) -> Iterator[Output]:
        """Yield requests for the URLs that wait for a host, while it has credit."""
        queue = self.table.waiting(host)
        if (first := next(queue, None)) is None:
            return
        pause = max(self.settings.pause, self.pause_of(first[1]))
        credit = credit_of(pause_of(site, pause), self.settings.credit, self.settings.edge_patience)
        if len(site.flying) >= credit:
            return
        forbidden, rules = 0, self.table.robots(host, site)
        for digest, known in chain((first,), queue):
            if self.next_open(known) > self.now:
                self._opened(host, site)
                return
            if forbidden == FORBIDDEN:
                # In the row of the host too, from which its wake-up is rebuilt.
                self.table.put_host(host, site.but(next_allowed=self.now))
                self.table.wake_at(host, HOST_WAKE, self.now)
                return
            if robots.allowed(rules, self.settings.agent, known.url):
                site = site.but(flying=(*site.flying, digest))
                self.table.put_host(host, site)
                yield self.request(host, digest, known, site)
            else:
                forbidden += 1
                yield from self.forbid(host, digest, known)
            self.table.dequeue(host, digest, known)
            if len(site.flying) >= credit:
                return

    def _rests(self, host: str, site: HostState) -> bool:
        """Return whether a host rests for its pause, and have its queue looked at when that is over."""
        if site.rests > self.now and self.table.first(host) is not None:
            self.table.wake_at(host, HOST_WAKE, site.rests)
        return site.rests > self.now

    def _opened(self, host: str, site: HostState) -> HostState:
        """Return the row of a host with the time when the hours of its next URL begin, and have it looked at then."""
        first = self.table.first(host)
        opens = self.next_open(first[1]) if first is not None else 0
        opens = opens if opens > self.now else 0
        if opens != site.opens:
            site = site.but(opens=opens)
            self.table.put_host(host, site)
        if opens:
            self.table.wake_at(host, HOST_WAKE, opens)
        return site

    def _pumped_again(self, host: str, site: HostState) -> Iterator[Output]:
        """Repeat the requests that an earlier delivery of this event took from the queue."""
        for digest in site.flying:
            known = self.table.get(host, digest)
            # State "queued" while in flight means a crash between the two writes.
            if known is not None and (known.state == "queued" or (known.state == "asked" and known.origin == self.origin)):
                yield self.request(host, digest, known, site)

    def forbid(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Refuse a URL that the host's robots.txt forbids."""
        yield from self.refuse(host, digest, known)
        self.refused.setdefault((host, "robots.txt", ""), []).append(Link(url=known.url))

    def refuse(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Mark a URL as refused until its next refresh; past its time-to-live it expires."""
        yield from self.keep_or_expire(host, digest, known.but(state="refused"))

    def keep_or_expire(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Expire a URL past its time-to-live after a fruitless attempt (law 4); otherwise schedule its refresh."""
        if self.lapsed(known):
            yield from self.end(host, digest, known, "expired", "past its time-to-live")
        else:
            self.table.schedule(host, digest, known, self.now + self.refresh_of(known, self.known_root(known)))

    def refresh_of(self, known: UrlState, root: Root) -> int:
        """Return the time in ms from an answer to the next request of a URL, by its change rate."""
        plan, longest = self.plans.of(root.url).plan, root.refresh * 1000
        price = self.settings.price if plan.price is None else plan.price * 1000
        price = usual_price(longest) if price is None else price
        shortest = self.settings.refresh_min if plan.refresh_min is None else plan.refresh_min * 1000
        return next_visit(known, price, min(shortest, longest), longest)

    def lapsed(self, known: UrlState) -> bool:
        """Return whether a URL is past the time-to-live of its root, since it was confirmed or, if that is later, found missing."""
        since = max(known.confirmed, known.missing)
        return since > 0 and self.now > since + self.known_root(known).ttl * 1000

    def again(self) -> Iterator[Output]:
        """Search all rows for requests of a redelivered event: those in flight because of it, and all queued URLs."""
        hosts: dict[str, None] = {}
        for host, digest, known in list(self.table.all()):
            if known.state == "queued":
                hosts[host] = None
            elif known.state == "asked" and known.origin == self.origin:
                hosts[host] = None
                yield from self.repeat(host, digest, known)
        for host in hosts:
            yield from self.pump(host)

    def _resolve(self, host: str, site: HostState) -> Iterator[Output]:
        again = site.asked == self.origin and site.asking
        first = self.table.first(host)
        if first is None or (site.asking and not again):
            return
        if self.next_open(first[1]) > self.now:
            self._opened(host, site)
            return
        version = site.asking if again else self.table.mint(self.now)
        self.table.put_host(host, site.but(asking=version, asked=self.origin))
        yield FetchRequest(
            url=f"{host}/robots.txt",
            host=host,
            version=version,
            time=self.now,
            root=self.known_root(first[1]),
            kind="resolve",
            pause=max(requested_pause(site), self.pause_of(first[1])),
            rules=self.settings.rules,
        )

    def end(self, host: str, digest: bytes, known: UrlState, outcome: Outcome, reason: str) -> Iterator[Output]:
        """End an existing URL and delete its row; the removal is retained until its delivery is certain: see `told_again`."""
        version = max(self.table.mint(self.now), known.version + 1)
        listing = known.kind == "listing"
        removal = FetchedObject(url=known.url, version=version, time=self.now, outcome=outcome, reason=reason, as_listing=listing)
        self._release(host, digest)
        self.table.tell(self.origin, host, digest, removal)
        self.table.uncount(known)
        self.table.forget(host, digest, known)
        self._drop_look_up(host)
        yield removal

    def _drop_look_up(self, host: str) -> None:
        """Drop the look-up of a host without a queue: its request may be lost in a crash, and nothing would repeat it."""
        site = self.table.host(host) if scheme_of(host).paced else None
        if site is not None and site.asking and self.table.first(host) is None:
            self.table.put_host(host, site.but(asking=0))

    def _release(self, host: str, digest: bytes) -> None:
        """Release the credit of a URL that ends: its request may be lost in a crash, and without a row nothing repeats it."""
        site = self.table.host(host) if scheme_of(host).paced else None
        if site is not None and digest in site.flying:
            self.table.put_host(host, site.but(flying=tuple(each for each in site.flying if each != digest)))

    def repeat_removals(self) -> Iterator[Output]:
        """Repeat the removals of a redelivered event, even of URLs found anew since: those have a higher version."""
        if self.origin >= 0 and self._last < 0:
            return
        self.table.delivered(self.origin, self.committed)
        for host, digest, removal in (
            self.table.stored_removals(self.origin) if self.origin <= self._last or self.origin < 0 else ()
        ):
            known = self.table.get(host, digest)
            # A row still in the state before the removal means a crash between the two writes: the handler ends the URL anew.
            if known is None or known.state == "gone" or not 0 < known.version < removal.version:
                self.ended_before.add((host, digest))
                yield removal

    def delivered(self, known: UrlState) -> bool:
        """Return whether the outputs of a URL's last event are certainly delivered."""
        return known.origin != self.origin and (known.origin < 0) == (self.origin < 0) and known.origin < self.committed

    def root_of(self, event: CrawlEvent) -> Root:
        """Return the root of an event, and store it if it is the newest known."""
        if event.root is None:
            raise ValueError(f"{event.kind} without a root")
        known = self.roots.get(event.root.url) or self.table.root(event.root.url)
        newest = known
        if newest is None or newest.run < event.root.run:
            newest = event.root if newest is None else msgspec.structs.replace(event.root, host=newest.host)
        if event.kind == "discovered" and event.depth < 0:
            # The root itself was redirected: from now on it is limited to the target's server.
            newest = msgspec.structs.replace(newest, host=event.root.host)
        if newest != known:
            self.table.put_root(newest)
        self.roots[newest.url] = newest
        return newest

    def known_root(self, known: UrlState) -> Root:
        """Return the root that requested a URL last."""
        for url in known.roots:
            root = self.roots.get(url) or self.table.root(url)
            if root is not None:
                self.roots[url] = root
                if root.run == known.run:
                    return root
        fallback = next((self.roots[u] for u in known.roots if u in self.roots), None)
        return fallback or Root(url=known.roots[0] if known.roots else known.url, run=known.run)

    def _requested_for(self, known: UrlState) -> Root:
        """Return the root that a request names: without doubts, it accepts all removals."""
        root = self.known_root(known)
        return root if self.settings.doubt else msgspec.structs.replace(root, accept=ALWAYS)

    def same_rules(self, known: UrlState) -> bool:
        """Return whether a URL was summarized by the rules in force."""
        return known.rules == self.settings.rules


def is_described_by_listing(known: UrlState) -> bool:
    """Return whether a listing fully describes this URL, so that requesting it again is left to the listing."""
    return known.kind in ("file", "symlink")
