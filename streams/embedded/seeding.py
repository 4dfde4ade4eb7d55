"""Roots as events: what starts a run, what ends a root, and what pauses it.

A run is a `seeded` event in every partition of `crawl`, so that each asks again for all that the root asks for there; in the
partition of the root's own host it names the root too.
"""

from __future__ import annotations

from processors.identity import frontier_key
from schemas.records import CrawlEvent, CrawlKind, Link, Record, Root
from streams.store.murmur2 import partition as partition_of


def seeded(root: Root, partitions: int, now: int) -> list[tuple[int | None, Record]]:
    """The events that start a run of a root: (partition, record)."""
    host = frontier_key(root.url)
    folder = root.url.startswith("file:") and root.url.endswith("/")
    kind = "folder" if folder else "file" if root.url.startswith("file:") else "page"
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
