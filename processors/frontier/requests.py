"""What every decision of the frontier leans on: rows, time, origin, roots; and how a URL is asked for.

A request is written to the rows before it is given, and a host has few outstanding (its credit). The order of writes is that
of a crash that loses the later ones: what flies is noted first, then the URL's row, then the queue.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from processors.frontier import robots
from processors.frontier.rows import Table
from processors.frontier.state import Host, Known
from processors.schemes import scheme_of
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, Outcome, Rejected, Root

Decided = FetchRequest | FetchedObject | CrawlEvent | Rejected

DAY = 86_400_000


class FrontierSettings(msgspec.Struct, frozen=True):
    """What an operator may set; times in ms."""

    agent: str = "Harvest"
    rules: str = ""
    """Fingerprint of the essence rules in force: where a URL's differs, its next request is unconditional."""
    credit: int = 8
    """Requests outstanding for one host."""
    tries: int = 3
    backoff: int = 2_000
    patience: int = 60_000
    """A retry later than this is left to the next run."""
    robots_ttl: int = DAY
    paused: tuple[str, ...] = ()
    """URLs of roots: what they alone ask for is not refreshed."""


class Asking:
    """One event against the rows of its partition."""

    def __init__(self, table: Table, time: int, origin: Origin, settings: FrontierSettings) -> None:
        self.table = table
        clock = table.advance(time)
        self.now = clock.seen
        ticked = origin.topic.endswith(".ticks")
        self.origin = -1 - origin.offset if ticked else origin.offset
        self.committed = origin.committed
        self.settings = settings
        self._last = clock.ending
        self.told: set[tuple[str, bytes]] = set()
        """What this event has ended when it came before."""
        self.refused: dict[tuple[str, str, str], list[Link]] = {}
        self.roots: dict[str, Root] = {}

    def ask(self, host: str, digest: bytes, known: Known, root: Root) -> Iterator[Decided]:
        """Queue a URL for its host; a file's request goes out at once, since a folder is no server to be spared."""
        self.table.unschedule(host, digest, known)
        if known.state == "asked" and known.origin != self.origin:
            # On its way already: whoever asks too gets that answer. The run is noted, so that nobody asks twice.
            self.table.put(host, digest, known if known.run == root.run else known.but(run=root.run, trail=()))
            return
        if known.run != root.run:
            known = known.but(run=root.run, tries=0, trail=())
        if not scheme_of(known.url).paced:
            yield self.request(host, digest, known)
        else:
            self.table.enqueue(host, digest, known.but(state="queued", moved=False))

    def wanted_back(self, known: Known, root: Root) -> bool:
        """Whether a URL that is gone is asked for once more: what its source said may be true no longer."""
        # A move is followed for as long as it is one; what is missing is given up after the time-to-live.
        return known.lasts and bool(known.since) and (known.moved or self.now <= known.since + root.ttl * 1000)

    def revive(self, host: str, digest: bytes, known: Known, root: Root) -> Iterator[Decided]:
        """Ask for a URL that is gone, for all its roots that there are still."""
        if known.moved:
            self.table.uncount(known)
        roots = tuple(url for url in known.roots if self.table.root(url) is not None)
        for url in roots:
            self.table.count(url, 1)
        yield from self.ask(host, digest, known.but(roots=roots, moved=False), root)

    def request(self, host: str, digest: bytes, known: Known, site: Host | None = None) -> FetchRequest:
        """The request for a URL: a new one with a version of its own, or for a redelivered event the same again."""
        if known.state == "asked" and known.origin == self.origin:
            version = known.version  # redelivered: the same request again
        else:
            version = max(self.table.mint(self.now), known.version + 1)
        whole = known.whole or not self.same_rules(known) or known.state == "gone" or not known.confirmed
        # Without validators until it is answered: redelivered, or tried again after a failure, it is unconditional still.
        validators = None if whole else known.validators
        asked = known.but(state="asked", version=version, origin=self.origin, whole=False, moved=False, validators=validators)
        self.table.put(host, digest, asked)
        return FetchRequest(
            url=known.url,
            host=host,
            version=version,
            time=self.now,
            root=self.known_root(known),
            depth=known.depth,
            address=site.address if site else "",
            validators=validators,
            pause=site.delay if site else -1,
            rules=self.settings.rules,
            moves=known.moves,
            trail=known.trail,
        )

    def pump(self, host: str) -> Iterator[Decided]:
        """Requests for a host while it has credit: robots.txt first, then its queue."""
        if not scheme_of(host).paced:
            return
        site = self.table.host(host)
        yield from self._pumped_again(host, site)
        if site.next_allowed > self.now:
            return
        if site.robots_until <= self.now:
            yield from self._resolve(host, site)
            return
        if len(site.flying) >= self.settings.credit:
            return
        for digest, known in self.table.waiting(host):
            if robots.allowed(site.robots, self.settings.agent, known.url):
                site = site.but(flying=(*site.flying, digest))
                self.table.put_host(host, site)
                yield self.request(host, digest, known, site)
            else:
                yield from self.forbid(host, digest, known)
            self.table.dequeue(host, digest, known)
            if len(site.flying) >= self.settings.credit:
                return

    def _pumped_again(self, host: str, site: Host) -> Iterator[Decided]:
        """A redelivery: what this event took from the queue is given again."""
        for digest in site.flying:
            known = self.table.get(host, digest)
            # Queued yet flying is a crash between the two writes.
            if known is not None and (known.state == "queued" or (known.state == "asked" and known.origin == self.origin)):
                yield self.request(host, digest, known, site)

    def forbid(self, host: str, digest: bytes, known: Known) -> Iterator[Decided]:
        """The host's robots.txt forbids it."""
        yield from self.refuse(host, digest, known)
        self.refused.setdefault((host, "robots.txt", ""), []).append(Link(url=known.url))

    def refuse(self, host: str, digest: bytes, known: Known) -> Iterator[Decided]:
        """Not to be fetched, for now: looked at again when it would be refreshed; past its time-to-live it goes."""
        yield from self.keep_or_expire(host, digest, known.but(state="refused"))

    def keep_or_expire(self, host: str, digest: bytes, known: Known) -> Iterator[Decided]:
        """An attempt came to nothing: only past its time-to-live does a URL go for it (law 4)."""
        if self.lapsed(known):
            yield from self.end(host, digest, known, "expired", "past its time-to-live")
        else:
            self.table.schedule(host, digest, known, self.now + self.known_root(known).refresh * 1000)

    def lapsed(self, known: Known) -> bool:
        """Whether a URL is past the time-to-live of its root."""
        return known.confirmed > 0 and self.now > known.confirmed + self.known_root(known).ttl * 1000

    def again(self) -> Iterator[Decided]:
        """A redelivery whose rows name no longer what it asked for: all that waits or flies because of it is looked for."""
        hosts: dict[str, None] = {}
        for host, digest, known in list(self.table.all()):
            if known.state == "queued":
                hosts[host] = None
            elif known.state == "asked" and known.origin == self.origin:
                yield self.request(host, digest, known, self.table.host(host))
        for host in hosts:
            yield from self.pump(host)

    def _resolve(self, host: str, site: Host) -> Iterator[Decided]:
        again = site.asked == self.origin and site.asking
        first = self.table.first(host)
        if first is None or (site.asking and not again):
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
            rules=self.settings.rules,
        )

    def end(self, host: str, digest: bytes, known: Known, outcome: Outcome, reason: str) -> Iterator[Decided]:
        """A URL that is there goes, and its row; its removal stays noted until it is delivered for sure: see `told_again`."""
        version = max(self.table.mint(self.now), known.version + 1)
        removal = FetchedObject(url=known.url, version=version, time=self.now, outcome=outcome, reason=reason)
        self.table.tell(self.origin, host, digest, removal)
        self.table.uncount(known)
        self.table.forget(host, digest, known)
        yield removal

    def told_again(self) -> Iterator[Decided]:
        """A redelivery: what it ended goes again, also if it was found anew meanwhile: that is of a higher version."""
        if self.origin >= 0 and self._last < 0:
            return
        self.table.delivered(self.origin, self.committed)
        for host, digest, removal in self.table.told(self.origin) if self.origin <= self._last or self.origin < 0 else ():
            known = self.table.get(host, digest)
            # What was asked for before and is there still had a crash between the two writes: it is ended anew.
            if known is None or known.state == "gone" or not 0 < known.version < removal.version:
                self.told.add((host, digest))
                yield removal

    def delivered(self, known: Known) -> bool:
        """Whether what a URL's last event gave is delivered for sure."""
        return known.origin != self.origin and (known.origin < 0) == (self.origin < 0) and known.origin < self.committed

    def root_of(self, event: CrawlEvent) -> Root:
        """The root of an event, noted as the newest of its URL."""
        if event.root is None:
            raise ValueError(f"{event.kind} without a root")
        known = self.roots.get(event.root.url) or self.table.root(event.root.url)
        newest = known
        if newest is None or newest.run < event.root.run:
            newest = event.root if newest is None else msgspec.structs.replace(event.root, host=newest.host)
        if event.kind == "discovered" and event.depth < 0:
            # The root itself moved: it stays on the server that it moved to.
            newest = msgspec.structs.replace(newest, host=event.root.host)
        if newest != known:
            self.table.put_root(newest)
        self.roots[newest.url] = newest
        return newest

    def known_root(self, known: Known) -> Root:
        """The root that asked for a URL last."""
        for url in known.roots:
            root = self.roots.get(url) or self.table.root(url)
            if root is not None:
                self.roots[url] = root
                if root.run == known.run:
                    return root
        fallback = next((self.roots[u] for u in known.roots if u in self.roots), None)
        return fallback or Root(url=known.roots[0] if known.roots else known.url, run=known.run)

    def same_rules(self, known: Known) -> bool:
        """Whether it was summarized by the rules in force."""
        return known.rules == self.settings.rules


def covered(known: Known) -> bool:
    """Whether a listing says all about this URL, so that asking for it again is the listing's affair."""
    return known.kind in ("file", "symlink")
