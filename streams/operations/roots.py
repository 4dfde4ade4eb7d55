"""Roots as events: what starts a run, what ends a root, and what pauses it.

A run is a `seeded` event in every partition of `crawl`, so that each asks again for all that the root asks for there; in the
partition of the root's own host it names the root too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from processors.identity import frontier_key
from processors.schemes import is_listing, scheme_of
from schemas.codec import DecodeError, decode
from schemas.ports import Log
from schemas.records import CrawlEvent, CrawlKind, Link, Record, Root
from streams.store.murmur2 import partition as partition_of

ORDERS = ("seeded", "unseeded", "paused", "resumed")
READ = 1_000


def seeded(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """The events that start a run of a root: (partition, record)."""
    host = frontier_key(root.url)
    kind = "folder" if is_listing(root.url) else "file" if scheme_of(root.url).realm == "machine" else "page"
    owner = partition_of(host.encode(), partitions)
    link = Link(url=root.url, kind=kind)  # type: ignore[arg-type]
    return [
        (p, CrawlEvent(kind="seeded", host=host, time=now, url=root.url, root=root, links=(link,) if p == owner else ()))
        for p in range(partitions)
    ]


def unseeded(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """The events that end a root: (partition, record)."""
    return _everywhere("unseeded", root, partitions, now)


def paused(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """The events that pause a root: (partition, record)."""
    return _everywhere("paused", root, partitions, now)


def resumed(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """The events that let a paused root go on: (partition, record)."""
    return _everywhere("resumed", root, partitions, now)


def _everywhere(kind: CrawlKind, root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    host = frontier_key(root.url)
    return [(p, CrawlEvent(kind=kind, host=host, time=now, url=root.url, root=root)) for p in range(partitions)]


def orders(log: Log, offset: int) -> Iterator[CrawlEvent]:
    """Events like these, from an offset on. Every partition has each; the first is read. What is no record is passed over."""
    while batch := log.read("crawl", 0, offset, READ):
        for logged in batch:
            try:
                event = decode(logged.value or b"")
            except DecodeError:
                continue
            if isinstance(event, CrawlEvent) and event.kind in ORDERS:
                yield event
        offset = batch[-1].offset + 1


def standing(known: Iterable[Root], later: Iterable[CrawlEvent]) -> list[Root]:
    """Roots, in order of URL, once the events about them are followed that came later."""
    roots = {root.url: root for root in known}
    for event in later:
        if event.kind == "unseeded":
            roots.pop(event.url, None)
        elif event.kind == "seeded" and event.root is not None:
            roots[event.url] = event.root
    return [roots[url] for url in sorted(roots)]
