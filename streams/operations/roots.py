"""Roots as events: those that start a run, end a root, pause or resume it.

A run is a `seeded` event in every partition of `crawl`, so that each partition requests again all URLs that the root has there; in
the partition of the root's own host the event also links to the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from processors.identity import frontier_key
from processors.schemes import is_listing, scheme_of
from schemas.codec import DecodeError, decode
from schemas.ports import Log
from schemas.records import CrawlEvent, CrawlKind, Link, Plan, Record, Root
from streams.store.murmur2 import partition as partition_of

ORDERS = ("seeded", "unseeded", "paused", "resumed")
READ = 1_000


def seeded(root: Root, partitions: int, now: int, plan: Plan | None = None) -> list[tuple[int | None, Record]]:
    """Return the events that start a run of a root: (partition, record). `plan`: its options; None: as they are."""
    host = frontier_key(root.url)
    kind = "folder" if is_listing(root.url) else "file" if scheme_of(root.url).realm == "machine" else "page"
    owner = partition_of(host.encode(), partitions)
    link = Link(url=root.url, kind=kind)  # type: ignore[arg-type]
    event = CrawlEvent(kind="seeded", host=host, time=now, url=root.url, root=root, partitions=partitions, plan=plan)
    return [(p, replace(event, links=(link,)) if p == owner else event) for p in range(partitions)]


def unseeded(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """Return the events that end a root: (partition, record)."""
    return _everywhere("unseeded", root, partitions, now)


def paused(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """Return the events that pause a root: (partition, record)."""
    return _everywhere("paused", root, partitions, now)


def resumed(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """Return the events that resume a paused root: (partition, record)."""
    return _everywhere("resumed", root, partitions, now)


def _everywhere(kind: CrawlKind, root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    host = frontier_key(root.url)
    return [(p, CrawlEvent(kind=kind, host=host, time=now, url=root.url, root=root)) for p in range(partitions)]


def root_events(log: Log, offset: int) -> Iterator[CrawlEvent]:
    """Yield such events from an offset on, from partition 0, since every partition has each. Undecodable values are skipped."""
    while batch := log.read("crawl", 0, offset, READ):
        for logged in batch:
            try:
                event = decode(logged.value or b"")
            except DecodeError:
                continue
            if isinstance(event, CrawlEvent) and event.kind in ORDERS:
                yield event
        offset = batch[-1].offset + 1


def apply_root_events(known: Iterable[Root], later: Iterable[CrawlEvent]) -> list[Root]:
    """Return the roots, in order of URL, after applying later events to the known ones."""
    roots = {root.url: root for root in known}
    for event in later:
        if event.kind == "unseeded":
            roots.pop(event.url, None)
        elif event.kind == "seeded" and event.root is not None:
            roots[event.url] = event.root
    return [roots[url] for url in sorted(roots)]


def apply_plan_events(known: Mapping[str, Plan], later: Iterable[CrawlEvent]) -> dict[str, Plan]:
    """Return the plans by URL of their root, after applying later events to the known ones."""
    plans = dict(known)
    for event in later:
        if event.kind == "unseeded":
            plans.pop(event.url, None)
        elif event.kind == "seeded" and event.plan is not None:
            plans[event.url] = event.plan
    return plans
