"""Event handler for grants: URLs that waited for credit are admitted or refused. The laws are those of `budget.py`."""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier.budget import ROOM
from processors.frontier.requests import Output, is_described_by_listing
from processors.frontier.run_start import RunHandlers
from processors.frontier.state import Budget
from schemas.records import CrawlEvent, Root


class GrantHandlers(RunHandlers):
    """Handler of `granted`."""

    def granted(self, event: CrawlEvent) -> Iterator[Output]:
        """Admit the URLs that wait for this answer as far as there are credits, and refuse the rest."""
        if event.root is None or self.table.ended(event.root):
            return
        root = self.root_of(event)
        budget = self.budgets.get(root.url)
        if budget is None:
            return
        if budget.pending and event.version == budget.claim and event.reason != ROOM:
            budget = budget.but(granted=event.credits, pending=False, settled=budget.until, settled_at=self.origin)
            self.budgets.put(root.url, budget)
            yield from self._settle(root, budget)
        elif self.origin <= budget.settled_at:
            yield from self._settle(root, budget)
        if event.reason == ROOM:
            yield from self._reopen(root)

    def _settle(self, root: Root, budget: Budget) -> Iterator[Output]:
        """Decide on the URLs that a grant settles, those of low depth first."""
        self.settling = True
        found = [each for each in self.budgets.waiting(root.url) if each[2].offset <= min(budget.settled, self.origin)]
        hosts: dict[str, None] = {}
        for _, host, each in sorted(found, key=lambda one: (one[2].depth, one[2].offset)):
            yield from self.found(
                host,
                each.link,
                each.depth,
                root,
                each.parent,
                listed=each.listed,
                moves=each.moves,
                trail=each.trail,
                source=each.source,
                exempt=each.exempt,
            )
            hosts[host] = None
        self.settling = False
        for host in hosts:
            yield from self.pump(host)
        self.short[root.url] = root

    def _reopen(self, root: Root) -> Iterator[Output]:
        """Request pages and listings in full again, so that URLs refused before are found again."""
        if not self.table.limited(root.url) and self.budgets.reopened_at(root.url) != self.origin:
            return
        self.budgets.reopened_at(root.url, self.origin)
        self.table.limited(root.url, on=False)
        hosts: dict[str, None] = {}
        for host, digest, known in self.table.urls_of_root(root.url):
            if known.state == "ok" and not is_described_by_listing(known):
                yield from self.ask(host, digest, known.but(whole=True), root)
            elif known.state == "asked" and known.origin == self.origin:
                yield from self.repeat(host, digest, known)
            elif known.state in ("queued", "asked", "waiting"):
                self.table.put(host, digest, known.but(whole=True))
            hosts[host] = None
        for host in hosts:
            yield from self.pump(host)
