"""Registrations of servers as events of `crawl`: taken or renewed, and withdrawn (`processors/registry`)."""

from __future__ import annotations

from collections.abc import Iterable

from processors.identity import frontier_key
from processors.registry.template import Registration
from schemas.ports import Log
from schemas.records import CrawlEvent, Root


def registration_event(registration: Registration, now: int) -> CrawlEvent:
    """Return the event of a checked registration; `now`: ms since the epoch."""
    url = registration.object_url
    if not registration.ttl:
        return CrawlEvent(kind="deregistered", host=frontier_key(url), time=now, url=url)
    root = Root(url=url, run=str(now), ttl=registration.ttl, refresh=max(1, registration.ttl // 2))
    return CrawlEvent(kind="registered", host=frontier_key(url), time=now, url=url, root=root, body=registration.encoded())


def append_registrations(log: Log, registrations: Iterable[Registration], now: int) -> None:
    """Append registrations durably. Raises what the log raises."""
    events = (registration_event(each, now) for each in registrations)
    log.append("crawl", [(event.host.encode(), event) for event in events])
