"""What the frontier makes of what was found: roots, links, and the children of a listing.

Laws:
- Children of a listing are compared in bulk: what is unchanged costs a look at its row, and no record.
- Every refusal is an event with its reason; those of one event travel together.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier.requests import Asking, Decided, covered
from processors.frontier.state import Known
from processors.identity import frontier_key, url_digest
from processors.schemes import may_link
from processors.urls import trap
from schemas.records import MAX_MOVES, CrawlEvent, Link, Root, Span

FULL = "URL limit of the root"


class Finding(Asking):
    """Handlers of `seeded`, `unseeded`, `paused`, `resumed` and `discovered`."""

    def seeded(self, event: CrawlEvent) -> Iterator[Decided]:
        """A run begins: all that its root asks for here is asked for again, and the root itself where it belongs."""
        changed = self._limits_changed(event)
        root = self.root_of(event)
        hosts: dict[str, None] = {}
        asked = set()
        for host, digest, known in list(self.table.asked_by(root.url, self.origin)):
            if root.url not in known.roots:
                hosts[host] = None  # redelivered: another root's, which waited for a host that this event pumped
                continue
            if self._comes_back(host, known, root):
                yield from self.revive(host, digest, known, root)
            elif known.state == "gone" and self.delivered(known):
                self.table.forget(host, digest, known)
                continue
            elif self._stale(known, root):
                yield from self.ask(host, digest, known.but(whole=known.whole or (changed and not covered(known))), root)
            elif known.state != "queued":
                continue
            # What is queued may be so by this very event, redelivered: nobody else asks its host, if that is not the root's.
            hosts[host] = None
            asked.add(digest)
        for link in event.links:
            host = frontier_key(link.url)
            if url_digest(link.url) not in asked:
                yield from self.found(host, link, 0, root, event.url)
            hosts[host] = None
        for host in hosts:
            self._look_up_anew(host)
            yield from self.pump(host)

    def _look_up_anew(self, host: str) -> None:
        """A run does not wait for a look-up of an earlier one, which may have got lost."""
        site = self.table.host(host)
        if site.asking and site.asked != self.origin:
            self.table.put_host(host, site.but(asking=0))

    def _comes_back(self, host: str, known: Known, root: Root) -> bool:
        """Whether a run asks once more for what is gone."""
        if known.state != "gone" or known.run == root.run or not self.wanted_back(known, root):
            return False
        return not self._refusal(host, Link(url=known.url), known.depth, root, counted=known.moved)

    def _stale(self, known: Known, root: Root) -> bool:
        """Whether a run asks for a URL by itself: files are the affair of their folder's listing."""
        if known.state == "gone" or (known.run == root.run and known.origin != self.origin):
            return False
        return not (covered(known) and known.state == "ok" and self.same_rules(known))

    def _limits_changed(self, event: CrawlEvent) -> bool:
        """Whether a root has other limits than before, or room again: what was refused before may be taken now."""
        root = event.root
        before = self.table.root(root.url) if root else None
        if root is None or before is None:
            return False
        room = self.table.limited(root.url) and self.table.counted(root.url) < root.urls
        if room:
            self.table.limited(root.url, on=False)
        return room or (before.depth, before.urls) != (root.depth, root.urls)

    def unseeded(self, event: CrawlEvent) -> Iterator[Decided]:
        """A root ends: what it alone asked for goes."""
        root = self.root_of(event)
        if self.table.ended(root):
            yield from self.again()
        self.table.end_root(root)
        hosts: dict[str, None] = {}
        for host, digest, known in list(self.table.asked_by(root.url)):
            left = tuple(r for r in known.roots if r != root.url)
            if left:
                yield from self._left_to(host, digest, known.but(roots=left))
                hosts[host] = None
            elif known.state != "gone":
                yield from self.end(host, digest, known, "expired", "no root asks for it")
            else:
                self.table.forget(host, digest, known)  # or it would be looked for at its refresh
        for host in hosts:
            yield from self.pump(host)

    def paused(self, event: CrawlEvent) -> Iterator[Decided]:
        """A root is paused: what it alone asks for is not refreshed by itself, and does not expire; a run of it visits it."""
        self.table.pause(event.url, on=True)
        return iter(())

    def resumed(self, event: CrawlEvent) -> Iterator[Decided]:
        """A root goes on: what was due meanwhile is asked for at its next refresh."""
        self.table.pause(event.url, on=False)
        return iter(())

    def _left_to(self, host: str, digest: bytes, known: Known) -> Iterator[Decided]:
        """A URL is asked for by its other roots alone: what it leads to may have been found by the one that ended only."""
        if known.moved:
            yield from self.revive(host, digest, known, self.known_root(known))
        elif covered(known) or known.state != "ok":
            self.table.put(host, digest, known)
        else:
            # One write takes the root away and asks: between two, a crash would leave it unasked.
            yield from self.ask(host, digest, known.but(whole=True), self.known_root(known))

    def discovered(self, event: CrawlEvent) -> Iterator[Decided]:
        """Links of a page, or a slice of a listing."""
        if event.span is not None:
            yield from self._children(event, event.span)
            return
        if event.root is None or self.table.ended(event.root):
            return  # found by a run of a root that has been removed meanwhile
        root = self.root_of(event)
        for link in event.links:
            yield from self.found(event.host, link, event.depth + 1, root, event.url, moves=event.moves, trail=event.trail)
        yield from self.pump(event.host)

    def _children(self, event: CrawlEvent, span: Span) -> Iterator[Decided]:
        """A slice of a listing against what is known of that folder: new, changed and vanished children."""
        root = self.root_of(event) if event.root and not self.table.ended(event.root) else None
        present = {url_digest(link.url): link for link in event.links}
        for digest, known in list(self.table.between(event.host, span.low, span.high)):
            if digest in present:
                continue
            if known.state != "gone" and known.url in known.roots:
                # A root of its own: no listing ends it, its own fetch tells.
                yield from self.ask(event.host, digest, known, self.known_root(known))
            elif known.state != "gone":
                yield from self.end(event.host, digest, known, "gone", "not in the listing any more")
            elif self.delivered(known):
                self.table.forget(event.host, digest, known)
        if root is None:
            return
        for link in event.links:
            yield from self.found(event.host, link, event.depth + 1, root, event.url, listed=True)

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
    ) -> Iterator[Decided]:
        """A URL was found: admitted if it is new, asked for if it is due in this run. `moves`, `trail`: as of a redirect."""
        digest = url_digest(link.url)
        known = self.table.get(host, digest)
        if known is not None and known.state == "gone" and known.run == root.run and not listed:
            if known.moved:
                yield from self._met_again(host, digest, known, root, trail)
            return
        if known is None or (known.state == "gone" and known.origin != self.origin):
            if self._admits(host, link, depth, root, parent):
                fresh = Known(url=link.url, kind=link.kind, depth=depth, roots=(root.url,), run=root.run, moves=moves, trail=trail)
                if known is not None:
                    fresh = fresh.but(since=known.since)
                    if known.moved:
                        self.table.uncount(known)
                self.table.count(root.url, 1)
                yield from self.ask(host, digest, fresh, root)
            return
        known = self._by_another_way(host, digest, known, root, moves, trail)
        again = known.state == "asked" and known.origin == self.origin
        news = root.url not in known.roots
        if news:
            known = known.but(roots=(*known.roots, root.url), depth=min(known.depth, depth))
            self.table.put(host, digest, known)
            self.table.count(root.url, 1)
        listed_with = covered(known)
        if listed_with and known.state == "ok":
            wanted = not self.same_rules(known) or not known.same_file(link)
        else:
            wanted = known.run != root.run or (news and not listed_with)
        if again or wanted:
            # A new root of something with links of its own: asked for whole, so that the root reaches what it leads to.
            yield from self.ask(host, digest, known.but(whole=known.whole or (news and not listed_with)), root)

    def _by_another_way(self, host: str, digest: bytes, known: Known, root: Root, moves: int, trail: tuple[str, ...]) -> Known:
        """What is known was found once more: by fewer redirects than before, or by more of them."""
        before = known
        if moves < known.moves:
            # Where it moves to next is no longer the end of a long chain.
            known = known.but(moves=moves)
        if known.run == root.run and len(trail) > len(known.trail) and known.state in ("queued", "asked", "waiting"):
            # Should it turn out to have moved, too, it is asked for once more.
            known = known.but(trail=trail)
        if known is not before:
            self.table.put(host, digest, known)
        return known

    def _met_again(self, host: str, digest: bytes, known: Known, root: Root, trail: tuple[str, ...]) -> Iterator[Decided]:
        """What has moved in this run was found once more.

        A redirect that leads here may close a circle, which only whoever knows the whole way can see: it is asked for once more by
        each longer way, up to MAX_MOVES. Another root is to reach what it leads to, too.
        """
        news = root.url not in known.roots
        longer = len(known.trail) < len(trail) < MAX_MOVES
        if news:
            self.table.count(root.url, 1)
            known = known.but(roots=(*known.roots, root.url))
        if longer:
            known = known.but(trail=trail)
        if news or longer:
            yield from self.ask(host, digest, known, root)

    def _admits(self, host: str, link: Link, depth: int, root: Root, parent: str) -> bool:
        """Whether a URL that is new may be asked for; a refusal is noted."""
        if self.told and (host, url_digest(link.url)) in self.told:
            return False  # redelivered: it was found, and went, by this very event
        reason = self._refusal(host, link, depth, root)
        if reason:
            self.refused.setdefault((host, reason, parent), []).append(link)
        if reason == FULL:
            self.table.limited(root.url, on=True)
        return not reason

    def _refusal(self, host: str, link: Link, depth: int, root: Root, *, counted: bool = False) -> str:
        """Why a URL may not be asked for; "" where it may. counted: it is one of the URLs of its root already."""
        if not may_link(root.url, link.url):
            return "not of the root's kind"  # no page leads into the file system, no file into the network
        if 0 <= root.depth < depth:
            return "depth limit of the root"
        if root.host and host not in (root.host, frontier_key(root.url)):
            return "not on the server of the root"
        if root.urls and not counted and self.table.counted(root.url) >= root.urls:
            return FULL
        return trap(link.url)
