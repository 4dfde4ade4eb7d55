"""The history of one URL: every event of the log that concerned it, in order, as one sentence each.

The history of an object has its fetches, results and decisions; that of a member also the outcomes of its object. Records that
retention has trimmed are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from processors.identity import oid, split_url
from schemas.codec import DecodeError, decode
from schemas.ports import Logged
from schemas.records import (
    Annotation,
    Complete,
    Confirmed,
    CrawlEvent,
    FetchedObject,
    FetchRequest,
    File,
    Holder,
    Partial,
    Record,
    Rejected,
    Removed,
    Role,
    Summary,
    Withdrawn,
)
from streams.logs import LogAccess
from streams.operations.dead_letters import RETRIED
from streams.operations.roots import ORDERS
from streams.topology.flow import Topology


class Event(NamedTuple):
    """One event. `time`: ms since the epoch, when it was logged."""

    time: int
    topic: str
    partition: int
    offset: int
    event: str
    version: int
    reason: str


class _Wanted(NamedTuple):
    url: str
    object_url: str
    path: str
    oid: str


def history(log: LogAccess, url: str, gatherer: str, drawn: Topology) -> list[Event]:
    """Return all events that concerned a URL, member path included, in order of time and flow."""
    object_url, path = split_url(url)
    wanted = _Wanted(url, object_url, path, oid(gatherer, url))
    flow = {topic.name: number for number, topic in enumerate(drawn.topics)}
    found = [event for topic in flow if topic in log.topics() for event in _of(log, topic, wanted)]
    return list(_once(sorted(found, key=lambda e: (e.time, flow[e.topic], e.partition, e.offset))))


def _once(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events; of an order, which is written to every partition (`operations/roots.py`), only the first copy."""
    told: set[tuple[int, str]] = set()
    for event in events:
        if event.event not in ORDERS or (event.time, event.event) not in told:
            yield event
        told.add((event.time, event.event))


def format_time(time_ms: int) -> str:
    """Return a time in ms since the epoch as readable text (UTC)."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def format_event(event: Event) -> str:
    """Return an event as a line of text, its time in UTC."""
    moment = format_time(event.time)
    reason = f": {event.reason}" if event.reason else ""
    version = f" (version {event.version})" if event.version else ""
    return f"{moment}  {event.topic:<12} {event.event}{reason}{version}"


def _of(log: LogAccess, topic: str, wanted: _Wanted) -> Iterator[Event]:
    # Records that are keyed by OID contain the URL too, except the answers of dedup.
    text = wanted.oid if topic.startswith("copies.") else wanted.object_url
    for logged in log.find(topic, text.encode()):
        try:
            record = decode(logged.value or b"")
        except DecodeError:
            continue
        told = _describe_record(record, wanted)
        if told is not None:
            yield _event(logged, record, told)


def _event(logged: Logged, record: Record, told: tuple[str, str]) -> Event:
    return Event(logged.time, logged.topic, logged.partition, logged.offset, told[0], int(getattr(record, "version", 0)), told[1])


def _ended(record: Complete | Partial | Confirmed) -> tuple[str, str]:
    """Return (event, reason) for the end of an object's summaries, or for their confirmation."""
    if isinstance(record, Confirmed):
        return "confirmed", "unchanged at its source"
    if isinstance(record, Partial):
        return f"partial, {_summaries(record.count)}", record.reason
    return f"complete, {_summaries(record.count)}", "" if record.reason == "whole" else record.reason


def _describe_record(record: Record, wanted: _Wanted) -> tuple[str, str] | None:
    """Return (event, reason) for a record that concerns the URL; None for others."""
    match record:
        case CrawlEvent():
            return _crawled(record, wanted)
        case FetchRequest(url=url) if url == wanted.object_url:
            return f"{'conditional ' if record.validators else ''}request", f"asked for by the root {record.root.url}"
        case FetchedObject(url=url) if url == wanted.object_url:
            size = f", {record.size:,} bytes" if record.outcome == "fetched" else ""
            return f"{record.outcome}{size}", record.reason
        case Complete(object_url=url) | Partial(object_url=url) | Confirmed(object_url=url) if url == wanted.object_url:
            return _ended(record)
        case Withdrawn(object_url=url, path=path) if url == wanted.object_url and path == wanted.path:
            return "withdrawn", "its Gatherer states that it is gone"
        case Rejected(url=url, path=path) if url == wanted.object_url and path in (wanted.path, ""):
            return ("tried again", "") if record.reason == RETRIED else (f"rejected by {record.stage}", record.reason)
        case File(url=url) | Holder(url=url) | Annotation(url=url) | Summary(url=url) | Removed(url=url) if url == wanted.url:
            return _described(record)
        case Role(oid=key) if key == wanted.oid:
            return (f"a copy of {record.copy_of}" if record.copy_of else f"canonical, {record.count:,} copies"), ""
        case _:
            return None


def _described(record: Record) -> tuple[str, str] | None:
    match record:
        case File():
            return f"file of type {record.type}{'' if record.selected else ', not selected'}", record.reason
        case Holder():
            return f"{'joined' if record.joined else 'left'} the holders of its content", ""
        case Annotation():
            return f"annotated: {', '.join(record.attributes)}", ""
        case Removed():
            return "removed", record.reason
        case Summary():
            copy = f", a copy of {record.copy_of}" if record.copy_of else f", {record.copies_count:,} copies" * bool(record.copies)
            return f"summary of type {record.type}{copy}", ""
        case _:
            return None


def _summaries(count: int) -> str:
    return f"{count:,} {'summary' if count == 1 else 'summaries'}"


def _crawled(event: CrawlEvent, wanted: _Wanted) -> tuple[str, str] | None:
    named = any(link.url == wanted.object_url for link in event.links)
    if event.url == wanted.object_url and not (event.kind == "refused" and event.links and not named):
        if event.moves and event.links:
            return f"moved to {event.links[0].url}", event.reason
        found = f", {len(event.links):,} link{'s' * (len(event.links) != 1)}" if event.kind == "discovered" else ""
        return event.kind + found, event.reason
    if named and event.kind == "changed":
        return event.kind, "noticed while its root is watched"
    if named:
        return event.kind, event.reason or f"found in {event.url}"
    return None
