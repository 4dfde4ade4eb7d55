"""Trims the store of bodies of workers on Kafka, and fills it from a folder.

Strategy: a trim is a sweep by age, without the bodies that records in the log still name. A copy reads every body of a folder, and
stores it as a worker does; object storage skips what it has of today or yesterday, so that a copy may be interrupted and repeated.

Laws:
- A record is never older than the body that it names, and never younger by more than two days: a writer stores a body again that is
  older (`streams.store.object_blobs`). So the records that may name a body of some age are the oldest in the log.
- Safe beside running workers: what they have just stored, or found stored, is younger than what is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from schemas.codec import DecodeError, decode
from schemas.records import FetchedObject
from streams.logs import LogAccess
from streams.operations.selection import batches
from streams.store.blobs import BodyStore, FolderBlobs, Trimmed
from streams.topology.flow import OBJECTS

SPARE = 2 * 86_400_000
"""ms by which a body outlives the retention of the records."""
BATCH = 500
COPIES = 100
"""Bodies that become durable together while a folder is copied."""


class Copied(NamedTuple):
    """The number and the bytes of the bodies that a copy stored, and the digests of those that were damaged in the folder."""

    bodies: int
    bytes: int
    damaged: tuple[str, ...]


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


def copy(folder: Path, bodies: BodyStore) -> Copied:
    """Store the bodies of a folder, which stays as it is. A damaged body is stored as what it is now, which no record names.

    Raises OSError, StoreError: repeat the copy then.
    """
    count = size = 0
    damaged = []
    source = FolderBlobs(folder)
    try:
        for number, digest in enumerate(source.digests(), start=1):
            with source.open(digest) as body:
                found, _, length = bodies.write(body)
            if number % COPIES == 0:
                bodies.sync()
            if found != digest:
                damaged.append(digest)
            else:
                count, size = count + 1, size + length
        bodies.sync()
    finally:
        source.close()
    return Copied(count, size, tuple(damaged))
