"""Listings from the network (sitemaps, feeds, FTP directories): children are compared by what the listing states of their version.

Strategy: a listing names children and states a mark for some (lastmod, size and time, an article's number). A mark is compared with
the one of the last request, never read: an equal one means that the child has not changed. What a listing had before is in the rows
`m|` (`listed_rows.py`), since a host has many listings and pages that none of them has.

Laws:
- An equal mark on a URL that is `ok` costs no request until its refresh is due, nor does a page that links to it. Roots are
  requested in each run.
- A mark counts only if the URL is requested after the listing was read: otherwise a change between both would be lost. Stated after
  the request, it is `pending`, and counts from the next request on.
- The marks of one listing count for a URL, as long as that listing has it: two listings may state one version differently. Marks of
  URLs on other hosts are ignored: their server has not stated them.
- A child that is not listed any more is removed where the listing is complete, requested (its mark dropped) where it is open, left
  alone where it rolls on. As long as another listing has it, it stays, and is requested only if the mark that counted is dropped.
- A child that moves to another listing with the same mark is not requested, whichever of them is read first: a listing that has it
  newly with the mark that counts takes that mark over, and a request for what was lost is dropped while it is still queued.
- A child whose URL the rules of the root rewrite counts as one of a listing that rolls on.
- A listing is not requested because of another one within the shortest time between two refreshes: its own refresh will come.
- Only the slices of a host reveal what it has lost: if a listing on another host names nothing of a host any more, the URLs there
  become due at their refresh.
- An open listing that shrinks costs requests, and removes nothing by itself: what is missing then is doubted page by page. What a
  complete one has lost is doubted as the children of a folder are (`doubt.py`).
- Of the URLs with an equal mark, one in PROBES is requested in each run all the same, of a large root about SAMPLES, chosen by
  digest and run. Where one had changed, or was gone, the marks of its host do not count until its next refresh (`lastmod`: auto;
  trust and ignore do not sample).
- A sample is mostly requested before the listing of its run was read, which may state the change. So the marks count until that
  listing has the URL with the same mark, or until the next run; if it states the change of all such samples, they still count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from typing import cast

import msgspec

from processors.frontier.doubt import DoubtHandlers, Vanished
from processors.frontier.listed_rows import with_listing, without_listing
from processors.frontier.requests import Output
from processors.frontier.settings import Lastmod
from processors.frontier.state import ListingSource, UrlState, Waiting
from processors.identity import frontier_key, url_digest
from processors.schemes import is_web
from schemas.records import CrawlEvent, Link, Root, Span

PROBES = 20
"""One in this number of URLs with an equal mark is requested in each run, to verify the marks."""
SAMPLES = 300
"""URLs of a root that are so requested in a run at most, about: their number is what finds a lie, not their share."""
RECENT = 3_600_000
"""A URL without a mark that was confirmed at most this many ms before its listing was read is not requested again for its mark."""
MAX_SUSPECTS = 32
"""Samples of a host that had changed, and are recorded until a listing is read; further ones are not."""
KEEPS = ("complete", "open")
"""Coverages of listings whose missing children mean something."""


class ListedHandlers(DoubtHandlers):
    """Compares the children of a listing from the network with the rows."""

    def lastmod_of(self, root: Root) -> Lastmod:
        """Return whether marks count for a root."""
        stated = self.plans.of(root.url).plan.lastmod
        return cast("Lastmod", stated) if stated else self.settings.lastmod

    # ---- children that are listed ----------------------------------------------------------------------------------

    def source_of(self, event: CrawlEvent) -> ListingSource:
        """Return the listing of an event; note in its row, which is on its own host, that it is one."""
        digest = url_digest(event.url)
        if event.host == frontier_key(event.url):
            known = self.table.get(event.host, digest)
            if known is not None and known.kind != "listing" and known.state != "gone":
                self.table.put(event.host, digest, known.but(kind="listing"))
        return ListingSource(digest, event.coverage in KEEPS, event.time)

    def marked_links(self, event: CrawlEvent) -> Iterator[Link]:
        """Yield the children of an event, without marks of URLs on other hosts than the listing."""
        own = event.host == frontier_key(event.url)
        for link in event.links:
            yield link if own or not link.mark else msgspec.structs.replace(link, mark="")

    def enlist(self, host: str, digest: bytes, known: UrlState, source: ListingSource | None, mark: str) -> UrlState:
        """Record that a listing has a known URL, with a mark."""
        if source is not None and known.mark_of == source.digest:
            self.judge_suspect(host, digest, stated=known.mark != mark)
        if source is None or not source.keeps:
            return known
        listed = with_listing(known, source.digest)
        if listed is not known:
            if mark and known.mark == mark and known.mark_of in known.listed_in:
                self.judge_suspect(host, digest, stated=False)
                listed = listed.but(mark_of=source.digest)
            self.table.put(host, digest, listed)
        # In the row of the URL it may be recorded already: a crash falls between the two writes.
        if digest not in self.recorded and source.digest in listed.listed_in:
            self.table.listed.put(host, digest, (source.digest,))
        return listed

    def compare_mark(self, host: str, digest: bytes, known: UrlState, root: Root, found: Waiting) -> tuple[UrlState, bool]:
        """Return the row of a URL that was found, and whether it is requested. A mark that may be recorded by itself is written."""
        source, fresh = found.source, known.run != root.run
        if source is not None and known.left_mark and known.state == "queued" and found.link.mark == known.left_mark:
            return self._found_elsewhere(host, digest, known, source), False
        marked, wanted = known, fresh
        if source is None or not _counts(known, source) or (found.link.mark and found.link.mark == _own(known, source)):
            wanted = fresh and not self.is_left_to_mark(host, digest, known, root)
            probed = wanted and self.is_probe(host, digest, known, root)
            return (known.but(probed=True) if probed else known), wanted
        stated = known.but(mark=found.link.mark, mark_of=source.digest if found.link.mark else b"", probed=False, pending=False)
        if known.state == "asked":
            # The request is older than the listing: the mark that it was made for does not count, and the new one not yet.
            marked = stated.but(pending=bool(stated.mark))
        elif known.state in ("queued", "waiting") or not found.link.mark or fresh:
            marked = stated
        elif (
            known.state == "ok"
            and (known.mark or known.confirmed + RECENT < source.read)
            and not self._was_read(known, source.read)
        ):
            marked, wanted = stated, True
        elif known.state == "ok" and not known.mark:
            marked = stated.but(pending=True)
        if not wanted and marked != known:
            self.table.put(host, digest, marked)
        return marked, wanted

    # ---- marks that save a request ---------------------------------------------------------------------------------

    def is_left_to_mark(self, host: str, digest: bytes, known: UrlState, root: Root) -> bool:
        """Return whether a URL is not requested by a run, since the mark of its listing is the same as at its last request."""
        return self._has_valid_mark(host, known, root) and not self.is_probe(host, digest, known, root)

    def is_listed_unchanged(self, host: str, known: UrlState, root: Root, found: Waiting) -> bool:
        """Return whether a listing states with a mark that counts that a URL is as it was when it was last requested."""
        same = found.source is not None and bool(found.link.mark) and found.link.mark == _own(known, found.source)
        return same and self._has_valid_mark(host, known, root)

    def is_probe(self, host: str, digest: bytes, known: UrlState, root: Root) -> bool:
        """Return whether a URL is requested in this run to verify its mark. A mark that a protocol defines is not verified."""
        if not is_web(host) or self.lastmod_of(root) != "auto" or not self._has_valid_mark(host, known, root):
            return False
        drawn = hashlib.sha256(digest + root.run.encode()).digest()
        return int.from_bytes(drawn[:4], "big") % self._probes_of(root) == 0

    def _probes_of(self, root: Root) -> int:
        """Return the number of URLs of which one is requested to verify its mark."""
        if root.url not in self.probes:
            self.probes[root.url] = max(PROBES, self.table.counted(root.url) // SAMPLES)
        return self.probes[root.url]

    def _has_valid_mark(self, host: str, known: UrlState, root: Root) -> bool:
        if not (known.mark and not known.pending and known.depth and known.state == "ok" and not known.whole):
            return False
        if known.due <= self.now:
            return False
        # The setting is about sitemaps and feeds.
        lastmod = self.lastmod_of(root) if is_web(host) else "trust"
        return self.same_rules(known) and lastmod != "ignore" and (lastmod == "trust" or self._trusts_marks(host, root))

    def _trusts_marks(self, host: str, root: Root) -> bool:
        """Return whether the marks of a host count; its row is read once an event, since it may be large."""
        if host not in self.trusted:
            site = self.table.host(host)
            self.trusted[host] = site.marks_until <= self.now or (bool(site.suspects) and site.suspected == root.run)
        return self.trusted[host]

    # ---- samples that had changed ----------------------------------------------------------------------------------

    def suspect_marks(self, host: str, digest: bytes, root: Root) -> None:
        """Let the marks of a host not count from the next run on, until the next refresh: a URL had changed under the same mark."""
        site = self.table.host(host)
        counts = site.marks_until <= self.now
        if not counts and not site.suspects:
            return
        before = () if counts else site.suspects
        suspects = before if digest in before else (*before, digest)[:MAX_SUSPECTS]
        suspected = root.run if counts else site.suspected
        self.table.put_host(host, site.but(suspects=suspects, suspected=suspected, marks_until=self.now + root.refresh * 1000))
        self.trusted.pop(host, None)

    def judge_suspect(self, host: str, digest: bytes, *, stated: bool) -> None:
        """Judge a sample that had changed by a listing read since; `stated`: it states the change."""
        if host not in self.suspects:
            self.suspects[host] = self.table.host(host).suspects
        if digest not in self.suspects[host]:
            return
        left = tuple(each for each in self.suspects[host] if each != digest) if stated else ()
        site, honest = self.table.host(host), stated and not left
        self.table.put_host(host, site.but(suspects=left, marks_until=0 if honest else site.marks_until))
        self.suspects[host] = left
        self.trusted.pop(host, None)

    # ---- children that are not listed any more ---------------------------------------------------------------------

    def missing_children(self, event: CrawlEvent, span: Span) -> Generator[Output, None, Vanished]:
        """Request the children that an open listing has no more; return those that a complete one has no more."""
        vanished: list[tuple[bytes, UrlState]] = []
        if event.coverage not in KEEPS:
            return vanished
        listing, complete = url_digest(event.url), event.coverage == "complete"
        present = {url_digest(link.url) for link in event.links}
        before = self.table.listed.between(event.host, listing, span.low, span.high)
        self.recorded.update(before)
        for digest in before:
            if digest in present:
                continue
            known = self.table.get(event.host, digest)
            self.judge_suspect(event.host, digest, stated=True)
            if known is None or listing not in known.listed_in:
                self.table.listed.delete(event.host, digest, (listing,))
            elif complete and known.listed_in == (listing,) and known.url not in known.roots:
                if known.state != "gone":
                    vanished.append((digest, known))
                elif self.delivered(known):
                    self.table.forget(event.host, digest, known)
            else:
                yield from self._leave(event, digest, known, listing)
        return vanished

    def _was_read(self, known: UrlState, read: int) -> bool:
        """Return whether a URL is a listing that was read not long before another one (at `read` ms).

        Otherwise listings that name each other, with other marks or children each time, would be requested in turn for ever.
        """
        return known.kind == "listing" and known.confirmed + max(RECENT, self.settings.refresh_min) > read

    def _leave(self, event: CrawlEvent, digest: bytes, known: UrlState, listing: bytes) -> Iterator[Output]:
        """Record that a listing has a URL no more, and request it unless another listing has it and states the mark that counts."""
        host, mark, left = event.host, known.mark if known.mark_of == listing else "", without_listing(known, listing)
        kept = (left.listed_in and left.mark == known.mark) or self._was_read(known, event.time)
        if kept or known.state == "gone":
            self.table.put(host, digest, left)
        elif left.state != "asked" and self.is_direct(host, digest, left):
            # Left to a tick: without its row `m|`, nothing would repeat the request if this event is delivered again.
            self.table.schedule(host, digest, left.but(state="waiting"), self.now)
        else:
            counted = mark if known.state == "ok" and not known.pending else ""
            yield from self.ask(host, digest, left.but(left_mark=counted), self.known_root(known))
        self.table.listed.delete(host, digest, (listing,))

    def _found_elsewhere(self, host: str, digest: bytes, known: UrlState, source: ListingSource) -> UrlState:
        """Drop the queued request for a URL that a listing has no more, since another one states the mark that counted."""
        marked = known.but(state="ok", mark=known.left_mark, mark_of=source.digest, left_mark="")
        due = known.confirmed + self.refresh_of(known, self.known_root(known))
        if due <= self.now:
            return known
        # The row comes first: one of the queue that is left over is deleted when it is found.
        self.table.schedule(host, digest, marked, due)
        self.table.dequeue(host, digest, known)
        return self.table.get(host, digest) or marked


def _own(known: UrlState, source: ListingSource) -> str:
    """Return the mark that this listing stated of a URL before; "": none."""
    return known.mark if known.mark_of == source.digest else ""


def _counts(known: UrlState, source: ListingSource) -> bool:
    """Return whether the marks of a listing count for a URL: no other listing that still has it states marks."""
    return not known.mark or known.mark_of == source.digest or (source.keeps and known.mark_of not in known.listed_in)
