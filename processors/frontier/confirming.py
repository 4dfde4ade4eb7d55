"""Confirmations: what is unchanged goes on, once a while, for Brokers with a time-to-live of their own (law 4).

Strategy: once `FrontierSettings.confirm` has passed since the last fetch or confirmation that went on, an answer `unchanged` goes
on as an outcome without a body, under the version of the URL. The row of the URL has the time.

Laws:
- Without that setting nothing goes on, and no row is written for it.
- A listing that is due is requested unconditionally: its slices come as from any other, and confirm each child that they name with
  what was fetched (a file by size, times and inode, another one by a mark that counts). So an event has bounded work.
- A delta of another Gatherer's database confirms the rest of the part.
- A redelivered event sends its confirmation again, with its time; the row names the event.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.collector import CHANGED
from processors.frontier.requests import Output, RequestScheduler
from processors.frontier.state import UrlState
from processors.frontier.visits import needs_confirmation
from schemas.records import CrawlEvent, FetchedObject


class ConfirmHandlers(RequestScheduler):
    """Sends confirmations, and notes them in rows."""

    def passed_on(self, known: UrlState, event: CrawlEvent) -> UrlState:
        """Return the row of a URL with a confirmation noted, for an answer `fetched` or `unchanged`."""
        if self.settings.confirm is None or self._passed_by_this(known):
            return known
        if event.kind == "fetched" and event.status != CHANGED:
            row: UrlState = known.but(passed=self.now, passed_by=0)
            return row
        # The children of an unchanged listing are not confirmed with it: it is still to be requested as a whole.
        if known.listing or event.listing or not needs_confirmation(known, self.now, self.settings.confirm):
            return known
        return self._noted(known)

    def confirm_listed(self, host: str, digest: bytes, known: UrlState) -> UrlState:
        """Return the row of a URL that its listing states to be unchanged, written if a confirmation was noted."""
        if self.settings.confirm is None or self._passed_by_this(known):
            return known
        if needs_confirmation(known, self.now, self.settings.confirm):
            known = self._noted(known)
            self.table.put(host, digest, known)
        return known

    def confirmations(self, known: UrlState) -> Iterator[Output]:
        """Yield the confirmation that this event caused, if it did."""
        if self.settings.confirm is not None and self._passed_by_this(known):
            yield FetchedObject(url=known.url, version=known.version, time=known.passed, outcome="unchanged")

    def _noted(self, known: UrlState) -> UrlState:
        row: UrlState = known.but(passed=self.now, passed_by=self.origin + 1)
        return row

    def _passed_by_this(self, known: UrlState) -> bool:
        return known.passed_by != 0 and known.passed_by == self.origin + 1 and known.state != "gone"
