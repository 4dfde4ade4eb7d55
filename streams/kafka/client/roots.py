"""Adding, dropping and pausing roots on a cluster by events, as in a data folder (`streams/embedded/runs.py`).

A cluster has no runs: a root that is added again is visited again at once. The id of a visit is the time, 13 digits in ms, so that
later ids are greater; if the clocks of two machines differ by more than the time between two visits, the later visit may be
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import msgspec

from schemas.codec import decode, encode
from schemas.ports import Logged
from schemas.records import CrawlEvent, Plan, Record, Root
from streams.clock import now_ms
from streams.logs import LogAccess
from streams.operations import roots as seeding
from streams.topology.flow import Topology

Events = Callable[[Root, int, int], Sequence[tuple[int | None, Record]]]


def ask(log: LogAccess, roots: Sequence[Root], plans: Mapping[str, Plan] = {}) -> None:
    """Request a visit of roots; `plans`: the options of those that get others, by URL. Raises ClusterError."""
    _write(log, roots, lambda root, partitions, now: seeding.seeded(root, partitions, now, plans.get(root.url)))


def drop(log: LogAccess, roots: Sequence[Root]) -> None:
    """Drop roots: URLs that no other root asks for expire. Raises ClusterError."""
    _write(log, roots, seeding.unseeded)


def pause(log: LogAccess, roots: Sequence[Root], *, on: bool) -> None:
    """Stop (`on`) or resume the scheduled refresh of roots. Raises ClusterError."""
    _write(log, roots, seeding.paused if on else seeding.resumed)


def _write(log: LogAccess, roots: Sequence[Root], events: Events) -> None:
    now, partitions = now_ms(), log.topics()["crawl"]
    named = [msgspec.structs.replace(root, run=f"{now:013d}") for root in roots]
    made = (cast("tuple[int, CrawlEvent]", pair) for root in named for pair in events(root, partitions, now))
    log.write(Logged("crawl", to, -1, now, event.host.encode(), encode(event)) for to, event in made)


def roots(log: LogAccess, drawn: Topology) -> list[Root]:
    """Return the frontier's roots, changed by orders that it has not read yet, sorted by URL; every partition has all of them."""
    known = (cast("Root", decode(value)) for value in log.rows("frontier", 0, b"g|").values())
    return seeding.apply_root_events(known, _unread(log, drawn))


def plans(log: LogAccess, drawn: Topology) -> dict[str, Plan]:
    """Return the plans of the roots by URL, with unread orders applied as in `roots`."""
    known = {key[2:].decode(): cast("Plan", decode(value)) for key, value in log.rows("frontier", 0, b"o|").items()}
    return seeding.apply_plan_events(known, _unread(log, drawn))


def paused(log: LogAccess, drawn: Topology) -> frozenset[str]:
    """Return the URLs of paused roots, with unread orders applied as in `roots`."""
    found = {key[2:].decode() for key in log.rows("frontier", 0, b"p|")}
    for event in _unread(log, drawn):
        if event.kind == "paused":
            found.add(event.url)
        elif event.kind in ("resumed", "unseeded"):
            found.discard(event.url)
    return frozenset(found)


def _unread(log: LogAccess, drawn: Topology) -> Iterator[CrawlEvent]:
    """Yield orders about roots that the frontier has not read yet."""
    of_crawl = (one for one in log.lags(drawn) if one.topic == "crawl" and one.partition == 0)
    return seeding.root_events(log, min((one.committed for one in of_crawl), default=0))
