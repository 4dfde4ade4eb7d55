"""Dead letters that stand: the latest of each origin that no later success has ended.

Laws:
- An origin is a URL with its member path; of a record that was no record, its place in the log.
- A failed fetch ends when its URL is fetched, or known to be gone, under a higher version.
- A member's rejection stands while the catalogue holds what that attempt made of it: a partial attempt that did not come to
  the member ends nothing. Where it holds no such member (a folder's listing has no summary), the last whole attempt decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from processors import catalog
from processors.frontier_rows import Table
from processors.identity import frontier_key, url_digest
from schemas.codec import decode
from schemas.records import Rejected
from streams.store import Store
from streams.store.murmur2 import partition as partition_of

READ = 500


def standing(store: Store) -> list[Rejected]:
    """The rejections that stand, by URL and path."""
    latest: dict[tuple[str, str, str], Rejected] = {}
    for one in _all(store):
        stage = one.stage if one.stage == "fetch" else "essence"
        origin = (stage, one.url, one.path) if one.url else (one.topic, str(one.partition), str(one.offset))
        known = latest.get(origin)
        if known is None or one.version >= known.version:
            latest[origin] = one
    stand = [one for one in latest.values() if not _ended(store, one)]
    return sorted(stand, key=lambda one: (one.url, one.path, one.topic, one.partition, one.offset))


def _all(store: Store) -> Iterator[Rejected]:
    for partition in range(store.topics()["rejected"]):
        start = 0
        while batch := store.read("rejected", partition, start, READ):
            yield from (cast("Rejected", decode(logged.value)) for logged in batch if logged.value is not None)
            start = batch[-1].offset + 1


def _ended(store: Store, one: Rejected) -> bool:
    if not one.url:
        return False
    if one.stage == "fetch":
        host = frontier_key(one.url)
        rows = store.rows("frontier", partition_of(host.encode(), store.topics()["crawl"]))
        known = Table(rows).get(host, url_digest(one.url)) if rows is not None else None
        return known is None or (known.state in ("ok", "gone") and known.version > one.version)
    rows = store.rows("catalog", partition_of(one.url.encode(), store.topics()["made"]))
    if rows is None:
        return False
    return one.version < (catalog.held(rows, one.url, one.path) or catalog.completed(rows, one.url))
