"""Counts the words of a Broker's archive in one pass, in bounded memory.

Strategy: each partition is read from its end to its beginning, so that the first record of an OID is the newest one, and older
ones, which compaction has not removed yet, are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from processors.broker.definition import Broker
from processors.query.forms import Analyzer
from processors.query.routing.statistics import Statistics, WordCounts
from schemas.codec import decode
from schemas.ports import Log
from schemas.records import Summary
from streams.operations.latest_versions import LatestVersions
from streams.topology.flow import archive

CHUNK = 500
"""Number of offsets that are read at once."""


class Counted(NamedTuple):
    """Statistics of a Broker, and the end of each partition of its archive that they cover."""

    ends: tuple[int, ...]
    statistics: Statistics


def count_words(log: Log, broker: Broker) -> Counted:
    """Return the statistics of a Broker. Raises KeyError if it has no archive yet."""
    topic = archive(broker.name).name
    ends = tuple(log.ends(topic))
    counts = WordCounts(Analyzer(broker.languages))
    for partition, end in enumerate(ends):
        for summary in _newest(log, topic, partition, end):
            counts.add(summary)
    return Counted(ends, counts.statistics())


def _newest(log: Log, topic: str, partition: int, end: int) -> Iterator[Summary]:
    """Yield the newest summary of each OID that was not removed, newest first."""
    with LatestVersions() as seen:
        for start in range(max(0, end - CHUNK), -CHUNK, -CHUNK):
            chunk = log.read(topic, partition, max(0, start), CHUNK, min(end, start + CHUNK))
            fresh = seen.add(logged.key.hex() for logged in reversed(chunk))
            for logged in reversed(chunk):
                if logged.key.hex() not in fresh:
                    continue
                fresh.remove(logged.key.hex())
                record = logged.record or (None if logged.value is None else decode(logged.value, kept=False))
                if isinstance(record, Summary):
                    yield record
