"""Removals in doubt: a vanished tree is most likely an unmounted disk or a broken server, not a mass deletion.

Strategy: only the frontier decides that a missing object is a removal. What vanishes in a suspicious way is held: its row stays, no
removal is sent, and the root is reported until the doubt is settled.

Laws:
- A child of a listing is removed by its listing alone. If a request finds it missing, its row waits for the listing: the folder
  above it may be missing too.
- Held are: a root that was fetched before and is missing or unreadable; the children of an empty root, of an empty folder that had
  many objects, and of a folder that is now another one or on another device; a part of another Gatherer's database, which is one
  URL with many summaries; and whatever would make a root lose more than a share of its objects in one run, and in one day of it.
- What is held stays so, whatever else changes in its folder. A doubt is settled by the return of the object, by a run that accepts
  removals (`Root.accept`), or by the time-to-live, counted from when the object was first found missing.
- What is another kind of object now (a file instead of a folder) is no doubt: its place can be read.
- No partition knows all objects of a root. Folders are spread over partitions by digest, so what a partition has, times their
  number, is its estimate of the root, and of what is below a folder; the pages of a server are all in one partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from processors.collector import is_part
from processors.frontier.confirming import ConfirmHandlers
from processors.frontier.requests import Output
from processors.frontier.state import Losses, UrlState
from processors.schemes import scheme_of
from schemas.records import DOUBT, REPLACED, CrawlEvent, FetchedObject, Link, Rejected, Root

ALL = 1 << 40
"""Losses of a root that is missing itself: more than any share."""
WINDOW = 86_400_000
"""ms after the first loss of a root in which its losses are added up: a service has one run for as long as it lasts."""
Vanished = Sequence[tuple[bytes, UrlState]]
"""Digest and row of each child that a listing no longer has."""


class DoubtHandlers(ConfirmHandlers):
    """Decides whether what is missing is removed or held."""

    def accepts(self, root: Root) -> bool:
        """Return whether removals of a root are not doubted now."""
        return not self.settings.doubt or self.now <= root.accept

    def doubt_listing(self, event: CrawlEvent, root: Root | None, vanished: Vanished) -> str:
        """Return why the children that vanished from a listing are held, "" if they are removed. Counts the losses.

        `root` None: the folder itself was removed, and all below it.
        """
        site = self.table.host(event.host)
        place, before = (event.device, event.inode), (site.device, site.inode)
        moved = before != place and 0 not in before and 0 not in place
        reason = ""
        if vanished and root is not None and not self.accepts(root):
            lost = self._count(event.host, vanished)
            if moved:
                reason = "its folder is another one than before"
            elif not event.links and event.span is not None and event.span.is_whole and self._had_much(event.url, root, lost):
                reason = "its folder is empty"
            elif self._loses_too_much(root, lost):
                reason = "more than its share of the root is missing"
        if place != before and not reason and 0 not in place and event.span is not None and event.span.is_last:
            self.table.put_host(event.host, site.but(device=event.device, inode=event.inode))
        return reason

    def _had_much(self, listing: str, root: Root, lost: int) -> bool:
        return listing == root.url or lost >= self.settings.doubt_least

    def _count(self, host: str, vanished: Vanished) -> int:
        """Return the estimated number of URLs that are removed with some children of a folder, or of another listing."""
        below = (self.table.count_below(known.url) for _, known in vanished if known.kind == "folder")
        listed = self._count_listed(host, [digest for digest, known in vanished if known.kind == "listing"])
        return len(vanished) + sum(below) * self.settings.partitions + listed

    def _count_listed(self, host: str, listings: Sequence[bytes]) -> int:
        """Return the number of URLs of a host that some listings have, and listings that are among these, at any depth."""
        found, waiting, seen = 0, [*listings], set(listings)
        while waiting:
            inner = self.table.listed.between(host, waiting.pop(), b"", b"\xff" * 16)
            found += len(inner)
            kinds = ((digest, self.table.get(host, digest)) for digest in inner if digest not in seen)
            further = [digest for digest, known in kinds if known is not None and known.kind == "listing"]
            waiting += further
            seen.update(further)
        return found

    def _loses_too_much(self, root: Root, lost: int) -> bool:
        """Return whether a root would lose more than its share in this run; count the losses if not."""
        losses = self.table.losses(root.url)
        passed = losses.lost < ALL and losses.since + WINDOW < self.now
        if losses.run != root.run or passed:
            spread = 1 if scheme_of(root.url).paced else self.settings.partitions
            losses = Losses(run=root.run, base=self.table.counted(root.url) * spread, since=self.now)
        total = losses.lost + lost
        if losses.base >= self.settings.doubt_least and total > losses.base * self.settings.doubt_share:
            return True
        self.table.put_losses(root.url, losses.but(lost=total))
        return False

    def hold(self, event: CrawlEvent, digest: bytes, known: UrlState, reason: str) -> Iterator[Output]:
        """Keep a child that vanished from the listing of `event`; a `reason`, if there is a new one, is an event of its own."""
        held = self._missing_now(known).but(held=True)
        if reason and not self.lapsed(held):
            self.refused.setdefault((event.host, f"{DOUBT}: {reason}", event.url), []).append(Link(url=known.url, kind=known.kind))
        yield from self.keep_or_expire(event.host, digest, held)

    def _missing_now(self, known: UrlState) -> UrlState:
        """Return a row with the time since when its URL is missing, from which its time-to-live counts."""
        missing: UrlState = known.but(missing=known.missing or self.now)
        return missing

    def report_doubt(self, url: str, version: int, reason: str) -> Rejected:
        """Return the dead letter that explains a doubt."""
        return Rejected(
            stage="fetch", reason=f"{DOUBT}: {reason}", time=self.now, url=url, version=version or self.table.mint(self.now)
        )

    def missing(self, event: CrawlEvent, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Handle a URL whose request found nothing: remove it, hold it, or leave it to its listing."""
        root = self.known_root(known)
        if known.depth and not known.lasts and not self.accepts(root):
            yield from self.keep_or_expire(event.host, digest, self._missing_now(known).but(state="failed"))
        elif known.confirmed and event.reason not in REPLACED and not self.accepts(root) and self._is_doubted(known, root):
            yield from self._hold_page(event, digest, known)
        else:
            yield from self._remove(event, digest, known)

    def _is_doubted(self, known: UrlState, root: Root) -> bool:
        """Return whether a missing root, or a page of a root, is held; a missing root makes the run doubt its pages too."""
        if known.depth:
            return is_part(root.url, known.url) or self._loses_too_much(root, 1)
        self.table.put_losses(root.url, Losses(run=root.run, base=self.settings.doubt_least, lost=ALL))
        return True

    def _hold_page(self, event: CrawlEvent, digest: bytes, known: UrlState) -> Iterator[Output]:
        held = self._missing_now(known).but(state="failed", held=True)
        if not known.depth and not self.lapsed(held):
            yield self.report_doubt(known.url, event.version, event.reason)
        yield from self.keep_or_expire(event.host, digest, held)

    def doubt_unreadable(self, known: UrlState) -> UrlState:
        """Return the row of a URL that could not be fetched: a root of files that was readable before is in doubt."""
        if known.depth or not known.confirmed or not scheme_of(known.url).listings or self.accepts(self.known_root(known)):
            return known
        doubted: UrlState = self._missing_now(known).but(held=True)
        return doubted

    def _remove(self, event: CrawlEvent, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Remove a URL that is missing. Its row is only marked, and deleted once no redelivery can concern it.

        Roots and pages are requested again: a disk may be mounted, a server repaired, and pages that link there have not changed.
        """
        removal = FetchedObject(
            url=known.url,
            version=event.version,
            time=self.now,
            outcome="gone",
            reason=event.reason,
            as_listing=known.kind == "listing",
        )
        self.table.tell(self.origin, event.host, digest, removal)
        self.table.uncount(known)
        due = self.now + self.known_root(known).refresh * 1000 if known.lasts else 0
        self.table.schedule(event.host, digest, self.gone_row(known), due)
        yield removal

    def gone_row(self, known: UrlState) -> UrlState:
        """Return the row of a URL that is gone."""
        since = known.since or self.now
        gone: UrlState = known.but(
            state="gone", origin=self.origin, validators=None, confirmed=0, moved=False, since=since, missing=0, held=False
        )
        return gone
