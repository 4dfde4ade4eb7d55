"""Statistics of a run, counted as its records pass: for the closing report and the progress line.

They count records that were committed in this process, and decide nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Literal

from processors.essence.collected import FOREIGN_OID
from processors.essence.selection import dropped_members
from processors.identity import split_url
from schemas.records import REFETCHED, CrawlEvent, FetchRequest, Record, Rejected, Removed, Summary
from streams.topology.flow import REGISTER

Met = Literal["added", "changed", "unchanged"]
"""What an object is whose summary the catalog accepted: new, or known with another summary or with the same one."""
DEDUP = "dedup."
"""Begins the name of the stage of a Broker that compares the contents of what it holds."""
SLOW = 10_000
"""ms: a longer pause that a host asks for between two requests is reported, since with it a site takes hours."""


@dataclass
class RunStats:
    """Counters of one run; bytes are of bodies fetched and of encoded summaries."""

    fetched: int = 0
    listings: int = 0
    summaries: int = 0
    members: int = 0
    """Summaries of members of objects, among all summaries."""
    added: int = 0
    changed: int = 0
    removed: int = 0
    removed_summaries: int = 0
    unchanged: int = 0
    copies: int = 0
    dead: int = 0
    """Links on the web to pages that answer 404 or 410."""
    refused: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    unselected: Counter[str] = field(default_factory=Counter)
    """Members of archives that have no summary because of a selection rule, by rule."""
    brokers: Counter[str] = field(default_factory=Counter)
    """Summaries that are new in a Broker, have another content there, or are removed from it; confirmations are no changes."""
    bytes_in: int = 0
    bytes_summaries: int = 0
    answered: int = 0
    slow: dict[str, int] = field(default_factory=dict)
    """Hosts that ask for a long pause between requests, with the granted part of it in ms."""

    def saw(self, stage: str, record: Record, size: int) -> None:
        """Count one record that a stage wrote; `size`: encoded bytes."""
        if isinstance(record, CrawlEvent):
            self._event(record)
        elif isinstance(record, Summary) and stage == "catalog":
            self.summaries += 1
            self.members += bool(record.path)
            self.bytes_summaries += size
            if FOREIGN_OID not in record.attributes:  # another Gatherer's summary counts what that one left out
                self.unselected.update(dropped_members(record.attributes))
        elif isinstance(record, Removed) and stage == "catalog":
            self.removed_summaries += 1
            self.removed += not split_url(record.url)[1]
        elif isinstance(record, Removed) and stage.startswith(REGISTER):
            self.brokers[stage.removeprefix(REGISTER)] += 1
        elif isinstance(record, Rejected):
            self.rejected[record.reason] += 1
        elif isinstance(record, FetchRequest) and record.pause >= SLOW:
            self.slow[record.host] = record.pause

    def add(self, other: RunStats) -> None:
        """Add the counts of another instance."""
        self.slow |= other.slow
        for each in fields(self):
            if each.name != "slow":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def _event(self, event: CrawlEvent) -> None:
        if event.kind == "refused":
            self.refused[event.reason] += max(1, len(event.links))
        elif event.kind == "fetched" and event.listing:
            self.listings += 1
        elif event.kind == "fetched":
            self.fetched += 1
            self.bytes_in += event.validators.size if event.validators else 0
        elif event.kind == "unchanged" and not event.listing:
            self.unchanged += 1
        elif event.kind == "gone" and event.reason.startswith("status "):
            self.dead += 1
        self.answered += event.kind in ("fetched", "unchanged", "gone", "failed", "refused") and event.reason not in REFETCHED

    def met(self, found: Met) -> None:
        """Count a summary of an object itself that the catalog accepted."""
        setattr(self, found, getattr(self, found) + 1)

    def taken(self, stage: str) -> None:
        """Count a holder that dedup, that stage of a Broker, had not in this version."""
        self.brokers[stage.removeprefix(DEDUP)] += 1
