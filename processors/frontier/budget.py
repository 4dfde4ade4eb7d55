"""The limit of URLs of a root, which holds over all partitions.

Strategy: the limit is a budget of credits, one for each URL that a root counts. The partition of the root's own key is its home.
Home counts its own URLs against what it has granted to the others. It needs no messages for itself, so a root on one host costs
none. Any other partition keeps URLs that it has no credit for in waiting rows, and claims exactly as many credits as wait
(`claimed`, to the root's key). Home answers with the total that the partition may use (`granted`, to a key of that partition).
The partition then admits the waiting URLs, those of low depth first, and refuses the rest. One claim is in flight for a root and
partition; what is found meanwhile goes into the next one.

Laws:
- URLs counted in a partition <= credits granted to it; credits granted to all + URLs counted at home <= limit. So the overshoot is
  at most 0. Only URLs that exist already when a limit is set or lowered may exceed it, since a limit removes nothing.
- Claims and grants state totals, never differences, and a claim has a version that rises (minted by its partition), so repeated and
  late ones change nothing: home ignores a lower version and repeats its answer to an equal one; a grant counts for the latest claim
  only.
- Exactly what waits is claimed, so that no credit is idle while another partition refuses URLs. A credit that becomes free later
  (its URL is gone, or refused as one of endlessly many) goes to the next URL of that partition, or back to home with the next run.
- In each run (`seeded`) every partition reports the URLs that it counts, and its unused credits return. A partition that has
  refused URLs is notified once there is room; it then requests its pages and listings in full again.
- A root that gets a limit only now has URLs that home does not know of: home grants nothing until all partitions have reported.
- A waiting row is kept until the grant that settled it is committed: a redelivered grant repeats its requests and refusals.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.frontier.budget_rows import BudgetTable
from processors.frontier.requests import Output, RequestScheduler
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.state import Budget, Waiting
from processors.identity import frontier_key
from schemas.ports import Origin
from schemas.records import CrawlEvent, Root

FULL = "URL limit of the root"
ROOM = "the root has room again"
"""Reason of a grant that notifies a partition which has refused URLs."""


class BudgetHandlers(RequestScheduler):
    """Credits of this partition: whether there is one, and claims for more."""

    def __init__(self, table: Table, time: int, origin: Origin, settings: FrontierSettings) -> None:
        super().__init__(table, time, origin, settings)
        self.budgets = BudgetTable(table.rows)
        self.partition = origin.partition
        self.key = ""
        """Key of the event, which is of this partition; "" if it is a tick or was sent to all partitions."""
        self.settling = False
        """Whether a grant decides on waiting URLs: those without credit are refused."""
        self.short: dict[str, Root] = {}
        """Roots that this event found too few credits for, by URL."""
        self._others: dict[str, int] = {}

    def is_home(self, root: Root) -> bool:
        """Return whether this is the home partition of a root."""
        budget = self.budgets.get(root.url)
        return budget.home if budget is not None else self.key == frontier_key(root.url)

    def has_room(self, root: Root) -> bool:
        """Return whether a root may count one more URL in this partition."""
        if not root.urls:
            return True
        budget = self.budgets.get(root.url)
        if budget is not None and not budget.home:
            # Behind others that wait there is no room; nor for a redelivered event, whose URLs wait for a grant that came after it.
            last = not self.settling and (budget.pending or 0 <= self.origin <= budget.settled_at)
            return not last and self.table.counted(root.url) < budget.granted
        return self.is_home(root) and not (budget and budget.awaited) and self.free(root) > 0

    def is_full(self, root: Root) -> bool:
        """Return whether a root with a budget has no room in this partition."""
        return self.budgets.get(root.url) is not None and not self.has_room(root)

    def free(self, root: Root) -> int:
        """Return the credits that home has left."""
        if root.url not in self._others:
            shares = self.budgets.shares(root.url)
            self._others[root.url] = sum(share.granted for number, share in shares.items() if number != self.partition)
        return root.urls - self._others[root.url] - self.table.counted(root.url)

    def newest(self, event: CrawlEvent) -> Root:
        """Return the root of an event, or the one known if that is of a later run. Raises ValueError if the event has none."""
        if event.root is None:
            raise ValueError(f"{event.kind} without a root")
        known = self.table.root(event.root.url)
        return known if known is not None and known.run > event.root.run else event.root

    def forget_shares(self, root: Root) -> None:
        """Have the shares of a root read again, after a change."""
        self._others.pop(root.url, None)

    def may_claim(self, root: Root) -> bool:
        """Return whether a URL without credit waits for some, instead of being refused."""
        budget = self.budgets.get(root.url)
        return not self.settling and (not self.is_home(root) or (budget is not None and budget.awaited != 0))

    def wait_for_credit(self, host: str, root: Root, waiting: Waiting) -> None:
        """Keep a URL until its root has credits for it."""
        budget = self.budgets.get(root.url)
        self.budgets.wait(root.url, host, waiting, budget.settled if budget else -1)
        self.short[root.url] = root

    def enroll(self, event: CrawlEvent) -> None:
        """Prepare the budget of a root for a run. The root's row must not be written yet: it shows whether the root is new."""
        root = event.root
        if root is None:
            return
        budget, here = self.budgets.get(root.url), bool(event.links)
        if not root.urls:
            if budget is not None and (budget.home or not budget.pending):
                self.budgets.end(root.url)
            return
        known = self.table.root(root.url)
        if budget is None:
            # A root that is known already may have URLs that no budget covers.
            known_before = known is not None
            self.budgets.put(
                root.url,
                Budget(home=here, awaited=event.partitions if here and known_before else 0, owes=known_before and not here),
            )
        elif here and (not budget.home or budget.awaited < 0):
            self.budgets.put(root.url, budget.but(home=True, awaited=event.partitions if budget.awaited < 0 else budget.awaited))

    def claims(self) -> Iterator[Output]:
        """Yield the claims for URLs that wait since this event; before a grant that is redelivered too, that one claims."""
        for root in self.short.values():
            budget = self.budgets.get(root.url) or Budget()
            if budget.claim and budget.origin == self.origin:
                yield self._claim(root, budget, self.key)
            elif not budget.pending and self.origin >= budget.settled_at and (wanting := self._sweep(root, budget)):
                yield self._claim(root, self._renew(root, budget, wanting), self.key)

    def report(self, root: Root, *, refused: bool) -> Iterator[Output]:
        """Yield the report of a partition at the start of a run; `refused`: the root refused URLs here."""
        budget = self.budgets.get(root.url)
        if not root.urls or budget is None or budget.home or not (budget.claim or budget.owes):
            return
        asker = next((host for host, _, _ in self.table.urls_of_root(root.url)), "")
        if budget.claim == 0 or budget.origin != self.origin:
            if self.origin < budget.settled_at:
                return  # redelivered: a later claim replaced this report
            wanting = self._sweep(root, budget)
            if not wanting:
                budget = budget.but(granted=min(budget.granted, self.table.counted(root.url)))
            asker = asker or next((host for _, host, _ in self.budgets.waiting(root.url)), "")
            budget = self._renew(root, budget, wanting)
        # Without an asker there is no answer.
        yield self._claim(root, budget, asker if budget.pending or refused else "", FULL if refused else "")

    def _sweep(self, root: Root, budget: Budget) -> int:
        """Return the number of URLs that wait, and delete rows settled by a grant that is committed."""
        wanting = 0
        for key, _, waiting in self.budgets.waiting(root.url):
            if waiting.offset > budget.settled:
                wanting += 1
            elif budget.settled_at < self.committed:
                self.table.rows.delete(key)
        return wanting

    def _renew(self, root: Root, budget: Budget, wanting: int) -> Budget:
        """Write a new claim for so many URLs, and return the budget with it."""
        counted = self.table.counted(root.url)
        claimed: Budget = budget.but(
            claim=max(self.table.mint(self.now), budget.claim + 1),
            owes=False,
            pending=wanting > 0,
            until=self.origin,
            origin=self.origin,
            used=max(budget.granted, counted),
            credits=max(budget.granted, counted + wanting),
        )
        self.budgets.put(root.url, claimed)
        return claimed

    def _claim(self, root: Root, budget: Budget, asker: str, reason: str = "") -> CrawlEvent:
        return CrawlEvent(
            kind="claimed",
            host=frontier_key(root.url),
            time=self.now,
            version=budget.claim,
            root=root,
            partition=self.partition,
            asker=asker,
            used=budget.used,
            credits=budget.credits,
            reason=reason,
        )
