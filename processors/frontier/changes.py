"""Event handler for changes on this machine that a watcher reports, and for changes while a request is in flight.

Strategy: `changed` names objects of one folder by their URLs. What is known is requested alone, whatever its state; what is not
known is left to the listing of its folder, which the watcher names too when entries come or go. So a change costs a request and
never a run, and admission, selection and removal are those of any listing.

Laws:
- What changes while a request is in flight may have been read before the change: it is requested once more after the answer. The
  same holds for what is in flight when another run of its root begins.
- A child that its listing states to have changed after its request was made counts as such.
- A child that a request found missing, and a later listing of its folder has, is requested.
- What only paused roots ask for is not requested.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier.requests import Output, RequestScheduler
from processors.frontier.state import UrlState
from processors.identity import url_digest
from processors.schemes import scheme_of
from schemas.records import CrawlEvent, Link

COARSE = 50
"""ms by which the times of a file system may lag behind the clock: they are those of the last tick of the kernel."""


class ChangeHandlers(RequestScheduler):
    """Handler of `changed`."""

    def changed(self, event: CrawlEvent) -> Iterator[Output]:
        """Request the known ones of some objects of a folder."""
        paused = self.table.paused().union(self.settings.paused)
        for link in event.links:
            digest = url_digest(link.url)
            known = self.table.get(event.host, digest)
            if known is not None and not (known.roots and paused.issuperset(known.roots)):
                yield from self.ask_changed(event.host, digest, known)

    def ask_changed(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """Request a URL that has changed; once more, if it is in flight. What is gone is left to its listing, but for roots."""
        if known.state == "asked" and known.origin != self.origin:
            self.table.put(host, digest, known.but(again=True))
        elif known.state != "gone":
            yield from self.ask(host, digest, known.but(tries=0), self.known_root(known))
        elif not known.depth and known.origin != self.origin:
            yield from self.revive(host, digest, known, self.known_root(known))

    def note_later_change(self, host: str, digest: bytes, known: UrlState, link: Link) -> UrlState:
        """Return the row of a child in flight; it is requested again if it changed after the request was made."""
        if known.state != "asked" or known.again or link.ctime // 1_000_000 + COARSE < known.version:
            return known
        later: UrlState = known.but(again=True)
        self.table.put(host, digest, later)
        return later


def has_returned(known: UrlState, *, listed: bool) -> bool:
    """Return whether a listing of this machine has a child again that a request found missing."""
    return listed and known.missing > 0 and known.state == "failed" and not scheme_of(known.url).paced
