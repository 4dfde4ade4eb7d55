"""Event handler for URL discovery: links, and the children of a listing.

Laws:
- Children of a listing are compared in bulk: an unchanged child costs one look at its row, and no record.
- A URL that looks like one of endlessly many is refused only once its host has MAX_SIMILAR of the same pattern. They are counted by
  their rows, so that it does not matter when and how often each was found; which are the first depends on the order of discovery.
- A child has changed if its size, mtime, inode or ctime differs. The ctime reveals content under an old mtime: a program may set
  the mtime (utimensat), but the system alone sets the ctime, at every change of content or status (POSIX, XBD chapter 4, "File
  Times Update"). A change of status alone (chmod, a new hard link) costs one more reading.
- A row written before listings had a ctime takes that of the next listing, if all else is equal.
- Every refusal is an event with its reason; the refusals of one event are sent together.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier import root_index
from processors.frontier.budget import FULL
from processors.frontier.budget_home import HomeHandlers
from processors.frontier.changes import ChangeHandlers, has_returned
from processors.frontier.doubt import Vanished
from processors.frontier.listed_rows import with_listing
from processors.frontier.requests import Output, is_described_by_listing
from processors.frontier.sitemaps import SitemapHandlers
from processors.frontier.state import ListingSource, UrlState, Waiting
from processors.identity import url_digest
from processors.schemes import may_link, scheme_of
from processors.urls import MAX_SIMILAR, suspicion
from schemas.records import MAX_MOVES, CrawlEvent, Link, Root, Span


class DiscoveryHandlers(SitemapHandlers, HomeHandlers, ChangeHandlers):
    """Handler of `discovered`."""

    def discovered(self, event: CrawlEvent) -> Iterator[Output]:
        """Handle the links of a page, or a slice of a listing."""
        if event.span is not None and not scheme_of(event.url).paced:
            yield from self._children(event, event.span)
            return
        if event.span is not None:
            yield from self._listed(event, event.span)
            return
        if event.root is None or self.table.ended(event.root):
            return  # found by a run of a root that has since been removed
        root = self.root_of(event)
        links = [self.rewritten(event, link, root) for link in self.links_of(event, root)]
        digests = [url_digest(link.url) for link, _ in links]
        self.table.prefetch(event.host, digests)
        for (link, exempt), digest in zip(links, digests, strict=True):
            known = self.table.get(event.host, digest)
            # Most links of a page lead to pages that this run has found already.
            if known is None or exempt or event.trail or not self._is_settled(known, root, event.moves):
                yield from self.found(
                    event.host, link, event.depth + 1, root, event.url, moves=event.moves, trail=event.trail, exempt=exempt
                )
        yield from self.pump(event.host)

    def _is_settled(self, known: UrlState, root: Root, moves: int) -> bool:
        """Return whether a further link to a page changes nothing: `found` would neither write its row nor request it."""
        redelivered = known.state == "asked" and known.origin == self.origin
        mine = known.run == root.run and root.url in known.roots
        return mine and known.kind == "page" and known.state != "gone" and moves >= known.moves and not redelivered

    def _listed(self, event: CrawlEvent, span: Span) -> Iterator[Output]:
        """Compare a slice of a listing from the network with what it had: see `listed.py`."""
        root = self.root_of(event) if event.root and not self.table.ended(event.root) else None
        vanished = yield from self.missing_children(event, span)
        yield from self._vanished(event, root, vanished)
        if root is not None:
            source = self.source_of(event)
            complete = event.coverage == "complete"
            for each in self.marked_links(event):
                link, exempt = self.rewritten(event, each, root)
                # A rewritten URL has another digest: the next listing would not find it among its own, perhaps not in this slice.
                of = source if link.url == each.url else source.but(keeps=False)
                yield from self.found(event.host, link, event.depth + 1, root, event.url, listed=complete, source=of, exempt=exempt)
        yield from self.pump(event.host)

    def _children(self, event: CrawlEvent, span: Span) -> Iterator[Output]:
        """Compare a slice of a listing with the rows of that folder: admit new, request changed, end vanished children."""
        root = self.root_of(event) if event.root and not self.table.ended(event.root) else None
        present = {url_digest(link.url): link for link in event.links}
        vanished = []
        for digest, known in list(self.table.between(event.host, span.low, span.high)):
            if digest in present and not self.outside(event.host, known):
                continue
            if known.state != "gone" and known.url in known.roots:
                # The child is a root too: no listing ends it, only the outcome of its own fetch.
                yield from self.ask(event.host, digest, known, self.known_root(known))
            elif known.state != "gone":
                vanished.append((digest, known))
            elif self.delivered(known):
                self.table.forget(event.host, digest, known)
        yield from self._vanished(event, root, vanished)
        if root is None:
            return
        for link in event.links:
            yield from self.found(event.host, link, event.depth + 1, root, event.url, listed=True)

    def _vanished(self, event: CrawlEvent, root: Root | None, vanished: Vanished) -> Iterator[Output]:
        """Remove or hold the children that vanished from a listing; what is held stays so, whatever else changes there."""
        sticks = root is not None and not self.accepts(root)
        if doubt := self.doubt_listing(event, root, [each for each in vanished if not (sticks and each[1].held)]):
            yield self.report_doubt(event.url, event.version, doubt)
        for digest, known in vanished:
            if sticks and (known.held or doubt):
                yield from self.hold(event, digest, known, "" if known.held else doubt)
            else:
                yield from self.end(event.host, digest, known, "gone", "not in the listing any more")

    def found(
        self,
        host: str,
        link: Link,
        depth: int,
        root: Root,
        parent: str,
        *,
        listed: bool = False,
        moves: int = 0,
        trail: tuple[str, ...] = (),
        source: ListingSource | None = None,
        exempt: bool = False,
    ) -> Iterator[Output]:
        """Admit a URL if it is new, and request it if it is due in this run.

        `moves`, `trail`: of the redirects that led to it; `source`: the listing from the network that has it; `exempt`: no rule
        rewrites it.
        """
        digest = url_digest(link.url)
        known = self.table.get(host, digest)
        here = Waiting(link, depth, parent, self.origin, listed, moves, trail, source, exempt)
        if known is not None:
            known = self.enlist(host, digest, known, source, link.mark)
        if known is not None and known.state == "gone" and known.run == root.run and not listed:
            if known.moved:
                yield from self._found_after_redirect(host, digest, known, root, here)
        elif known is None or (known.state == "gone" and known.origin != self.origin):
            if self._admits(host, root, here):
                yield from self._ask_new(host, digest, known, root, here)
        else:
            yield from self._found_known(host, digest, known, root, here)

    def _ask_new(self, host: str, digest: bytes, known: UrlState | None, root: Root, here: Waiting) -> Iterator[Output]:
        """Request a URL that was admitted."""
        link = here.link
        fresh = UrlState(
            url=link.url, kind=link.kind, depth=here.depth, roots=(root.url,), run=root.run, moves=here.moves, trail=here.trail
        )
        if here.exempt:
            fresh = fresh.but(exempt=True)
        if known is not None:
            fresh = fresh.but(since=known.since, listed_in=known.listed_in)
            if known.moved:
                self.table.uncount(known)
        if source := here.source:
            fresh = fresh.but(mark=link.mark, mark_of=source.digest if link.mark else b"")
            fresh = with_listing(fresh, source.digest) if source.keeps else fresh
        self.table.count(root.url, 1)
        self.table.count_similar(link.url, 1)
        root_index.add(self.table.rows, root.url, host, digest)
        yield from self.ask(host, digest, fresh, root)
        self.table.listed.put(host, digest, fresh.listed_in)

    def _found_known(self, host: str, digest: bytes, known: UrlState, root: Root, here: Waiting) -> Iterator[Output]:
        """Add a root to a known URL, and request it if it is due in this run or has changed."""
        back = has_returned(known, listed=here.listed)
        known = self._returned(host, digest, known, listed=here.listed)
        if here.exempt and not known.exempt:
            known = known.but(exempt=True)
            self.table.put(host, digest, known)
        known = self._update_trail(host, digest, known, root, here.moves, here.trail)
        again = known.state == "asked" and known.origin == self.origin
        news = root.url not in known.roots
        if news and not again and not self.has_room(root):
            self._turn_away(host, root, here)
            return
        if news:
            root_index.add(self.table.rows, root.url, host, digest)
            known = known.but(roots=(root.url, *known.roots), depth=min(known.depth, here.depth))
            self.table.put(host, digest, known)
            self.table.count(root.url, 1)
        listed_with = is_described_by_listing(known)
        if listed_with and known.state == "ok":
            wanted = not self.same_rules(known) or not known.same_file(here.link)
            known = self._complete(host, digest, known, here.link, changed=wanted)
            known = known if wanted else self.confirm_listed(host, digest, known)
        else:
            known, wanted = self.compare_mark(host, digest, known, root, here)
            wanted = wanted or back or (news and not listed_with)
            known = known if wanted or again else self.note_later_change(host, digest, known, here.link)
            if not wanted and self.is_listed_unchanged(host, known, root, here):
                known = self.confirm_listed(host, digest, known)
        yield from self.confirmations(known)
        if again or wanted:
            # A new root of a page or folder: fetched in full, so that its links are admitted for that root too.
            yield from self.ask(host, digest, known.but(whole=known.whole or (news and not listed_with)), root)

    def _returned(self, host: str, digest: bytes, known: UrlState, *, listed: bool) -> UrlState:
        """Settle the doubt about a missing URL that a listing has again."""
        if not (listed and known.missing):
            return known
        self.table.schedule(host, digest, known.but(missing=0, held=False), known.due if scheme_of(known.url).paced else 0)
        return self.table.get(host, digest) or known

    def _complete(self, host: str, digest: bytes, known: UrlState, link: Link, *, changed: bool) -> UrlState:
        """Add the ctime to the row of an unchanged child that has none, so that the next listing is compared by it."""
        complete = known if changed else known.with_ctime(link)
        if complete is not known:
            self.table.put(host, digest, complete)
        return complete

    def _update_trail(self, host: str, digest: bytes, known: UrlState, root: Root, moves: int, trail: tuple[str, ...]) -> UrlState:
        """Update the redirect count and trail of a known URL that was found by another route."""
        before = known
        if moves < known.moves:
            # A redirect from it no longer exceeds MAX_MOVES because of a longer chain found earlier.
            known = known.but(moves=moves)
        if known.run == root.run and len(trail) > len(known.trail) and known.state in ("queued", "asked", "waiting"):
            # If it turns out to be a redirect too, it is requested once more with the longer trail.
            known = known.but(trail=trail)
        if known is not before:
            self.table.put(host, digest, known)
        return known

    def _found_after_redirect(self, host: str, digest: bytes, known: UrlState, root: Root, found: Waiting) -> Iterator[Output]:
        """Handle a URL that already redirected in this run and is found again.

        The redirect that leads here may close a loop, which is visible only from the full trail. So the URL is requested once more
        for each longer trail, up to MAX_MOVES. A new root requests it too, so that the target is admitted for that root.
        """
        news = root.url not in known.roots
        longer = len(known.trail) < len(found.trail) < MAX_MOVES
        if news and not self.has_room(root):
            self._turn_away(host, root, found)
            return
        if news:
            root_index.add(self.table.rows, root.url, host, digest)
            self.table.count(root.url, 1)
            known = known.but(roots=(*known.roots, root.url))
        if longer:
            known = known.but(trail=found.trail)
        if news or longer:
            yield from self.ask(host, digest, known, root)

    def _admits(self, host: str, root: Root, found: Waiting) -> bool:
        """Return whether a new URL may be requested; if not, record the refusal or have it wait for credit."""
        if self.ended_before and (host, url_digest(found.link.url)) in self.ended_before:
            return False  # redelivered: this same event found the URL and later ended it
        reason = self._refusal(host, found.link, found.depth, root)
        if reason == FULL:
            self._turn_away(host, root, found)
        elif reason:
            self.refused.setdefault((host, reason, found.parent), []).append(found.link)
        return not reason

    def _turn_away(self, host: str, root: Root, found: Waiting) -> None:
        """Have a URL wait for credit of its root, or refuse it if the root has none."""
        if self.may_claim(root):
            self.wait_for_credit(host, root, found)
        else:
            self.refused.setdefault((host, FULL, found.parent), []).append(found.link)
            self.table.limited(root.url, on=True)

    def _refusal(self, host: str, link: Link, depth: int, root: Root, *, counted: bool = False) -> str:
        """Return why a URL may not be requested, "" if it may; `counted`: its root already counts it."""
        if not may_link(root.url, link.url):
            return "file and web URLs do not mix in one root"
        if 0 <= root.depth < depth:
            return "depth limit of the root"
        if outside := self.plans.of(root.url).scope.refusal(link.url, host, depth, root):
            return outside
        if counted:
            return ""
        # A trap never waits for credit: it would claim some that it does not use.
        return self._trap(link.url, root) or ("" if self.has_room(root) else FULL)

    def _trap(self, url: str, root: Root) -> str:
        """Return why a new URL is refused as one of endlessly many, "" if it is not."""
        variants = self.plans.of(root.url).plan.variants
        limit = self.settings.variants if variants is None else variants
        if limit and url != root.url and self.table.variants(url) >= limit:
            return f"trap: more than {limit:,} queries of one path"
        found = suspicion(url)
        if found is None or self.table.similar(url) < MAX_SIMILAR:
            return ""
        return f"{found.reason}, as in {MAX_SIMILAR} other URLs of its server"
