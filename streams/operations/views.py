"""Definitions of a Broker's views in the log of either engine: read whole, and written to every partition."""

from __future__ import annotations

from collections.abc import Sequence

from processors.broker.views import ViewError, created, key_of, latest, normal, queries
from processors.query.terms import Views
from schemas.codec import DecodeError, decode
from schemas.ports import Log
from schemas.records import View
from streams.faults import fault
from streams.logs import LogAccess
from streams.store.database import clock_ms
from streams.topology.flow import views as topic_of

READ = 1_000


def defined(log: Log, broker: str) -> dict[str, View]:
    """Return the views of a Broker by key of their path; none if its topic is not there. Undecodable values are skipped.

    Partition 0 has each definition, as every other one has; the topic is compacted by path, so that it is small.
    """
    topic, offset, found = topic_of(broker).name, 0, []
    if topic not in log.topics():
        return {}
    while batch := log.read(topic, 0, offset, READ):
        for logged in batch:
            try:
                record = decode(logged.value or b"")
            except DecodeError:
                continue
            if isinstance(record, View):
                found.append(record)
        offset = batch[-1].offset + 1
    return latest(found)


def written_out(log: Log, broker: str) -> Views:
    """Return what `view:PATH` is written out as, by path."""
    return queries(defined(log, broker))


def add(log: LogAccess, broker: str, path: str, query: str) -> View:
    """Define a new view now, and return its definition. Raises ViewError, also for a path that is taken, and QueryError."""
    known = defined(log, broker)
    if taken := known.get(key_of(normal(path))):
        raise ViewError(f"{taken.path}: is there already, with the query {taken.query}")
    view = created(known, path, query, clock_ms())
    define(log, broker, [view])
    return view


def define(log: LogAccess, broker: str, views: Sequence[View]) -> None:
    """Append definitions to every partition, partition 0 last: a definition that can be read is everywhere. Raises KeyError."""
    topic = topic_of(broker).name
    records = [(key_of(view.path).encode(), view) for view in views]
    for partition in reversed(range(log.topics()[topic])):
        log.append(topic, records, partition)
        fault("views.defined")
