"""Verification of backups, and data folders made of them.

Strategy: everything is made in `restoring/` within the data folder, which may be a volume that cannot be renamed: the store and the
bodies are copied and verified, the indexes made anew from the log. Then all is moved to its place, the store last. Where bodies are
in object storage, they are stored there, unless it has them.

Laws:
- A data folder has a store only when it is restored completely. A kill leaves `restoring/`, which the next restore removes.
- Only a folder that is empty, or has definitions of Brokers alone, is written to, and nobody else writes it meanwhile (the
  runner's lock). These definitions stay.
- Nothing of a damaged backup becomes a data folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from processors.broker.definition import Broker
from streams.brokers import ENDING
from streams.config.topology import FOLDER
from streams.faults import fault
from streams.operations import rebuild
from streams.operations.backup_bodies import IN_FOLDER, copy_bodies, opened_apart
from streams.operations.backup_format import (
    BODIES,
    IGNORED,
    MANIFEST,
    BackupError,
    Manifest,
    backups,
    damaged,
    read_manifest,
    read_sums,
    write_durably,
)
from streams.operations.selection import Selection
from streams.store import FolderBlobs, NewerError, Store, schema
from streams.store.blobs import flush
from streams.store.data_folder import gatherer, index_folder
from streams.store.locks import LockFile
from streams.store.object_storage import BlobSettings
from streams.store.snapshot import file_digest
from streams.topology.flow import archive

RESTORING, RUNNER = "restoring", "runner.lock"
MOVED = ("index", BODIES)
"""What gets its place before the store."""


class Restored(NamedTuple):
    """A data folder that was restored: the manifest of its backup, and the number of summaries in the index of each Broker."""

    manifest: Manifest
    indexed: dict[str, int]


def find_backup(path: Path) -> Path:
    """Return the backup that a path names: itself, or the latest in a folder of backups. Raises BackupError."""
    if (path / MANIFEST).is_file():
        return path
    if found := backups(path):
        return found[-1]
    raise BackupError(f"{path}: no backup of harvest here")


def verify_backup(backup: Path) -> Manifest:
    """Read a whole backup, and return its manifest. Raises BackupError with the first damage, OSError."""
    manifest = read_manifest(backup)
    store, bodies = read_sums(backup, manifest)
    _check_file(backup, backup / schema.FILE, store)
    blobs = FolderBlobs(backup.parent / BODIES)
    for digest in bodies:
        _check_file(backup, blobs.path(digest), digest)
    _check_store(backup, backup, manifest)
    return manifest


def _check_file(backup: Path, path: Path, digest: str) -> None:
    try:
        found = file_digest(path)
    except FileNotFoundError:
        raise damaged(backup, f"{path.name} is missing") from None
    if found != digest:
        raise damaged(backup, f"{path.name} is not as it was written")


def _check_store(backup: Path, folder: Path, manifest: Manifest) -> None:
    """Check that the store in a folder is the one that the manifest describes."""
    try:
        with Store(folder, readonly=True) as store:
            ends = {topic: list(store.ends(topic)) for topic in store.topics()}
            if (ends, gatherer(store)) != (manifest.ends, manifest.gatherer):
                raise damaged(backup, f"{MANIFEST} describes another store")
    except NewerError:
        newer = f"made by a newer version of harvest (store version {manifest.store}, this program knows {schema.VERSION})"
        raise BackupError(f"{backup}: {newer}") from None


def restore(backup: Path, data: Path, brokers: Callable[[Path], Iterable[Broker]], blobs: BlobSettings = IN_FOLDER) -> Restored:
    """Make a data folder of a backup, with the indexes of its Brokers.

    `brokers`: returns them by the folder of their definitions; `blobs`: where its bodies belong. A definition that the data folder
    has already takes the place of the backup's of the same name. Raises BackupError, LockedError, StoreError, MismatchError,
    DiskFull, OSError; then the data folder has nothing but definitions, or is not there.
    """
    backup = find_backup(backup)
    manifest = read_manifest(backup)
    with _empty(data) as restoring:
        _copy(backup, manifest, restoring, blobs)
        _define(manifest, data, restoring)
        fault("restore.copied")
        indexed = _index(restoring, brokers(restoring / FOLDER))
        fault("restore.indexed")
        _move(restoring, data)
    return Restored(manifest, indexed)


@contextmanager
def _empty(data: Path) -> Iterator[Path]:
    """Yield a new folder within the data folder, under the runner's lock. Raises BackupError, LockedError.

    After an error it is gone, and so is a data folder that this has made.
    """
    made = not data.exists()
    _check_unused(data)
    data.mkdir(parents=True, exist_ok=True)
    lock = LockFile(data / RUNNER)
    try:
        lock.claim()
        _check_unused(data)  # again: under the lock no runner begins
        try:
            _remove_parts(data)  # of a killed restore
            (data / RESTORING).mkdir()
            yield data / RESTORING
        except BaseException:
            _remove_parts(data)
            if made:
                (data / RUNNER).unlink(missing_ok=True)
                with suppress(OSError):  # another process has begun to write here
                    data.rmdir()
            raise
    finally:
        lock.close()


def _remove_parts(data: Path) -> None:
    """Remove what a restore has made; with a store, what has its place belongs to that."""
    for name in (RESTORING,) if (data / schema.FILE).exists() else (*MOVED, RESTORING):
        shutil.rmtree(data / name, ignore_errors=True)


def _check_unused(data: Path) -> None:
    """Raise BackupError unless a folder is empty or missing, but for what a killed restore has left."""
    there = {path.name for path in data.iterdir()} - IGNORED if data.is_dir() else set()
    ours = {RESTORING, RUNNER, *MOVED} if RESTORING in there else {RUNNER}
    if there - ours - {FOLDER} or (data.exists() and not data.is_dir()):
        raise BackupError(f"{data}: not an empty folder; a backup is restored into a new one (--data DIR)")


def _copy(backup: Path, manifest: Manifest, restoring: Path, blobs: BlobSettings) -> None:
    """Copy store and bodies, verified and durable."""
    store, bodies = read_sums(backup, manifest)
    try:
        shutil.copyfile(backup / schema.FILE, restoring / schema.FILE)
    except FileNotFoundError:
        raise damaged(backup, f"{schema.FILE} is missing") from None
    _check_file(backup, restoring / schema.FILE, store)
    flush(restoring / schema.FILE)
    _check_store(backup, restoring, manifest)
    with opened_apart(restoring, restoring, blobs) as target:
        target.check(write=True)
        copied = copy_bodies(FolderBlobs(backup.parent / BODIES), target, bodies)
    if copied.lost:
        raise damaged(backup, f"the body {min(copied.lost)} is missing, or not as it was written")


def _define(manifest: Manifest, data: Path, restoring: Path) -> None:
    """Write the definitions of Brokers: those of the backup, but for the ones that the data folder has. Raises BackupError."""
    folder = restoring / FOLDER
    folder.mkdir()
    for name, text in manifest.definitions.items():
        if Path(name).name != name or not name.endswith(ENDING):
            raise damaged(restoring, f"{MANIFEST} has a definition with the name {name!r:.80}")
        write_durably(folder / name, text.encode())
    for path in (data / FOLDER).glob(f"*{ENDING}"):
        if path.is_file():
            shutil.copyfile(path, folder / path.name)


def _index(restoring: Path, brokers: Iterable[Broker]) -> dict[str, int]:
    """Make the index of each Broker that has summaries; return their numbers."""
    indexed: dict[str, int] = {}
    with Store(restoring, readonly=True) as store:
        for broker in brokers:
            topic = archive(broker.name).name
            if topic in store.topics() and any(store.ends(topic)):
                path = index_folder(restoring, broker.name)
                path.parent.mkdir(exist_ok=True)
                indexed[broker.name] = rebuild.in_folder(store, Selection(topic), path, languages=broker.languages).held
    return indexed


def _move(restoring: Path, data: Path) -> None:
    """Move what was made to its place: the store last, since a folder without one has no data of Harvest."""
    flush(restoring)
    if (data / schema.FILE).exists():
        raise BackupError(f"{data}: another command has written here meanwhile")
    for path in (restoring / name for name in MOVED):
        if path.exists():
            path.rename(data / path.name)
            fault("restore.moved")
    _move_definitions(restoring / FOLDER, data / FOLDER)
    flush(data)
    (restoring / schema.FILE).rename(data / schema.FILE)
    restoring.rmdir()
    flush(data)
    fault("restore.done")


def _move_definitions(made: Path, target: Path) -> None:
    """Move the definitions that the data folder has not. A kill leaves some of them, which the next restore keeps."""
    for path in list(made.iterdir()):
        target.mkdir(exist_ok=True)
        if (target / path.name).exists():
            path.unlink()
        else:
            path.rename(target / path.name)
    made.rmdir()
