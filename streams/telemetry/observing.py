"""Counts written records in the metrics, in the same way on every runner."""

from __future__ import annotations

from schemas.records import REFETCHED, CrawlEvent, Record, Rejected, Role
from streams.sandbox.values import Crashed, Flooded, Outcome, OutOfMemory, TimedOut
from streams.telemetry.metrics import Metrics, reason_class

FETCHES = frozenset({"fetched", "unchanged", "gone", "failed", "refused", "deferred"})
"""Kinds of crawl events that end a request."""
CAUSES: dict[type[object], str] = {Crashed: "crashed", TimedOut: "timed out", OutOfMemory: "out of memory", Flooded: "flooded"}


def observe(metrics: Metrics, stage: str, topic: str, record: Record | None) -> None:
    """Count a record that a stage has written; None: it was not decoded."""
    metrics.records.add(stage, topic)
    match record:
        case CrawlEvent() if record.kind in FETCHES and record.reason not in REFETCHED:
            metrics.fetches.add(record.kind, by=max(1, len(record.links)) if record.kind == "refused" else 1)
            if record.kind == "fetched" and record.validators and not record.listing:
                metrics.fetched_bytes.add(by=max(0, record.validators.size))
        case Rejected():
            metrics.rejected.add(record.stage, reason_class(record.reason))
        case Role():
            metrics.dedup.add(stage, "copy" if record.copy_of else "canonical")


def ended(metrics: Metrics, outcome: Outcome) -> None:
    """Count the child that an object has cost, if it has cost one."""
    if (cause := CAUSES.get(type(outcome))) is not None:
        metrics.pool_kills.add(cause)
