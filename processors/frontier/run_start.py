"""Event handlers for the runs of a root: `seeded` begins one, `unseeded` ends the root, `paused` and `resumed`.

Laws:
- A run requests again every URL of its root, in parts of bounded size; a child that its listing describes is left to the listing,
  and a URL with an equal mark to its refresh.
- Once the limits or the scope of a root change, its pages are requested in full, so that links that were refused are found again.
- A plan that cannot be applied is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from processors.frontier import root_index
from processors.frontier.discovery import DiscoveryHandlers
from processors.frontier.plans.options import RootOptions
from processors.frontier.requests import Output, is_described_by_listing
from processors.frontier.state import UrlState
from processors.identity import frontier_key, url_digest
from processors.schemes import scheme_of
from schemas.records import CrawlEvent, Link, Root


class RunHandlers(DiscoveryHandlers):
    """Handlers of `seeded`, `unseeded`, `paused` and `resumed`."""

    def seeded(self, event: CrawlEvent) -> Iterator[Output]:
        """Start a run: request again every URL of the root in this partition, and the root itself if it belongs here."""
        self._check_plan(event)
        new = self.table.begin_once(self.origin)
        self.enroll(event)
        yield from self.answer_claims(self.newest(event))
        changed = self._limits_changed(event)
        self._plan(event)
        root = self.root_of(event)
        hosts: dict[str, None] = {} if new else self._hosts_asked()
        asked = yield from self._begin(root, root_index.Part(b"", changed), hosts)
        if not new:
            yield from self._begin_again(asked, hosts)
        for link in event.links:
            host = frontier_key(link.url)
            if url_digest(link.url) not in asked:
                yield from self.found(host, link, 0, root, event.url)
            hosts[host] = None
            yield from self.known_sitemaps(host, root)
        yield from self._pump_anew(hosts, root.run)
        yield from self.report(root, refused=self.table.limited(root.url))

    def continue_run(self) -> Iterator[Output]:
        """Request the next URLs of a root whose run has begun in part."""
        for url, part in root_index.parts(self.table.rows, 1):
            root, hosts = self.table.root(url.decode()), dict[str, None]()
            if root is None:
                root_index.put_part(self.table.rows, url.decode(), None)
            else:
                yield from self._begin(root, part, hosts)
                yield from self._pump_anew(hosts, root.run)

    def _begin(self, root: Root, part: root_index.Part, hosts: dict[str, None]) -> Generator[Output, None, set[bytes]]:
        """Request the next URLs of a root for its run, and return their digests; `hosts` gets the hosts to request from."""
        asked: set[bytes] = set()
        number, last, changed = 0, b"", part.changed
        for host, digest, known in self.table.urls_of_root(root.url, part.after):
            if number == self.settings.part:
                root_index.put_part(self.table.rows, root.url, root_index.Part(last, changed))
                return asked
            number, last = number + 1, host.encode() + b"\0" + digest
            if self._comes_back(host, known, root):
                yield from self.revive(host, digest, known, root)
            elif known.state == "gone" and self.delivered(known):
                self.table.forget(host, digest, known)
                continue
            elif self._stale(known, root) and (changed or not self.is_left_to_mark(host, digest, known, root)):
                yield from self._ask_anew(host, digest, known, root, changed=changed)
            elif changed and part.after and known.run == root.run and not is_described_by_listing(known):
                # Found by this run before its own turn: requested in full all the same.
                yield from self._request_in_full(host, digest, known, root)
            elif known.state != "queued":
                continue
            # On redelivery this same event may have queued the URL. Its host must be pumped here: nothing else does, unless it is
            # the root's.
            hosts[host] = None
            asked.add(digest)
        root_index.put_part(self.table.rows, root.url, None)
        return asked

    def _begin_again(self, asked: set[bytes], hosts: dict[str, None]) -> Iterator[Output]:
        """Repeat requests of an earlier delivery of this event, in no queue: those are behind its part now, or have lost its root.

        `asked`: digests of the URLs that were requested again; gets those that are repeated. `hosts`: gets their hosts.
        """
        found = [each for each in self.table.all() if (each[2].state, each[2].origin) == ("asked", self.origin)]
        for host, digest, known in found:
            if digest in asked or digest in self.table.host(host).flying:
                continue
            asked.add(digest)
            hosts[host] = None
            yield from self.repeat(host, digest, known)

    def _request_in_full(self, host: str, digest: bytes, known: UrlState, root: Root) -> Iterator[Output]:
        if known.state == "ok":
            yield from self.ask(host, digest, known.but(whole=True), root)
        elif known.state in ("queued", "asked", "waiting"):
            self.table.put(host, digest, known.but(whole=True))

    def _pump_anew(self, hosts: dict[str, None], run: str) -> Iterator[Output]:
        for host in hosts:
            self._look_up_anew(host, run)
            yield from self.pump(host)

    def _ask_anew(self, host: str, digest: bytes, known: UrlState, root: Root, *, changed: bool) -> Iterator[Output]:
        """Request a known URL in a new run; `changed`: the limits of the root, so that its links are admitted again."""
        probed = known.probed or self.is_probe(host, digest, known, root)
        whole = known.whole or (changed and not is_described_by_listing(known))
        # What is being read of this machine may have been read before a change because of which this run begins.
        again = known.again or (known.state == "asked" and known.origin != self.origin and not scheme_of(host).paced)
        yield from self.ask(host, digest, known.but(whole=whole, probed=probed, again=again), root)

    def _hosts_asked(self) -> dict[str, None]:
        """Return the hosts with requests in flight that an earlier delivery of this event made, also those of other roots."""
        found = ((host, self.table.get(host, digest)) for host, site in self.table.hosts() for digest in site.flying)
        return {host: None for host, known in found if known is not None and (known.state, known.origin) == ("asked", self.origin)}

    def _look_up_anew(self, host: str, run: str) -> None:
        """Drop a host look-up that an earlier run left pending, since its answer may be lost: once in a run, whatever its roots."""
        site = self.table.host(host)
        if site.begun == run or not scheme_of(host).paced:
            return
        dropped = site.asking and site.asked != self.origin
        self.table.put_host(host, site.but(begun=run, asking=0 if dropped else site.asking))

    def _comes_back(self, host: str, known: UrlState, root: Root) -> bool:
        """Return whether a run requests a gone URL once more."""
        if known.state != "gone" or known.run == root.run or not self.is_requested_once_gone(known, root):
            return False
        return not self._refusal(host, Link(url=known.url), known.depth, root, counted=known.moved)

    def _stale(self, known: UrlState, root: Root) -> bool:
        """Return whether a run requests this URL itself; an unchanged file is left to the listing of its folder."""
        if known.state == "gone" or (known.run == root.run and known.origin != self.origin):
            return False
        if known.missing and self.accepts(root):
            return True
        return not (is_described_by_listing(known) and known.state == "ok" and self.same_rules(known))

    def _check_plan(self, event: CrawlEvent) -> None:
        """Raise ValueError for a plan that cannot be applied, before anything is written."""
        if event.plan is not None:
            RootOptions(event.plan)

    def _plan(self, event: CrawlEvent) -> None:
        """Store the plan of a root, unless a later run is known."""
        if event.root is None or event.plan is None:
            return
        before = self.table.root(event.root.url)
        if before is None or before.run <= event.root.run:
            self.plans.put(event.root.url, event.plan)

    def _limits_changed(self, event: CrawlEvent) -> bool:
        """Return whether the root's limits changed or it has room again, so that refused URLs may be admitted."""
        root = event.root
        before = self.table.root(root.url) if root else None
        if root is None or before is None:
            return False
        changed = (before.depth, before.urls) != (root.depth, root.urls) or self.budgets.reopened_at(root.url) == self.origin
        if event.plan is not None and before.run <= root.run:
            changed = changed or RootOptions(event.plan).admission != self.plans.of(root.url).admission
        limited = self.table.limited(root.url)
        # Elsewhere than at home, room is known once home has the reports of this run: it answers then.
        if changed or (limited and self.is_home(root) and self.has_room(root)):
            self.budgets.reopened_at(root.url, self.origin)
            self.table.limited(root.url, on=False)
            return True
        if limited and self.is_home(root):
            self.await_room(root)
        return False

    def unseeded(self, event: CrawlEvent) -> Iterator[Output]:
        """End a root: expire the URLs that no other root asks for."""
        root = self.root_of(event)
        begun = event.root is not None and root.run > event.root.run
        if begun or self.table.ended(root):
            yield from self.again()
        if begun:
            return  # redelivered: the root was added again since
        self.table.end_root(root)
        self.budgets.end(root.url)
        self.plans.end(root.url)
        hosts: dict[str, None] = {}
        for host, digest, known in self.table.urls_of_root(root.url):
            left = tuple(r for r in known.roots if r != root.url)
            if left:
                yield from self._keep_for_other_roots(host, digest, known.but(roots=left))
                hosts[host] = None
            elif known.state != "gone":
                yield from self.end(host, digest, known, "expired", "no root asks for it any more")
            else:
                self.table.forget(host, digest, known)  # otherwise its refresh would request it
        for host in hosts:
            yield from self.pump(host)

    def paused(self, event: CrawlEvent) -> Iterator[Output]:
        """Pause a root: URLs of this root alone are not refreshed and do not expire; a new run still requests them."""
        self.table.pause(event.url, on=True)
        return iter(())

    def resumed(self, event: CrawlEvent) -> Iterator[Output]:
        """Resume a root: URLs that fell due during the pause are requested at their next refresh."""
        self.table.pause(event.url, on=False)
        return iter(())

    def _keep_for_other_roots(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Leave a URL to its other roots and fetch it in full again: perhaps only the ended root had admitted its links."""
        if known.moved:
            yield from self.revive(host, digest, known, self.known_root(known))
        elif is_described_by_listing(known) or known.state != "ok":
            # What cannot be fetched now is fetched in full once it can.
            self.table.put(host, digest, known.but(whole=not is_described_by_listing(known)))
        else:
            # Removing the root and queuing the request is one write: a crash between two writes would lose the request.
            yield from self.ask(host, digest, known.but(whole=True), self.known_root(known))
