"""What the plans of roots mean for one URL: its pause, its hours, its local file, and whether a root still asks for it.

A URL may have several roots. It is requested while one of them asks for it, in the hours of any of them, with the longest of their
pauses, and from the folder of the first that maps it.

Laws:
- A root itself (depth 0) is never outside of its scope, and never rewritten.
- A URL that no root asks for any more, since a plan has changed, is not requested; it is refused until it expires. A child of a
  local folder is removed as if it were no longer listed.
- A link is rewritten before it is looked up. If the rewritten URL redirects to the original one, that URL is exempt for as long as
  it is known.
- A host that is outside of its hours is looked at again when they begin; the time is that of the events.
"""

from __future__ import annotations

import msgspec

from processors.frontier.plans.options import NO_OPTIONS, LocalFile, PlanTable
from processors.frontier.rows import Table
from processors.frontier.state import UrlState
from processors.identity import url_digest
from schemas.records import CrawlEvent, Link, Root


class PlanRules:
    """Plans of the roots of one partition, applied to its URLs at the time of one event."""

    table: Table
    plans: PlanTable
    now: int

    def pause_of(self, known: UrlState) -> int:
        """Return the longest pause in ms that the roots of a URL ask for; -1: none does."""
        return max((self.plans.of(url).pause for url in known.roots), default=-1)

    def next_open(self, known: UrlState) -> int:
        """Return the first time from now on (ms) in the hours of any root of a URL."""
        hours = [self.plans.of(url).hours for url in known.roots]
        return min((each.next_open(self.now) if each else self.now for each in hours), default=self.now)

    def local_file(self, known: UrlState) -> LocalFile | None:
        """Return the file that is read instead of asking the server of a URL, or None."""
        return next((found for url in known.roots if (found := self.plans.of(url).local(known.url))), None)

    def asks_server(self, known: UrlState) -> bool:
        """Return whether a URL that is missing in its local folder is requested from its server."""
        return any((options := self.plans.of(url)).fetches_missing and options.local(known.url) for url in known.roots)

    def outside(self, host: str, known: UrlState) -> str:
        """Return why no root with a plan asks for a known URL any more, "" if one does."""
        reason = ""
        if not known.depth or known.url in known.roots:
            return ""
        for url in known.roots:
            options, root = self.plans.of(url), self.table.root(url)
            if options is NO_OPTIONS:
                return ""
            if root is None:
                continue
            reason = options.scope.refusal(known.url, host, known.depth, root)
            if not reason and not known.exempt and options.rewriting.rewritten(known.url) != known.url:
                reason = "rewritten by the rules of the root"
            if not reason:
                return ""
        return reason

    def rewritten(self, event: CrawlEvent, link: Link, root: Root) -> tuple[Link, bool]:
        """Return a link as the rules of a root rewrite it, and whether its URL is exempt from them from now on."""
        rewriting = self.plans.of(root.url).rewriting
        if not rewriting or event.depth < 0 or link.url == root.url:
            return link, False
        url = rewriting.rewritten(link.url)
        if url == link.url:
            return link, False
        if event.moves and (url == event.url or url in event.trail):
            return link, True
        known = self.table.get(event.host, url_digest(link.url))
        return (link, True) if known is not None and known.exempt else (msgspec.structs.replace(link, url=url), False)
