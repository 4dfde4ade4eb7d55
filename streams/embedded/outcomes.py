"""The outcome of a root: gathered, or the reason why it could not be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from processors.frontier.rows import Table
from processors.frontier.state import UrlState
from processors.identity import frontier_key, url_digest
from schemas.codec import decode
from schemas.records import MAX_MOVES, MOVED, CrawlEvent, Rejected, Root
from streams.store import Store
from streams.store.murmur2 import partition as partition_of


def known(store: Store, url: str) -> UrlState | None:
    """Return the frontier's state of a URL."""
    host = frontier_key(url)
    rows = store.rows("frontier", partition_of(host.encode(), store.topics()["crawl"]))
    return Table(rows).get(host, url_digest(url)) if rows is not None else None


def failures(store: Store, roots: Sequence[Root]) -> list[tuple[str, str]]:
    """Return the roots that were not fetched, as (URL, reason)."""
    found = ((root.url, _failure(store, root.url)) for root in roots)
    return [(url, reason) for url, reason in found if reason]


def _failure(store: Store, url: str) -> str:
    for _ in range(MAX_MOVES + 1):
        row = known(store, url)
        if row is not None and row.state == "ok":
            return ""
        event = _last(store, url)
        if row is None or event is None:
            return event.reason if event else "not fetched"
        target = _target(store, url, event) if event.reason == MOVED else ""
        if not target:
            return event.reason or row.state
        url = target
    return "moved too often"


def _last(store: Store, url: str) -> CrawlEvent | Rejected | None:
    """Return the last event that states why a URL was not fetched."""
    told = (decode(logged.value or b"") for topic in ("crawl", "rejected") for logged in store.find(topic, url.encode()))
    found = (r for r in told if isinstance(r, CrawlEvent | Rejected) and _concerns(r, url))
    return max(found, key=lambda record: record.time, default=None)


def _concerns(event: CrawlEvent | Rejected, url: str) -> bool:
    if isinstance(event, Rejected):
        return event.url == url and event.stage == "fetch"
    refused = event.kind == "refused" and any(link.url == url for link in event.links)
    return refused or (event.url == url and event.kind in ("failed", "gone", "refused") and not event.links)


def _target(store: Store, url: str, event: CrawlEvent | Rejected) -> str:
    """Return the URL that a URL has moved to."""
    for logged in store.find("crawl", url.encode()):
        found = cast("CrawlEvent", decode(logged.value or b""))
        if found.kind == "discovered" and found.url == url and found.version == event.version and found.links:
            return found.links[0].url
    return ""
