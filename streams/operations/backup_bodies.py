"""The bodies of a backup: which ones the records of a store name, and their copies.

Laws:
- A body is copied and verified, never linked: a hard link would share every damage of the original, and a reflink that of the disk.
- What the target has already, by the same digest and size, is not copied again. Object storage says itself what it has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import msgspec

from schemas.codec import DecodeError, decode
from schemas.ports import Logged
from schemas.records import FetchedObject, Rejected
from streams.store import FolderBlobs, Store
from streams.store.blobs import DIGEST, BodyStore
from streams.store.bodies import CACHE, open_bodies
from streams.store.object_storage import BlobSettings
from streams.topology.flow import OBJECTS, REJECTED

READ = 200
"""Records that are read at a time; each may hold a body of 64 kB."""
FLUSH_BODIES, FLUSH_BYTES = 64, 64 << 20
"""Bodies, and their bytes, of one flush."""

IN_FOLDER = BlobSettings()
"""Settings of bodies in the folder `blobs` of the data folder."""


class NamedBodies(NamedTuple):
    """Digests of the bodies that records name: those of fetched objects, and those that only dead letters name."""

    objects: set[str]
    rejected: set[str]


def named_bodies(store: Store) -> NamedBodies:
    """Return the bodies that the records of a store name. Reads two topics."""
    objects = {_body(one.value) for one in _records(store, OBJECTS.name)}
    rejected = set()
    for one in _records(store, REJECTED.name):
        letter = decode(one.value or b"")
        if isinstance(letter, Rejected) and letter.topic == OBJECTS.name:
            rejected.add(_body(letter.value))
    return NamedBodies(objects - {""}, rejected - objects - {""})


def _body(value: bytes | None) -> str:
    """Return the digest of the body that an encoded object names; "" if it names none, or is not decodable."""
    try:
        record = decode(value or b"")
    except DecodeError:
        return ""  # a dead letter: bytes from outside
    return record.blob if isinstance(record, FetchedObject) and DIGEST.fullmatch(record.blob) else ""


def _records(store: Store, topic: str) -> Iterator[Logged]:
    for partition in range(store.topics().get(topic, 0)):
        start = 0
        while batch := store.read(topic, partition, start, READ):
            yield from batch
            start = batch[-1].offset + 1


@contextmanager
def opened_apart(data: Path, work: Path, settings: BlobSettings) -> Iterator[BodyStore]:
    """Open the bodies of a data folder; the files of object storage on their way are in the folder `work` meanwhile.

    Raises StoreError, OSError.
    """
    # No cache: each body is read or written once, and the one in the data folder is for those of the runner.
    apart = msgspec.structs.replace(settings, cache=0)
    store = open_bodies(work if settings.url else data, apart, patience=settings.timeout)
    try:
        yield store
    finally:
        store.close()
        shutil.rmtree(work / CACHE, ignore_errors=True)


class CopiedBodies(NamedTuple):
    """Bodies after copying: the sizes of all that are there, number of the copied ones, digests of the lost."""

    sizes: Mapping[str, int]
    copied: int
    lost: set[str]


class BodySource(Protocol):
    """What bodies are read from."""

    def open(self, digest: str) -> BinaryIO:
        """Open a body. Raises FileNotFoundError, StoreError, OSError."""
        ...


def copy_bodies(source: BodySource, target: BodyStore, wanted: Iterable[str]) -> CopiedBodies:
    """Copy bodies durably, except those that the target has. Each is verified; a damaged or missing one is lost.

    Raises DiskFull, OSError, StoreError.
    """
    sizes: dict[str, int] = {}
    lost: set[str] = set()
    copied = unflushed = waiting = 0
    for digest in sorted(wanted):
        size = _size(source, digest)
        if (there := _size(target, digest)) is not None and size in (there, None):
            sizes[digest] = there
            continue
        written = _copy_body(source, target, digest)
        if written is None:
            lost.add(digest)
            continue
        sizes[digest] = written
        copied, waiting, unflushed = copied + 1, waiting + 1, unflushed + written
        if waiting >= FLUSH_BODIES or unflushed >= FLUSH_BYTES:
            target.sync()
            waiting = unflushed = 0
    target.sync()
    return CopiedBodies(sizes, copied, lost)


def _copy_body(source: BodySource, target: BodyStore, digest: str) -> int | None:
    """Return the size of a copied body; None if it is missing or damaged."""
    try:
        with source.open(digest) as body:
            written, _, size = target.write(body)
    except FileNotFoundError:
        return None
    # A damaged body lies in the target by the digest of what it has become; nothing names that, so it is removed later.
    return size if written == digest else None


def _size(store: BodySource, digest: str) -> int | None:
    """Return the size of a body in a folder; None if it is not there, or in object storage."""
    if not isinstance(store, FolderBlobs):
        return None
    path = store.path(digest)
    try:
        return path.lstat().st_size if path.is_file() else None
    except OSError:
        return None
