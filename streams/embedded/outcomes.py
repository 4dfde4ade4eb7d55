"""The outcome of a root: gathered, or the reason why it could not be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, cast

from processors.frontier.rows import Table
from processors.frontier.state import UrlState
from processors.identity import frontier_key, url_digest
from processors.schemes import is_listing, scheme_of
from schemas.codec import decode
from schemas.records import MAX_MOVES, MOVED, CrawlEvent, Rejected, Root
from streams.clock import now_ms
from streams.embedded.held import ASKED, shown_time
from streams.store import Store
from streams.store.murmur2 import partition as partition_of

CLOSED = "outside of its hours until"
"""Begins the reason of a root whose hosts are not asked now; the time follows."""
HELD = "not asked until"
"""The same, for a host that asked for a pause."""


def known(store: Store, url: str) -> UrlState | None:
    """Return the frontier's state of a URL."""
    table, host = _table(store, url), frontier_key(url)
    return table.get(host, url_digest(url)) if table is not None else None


def _table(store: Store, url: str) -> Table | None:
    rows = store.rows("frontier", partition_of(frontier_key(url).encode(), store.topics()["crawl"]))
    return Table(rows) if rows is not None else None


def _waits(store: Store, url: str) -> str:
    """Return why a queued URL waits, if it does so for the hours of its roots or for a pause that its host asked for, else ""."""
    table = _table(store, url)
    if table is None:
        return ""
    site, now = table.host(frontier_key(url)), now_ms()
    if site.next_allowed > max(now, site.opens):
        return f"{HELD} {shown_time(site.next_allowed)}: {ASKED}"
    return f"{CLOSED} {datetime.fromtimestamp(site.opens / 1000, UTC):%H:%M} UTC (harvest run asks it then)" if site.opens else ""


def failures(store: Store, roots: Sequence[Root]) -> list[tuple[str, str]]:
    """Return the roots that were not fetched, as (URL, reason); not those whose removal was accepted, and made."""
    found = ((root, _failure(store, root.url)) for root in roots)
    return [(root.url, reason) for root, reason in found if reason and not (root.accept and _is_gone(store, root.url))]


def _is_gone(store: Store, url: str) -> bool:
    row = known(store, url)
    return row is None or row.state == "gone"


class Doubt(NamedTuple):
    """Objects of a root whose removal is in doubt: the URL of the root, their number, and the first of them."""

    root: str
    number: int
    example: str

    @property
    def line(self) -> str:
        """One line for the user: what is in doubt, and how it is settled."""
        return self.line_with("harvest gather")

    def line_with(self, command: str) -> str:
        """Return the line with the command that takes the option by which removals are accepted."""
        what = "1 object or folder is" if self.number == 1 else f"{self.number:,} objects or folders are"
        how = f"kept until back, or: {command} --accept-removals {self.root}"
        return f"{self.root}: removal in doubt: {what} missing, {self.example} for one; {how}"


def doubts(store: Store) -> list[Doubt]:
    """Return the removals in doubt, by root, with all that is below a missing folder."""
    held = {row.url: row.roots for row in _rows(store) if row.held}
    if not held:
        return []
    found: dict[str, list[str]] = {}
    for row in _rows(store):
        if row.state != "gone" and (row.url in held or any(above in held for above in _above(row.url))):
            for root in row.roots:
                found.setdefault(root, []).append(row.url)
    return [Doubt(root, len(urls), min(urls)) for root, urls in sorted(found.items())]


def _rows(store: Store) -> Iterator[UrlState]:
    for partition in range(store.topics()["crawl"]):
        rows = store.rows("frontier", partition)
        yield from (row for _, _, row in Table(rows).all()) if rows is not None else ()


def _above(url: str) -> Iterator[str]:
    """Yield the URLs of the folders above a file or folder of this machine, from the inside outwards."""
    while is_listing(url) or scheme_of(url).listings:
        above = url.rstrip("/").rpartition("/")[0] + "/"
        if len(above) >= len(url) or above.endswith("//"):
            return
        yield above
        url = above


def doubted_above(store: Store, url: str) -> str:
    """Return the URL itself, or that of a folder above it, if its removal is in doubt; "" if none is."""
    found = ((each, known(store, each)) for each in (url, *_above(url)))
    return next((each for each, row in found if row is not None and row.held), "")


def _failure(store: Store, url: str) -> str:
    for _ in range(MAX_MOVES + 1):
        row = known(store, url)
        if row is not None and row.state == "ok":
            return ""
        if row is not None and row.state == "queued" and (reason := _waits(store, url)):
            return reason
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
