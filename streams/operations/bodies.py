"""Trims the store of bodies of workers on Kafka: a sweep by age, without the bodies that records in the log still name.

Laws:
- A record is never older than the body that it names, and never younger by more than two days: a writer stores a body again that is
  older (`streams.store.object_blobs`). So the records that may name a body of some age are the oldest in the log.
- Safe beside running workers: what they have just stored, or found stored, is younger than what is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.codec import DecodeError, decode
from schemas.records import FetchedObject
from streams.logs import LogAccess
from streams.operations.selection import batches
from streams.store.blobs import BodyStore, Trimmed
from streams.topology.flow import OBJECTS

SPARE = 2 * 86_400_000
"""ms by which a body outlives the retention of the records."""
BATCH = 500


def trim(log: LogAccess, bodies: BodyStore, retention_s: float, now_ms: int) -> Trimmed:
    """Delete the bodies that are older than the retention by two days and that no record names. Raises StoreError, ClusterError."""
    before = now_ms - int(retention_s * 1_000)
    return bodies.trim(before - SPARE, frozenset(_named(log, before)))


def _named(log: LogAccess, before_ms: int) -> Iterator[str]:
    """Yield the digests of the bodies that records name which were written before a time."""
    starts, ends = log.starts(OBJECTS.name), log.since(OBJECTS.name, before_ms)
    for partition, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for batch, _ in batches(log, OBJECTS.name, partition, start, end, BATCH):
            yield from filter(None, (_digest(logged.value) for logged in batch))


def _digest(value: bytes | None) -> str:
    """Return the digest of the body that a record names; empty: none, or it cannot be read."""
    try:
        record = decode(value or b"")
    except DecodeError:
        return ""
    return record.blob if isinstance(record, FetchedObject) else ""
