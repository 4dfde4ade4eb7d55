"""Event handler for claims, at the home partition of a root. The laws are those of `budget.py`."""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier.budget import FULL, ROOM, BudgetHandlers
from processors.frontier.requests import Output
from processors.frontier.state import Budget, Share
from processors.identity import frontier_key
from schemas.records import CrawlEvent, Root


class HomeHandlers(BudgetHandlers):
    """Handler of `claimed`."""

    def claimed(self, event: CrawlEvent) -> Iterator[Output]:
        """Answer the claim or the report of a partition, and those that its report makes answerable."""
        if event.root is None or self.table.ended(event.root):
            return
        known, root = self.table.root(event.root.url), self.newest(event)
        if not root.urls:
            if event.asker:
                yield self._grant(root, Share(event.version, event.asker, event.used, event.credits, event.credits), "")
            return
        budget = self.budgets.get(root.url)
        if budget is None:
            # A claim of the next run overtook that run's start here: its number of partitions is still unknown.
            self.budgets.put(root.url, Budget(home=True, awaited=0 if known is None or known.run >= event.root.run else -1))
        elif not budget.home:
            # Home has claimed, of itself, for a folder or host of a root whose run began before limits had budgets.
            self.budgets.put(root.url, budget.but(home=True))
        before = self.budgets.shares(root.url).get(event.partition)
        if before is not None and event.version < before.claim:
            return
        if before is None or event.version > before.claim:
            waits = bool(event.asker) and (bool(event.reason) or (before is not None and before.waits))
            share = Share(event.version, event.asker, event.used, event.credits, event.used, waits=waits)
            self.budgets.put_share(root.url, event.partition, share)
        elif before.answered_at not in (-1, self.origin) and before.asker:
            yield self._grant(root, before, FULL if before.granted < before.credits else "")
        yield from self.answer_claims(root)

    def answer_claims(self, root: Root) -> Iterator[Output]:
        """Answer the open claims of a root, then notify the partitions that wait for room; do again what this event did before."""
        budget, shares = self.budgets.get(root.url), self.budgets.shares(root.url)
        if budget is None or not budget.home or budget.awaited < 0:
            return
        if budget.awaited:
            if len(shares.keys() - {self.partition}) < budget.awaited - 1:
                return
            self.budgets.put(root.url, budget.but(awaited=0))
        self.forget_shares(root)
        for number, share in shares.items():
            if share.answered_at < 0:
                shares[number] = self._answered_share(root, number, share)
            if shares[number].answered_at == self.origin and share.asker and share.claim:
                yield self._grant(root, shares[number], FULL if shares[number].granted < share.credits else "")
        for number, share in shares.items():
            if share.waits and self.free(root) > 0:
                self.budgets.put_share(root.url, number, share.but(waits=False, noticed_at=self.origin))
                yield self._grant(root, share, ROOM)
            elif share.noticed_at == self.origin:
                yield self._grant(root, share, ROOM)

    def _answered_share(self, root: Root, number: int, share: Share) -> Share:
        """Grant what there is of what a partition claims, and write it. Home takes from what is left when it admits."""
        extra = min(share.credits - share.used, max(0, self.free(root))) if number != self.partition else 0
        answered: Share = share.but(granted=share.used + extra, answered_at=self.origin)
        self.budgets.put_share(root.url, number, answered)
        self.forget_shares(root)
        return answered

    def await_room(self, root: Root) -> None:
        """Have home notified of room as any other partition."""
        share = self.budgets.shares(root.url).get(self.partition) or Share(0, frontier_key(root.url), 0, 0, 0)
        self.budgets.put_share(root.url, self.partition, share.but(waits=True))

    def _grant(self, root: Root, share: Share, reason: str) -> CrawlEvent:
        return CrawlEvent(
            kind="granted",
            host=share.asker,
            time=self.now,
            version=share.claim,
            root=root,
            credits=share.granted,
            reason=reason,
        )
