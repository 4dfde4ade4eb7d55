"""Backups of a data folder, made while a runner writes it. `backup_format.py` has the layout.

Strategy: the store is copied into `new/`, then the bodies that its records name and the backup folder lacks. `new/` is flushed, and
gets the name of its time; only then are older backups removed, and the bodies that no backup names. The index is not copied: it is
made anew from the log. Bodies in object storage are copied too, so that a backup needs nothing but its folder.

Laws:
- A folder with the name of a time is a complete, durable backup. After a kill or on a full disk the former backups stay.
- A body that the copied records name is not trimmed while it is copied (`bodies_kept`, taken before the store is read).
- A damaged store makes no backup. A damaged or missing body is reported, and the backup is made without it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from streams.brokers import ENDING
from streams.config.topology import FOLDER
from streams.faults import fault
from streams.operations.backup_bodies import IN_FOLDER, CopiedBodies, copy_bodies, named_bodies, opened_apart
from streams.operations.backup_format import (
    BODIES,
    FORMAT,
    IGNORED,
    LOCK,
    MANIFEST,
    NAME,
    STAMP,
    SUMS,
    UNFINISHED,
    BackupError,
    Manifest,
    backups,
    read_manifest,
    read_sums,
    sums_of,
    write_durably,
)
from streams.store import FolderBlobs, Store, schema
from streams.store.blobs import flush
from streams.store.data_folder import gatherer
from streams.store.locks import LockFile, bodies_kept
from streams.store.object_storage import BlobSettings
from streams.store.snapshot import copy_database, file_digest


class Made(NamedTuple):
    """A backup that was made: its folder and manifest, the size of the store, the number of copied bodies, and the lost.

    `lost`: bodies of the log's objects that are missing or damaged. Those that only dead letters name may have been trimmed.
    """

    folder: Path
    manifest: Manifest
    store_bytes: int
    copied: int
    lost: list[str]


def make_backup(data: Path, folder: Path, *, version: str, keep: int = 1, blobs: BlobSettings = IN_FOLDER) -> Made:
    """Back up a data folder; keep that number of backups. `version`: that of the program; `blobs`: where its bodies are.

    Raises BackupError, LockedError, AbsentError, StoreError, DiskFull, OSError.
    """
    _check_target(data, folder)
    with bodies_kept(data), _locked(folder):
        made = _make(data, folder, version, blobs)
        _remove_old(folder, keep)
    return made


def _check_target(data: Path, folder: Path) -> None:
    """Refuse a folder in the data folder, and one that contains anything but backups. Raises BackupError, AbsentError."""
    Store(data, readonly=True).close()
    if folder.resolve().is_relative_to(data.resolve()):
        raise BackupError(f"{folder}: lies in the data folder, and would be lost with it")
    if folder.exists() and not folder.is_dir():
        raise BackupError(f"{folder}: not a folder")
    there = {path.name for path in folder.iterdir()} - IGNORED if folder.is_dir() else set()
    if there and LOCK not in there and not backups(folder):
        raise BackupError(f"{folder}: neither empty nor a folder of backups; name another one")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create the backup folder if necessary, and hold its lock. Raises LockedError."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError):  # the folder above may be another user's, and this one have been there before
        flush(folder.absolute().parent)
    lock = LockFile(folder / LOCK)
    try:
        lock.claim()
        yield
    finally:
        lock.close()


def _make(data: Path, folder: Path, version: str, blobs: BlobSettings) -> Made:
    new = folder / UNFINISHED
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    try:
        copy_database(data, new / schema.FILE)
        fault("backup.store")
        with Store(new, readonly=True) as store:
            name, ends, named = gatherer(store), {topic: list(store.ends(topic)) for topic in store.topics()}, named_bodies(store)
        _check_owner(folder, name)
        with opened_apart(data, new, blobs) as bodies:
            bodies.check(write=False)
            copied = copy_bodies(bodies, FolderBlobs(folder / BODIES, owner=True), named.objects | named.rejected)
        fault("backup.bodies")
        stamp = _next_stamp(folder)
        sums = sums_of(stamp, file_digest(new / schema.FILE), copied.sizes)
        manifest = msgspec.structs.replace(_manifest(stamp, version, name, ends, copied, sums), definitions=_definitions(data))
        write_durably(new / SUMS, sums)
        write_durably(new / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        flush(new)
        fault("backup.written")
        new.rename(folder / stamp)
        flush(folder)
        fault("backup.renamed")
    finally:
        shutil.rmtree(new, ignore_errors=True)
    size = (folder / stamp / schema.FILE).stat().st_size
    return Made(folder / stamp, manifest, size, copied.copied, sorted(copied.lost & named.objects))


def _manifest(stamp: str, version: str, name: str, ends: dict[str, list[int]], copied: CopiedBodies, sums: bytes) -> Manifest:
    return Manifest(
        format=FORMAT,
        harvest=version,
        store=schema.VERSION,
        made=stamp,
        gatherer=name,
        ends=ends,
        bodies=len(copied.sizes),
        body_bytes=sum(copied.sizes.values()),
        missing=sorted(copied.lost),
        sums=hashlib.sha256(sums).hexdigest(),
    )


def _definitions(data: Path) -> dict[str, str]:
    """Return the files that define Brokers in a data folder, by name; one that is no text defines none."""
    found: dict[str, str] = {}
    for path in (data / FOLDER).glob(f"*{ENDING}"):
        with suppress(UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            found[path.name] = path.read_text("utf-8")
    return found


def _check_owner(folder: Path, name: str) -> None:
    """Refuse the backups of another Gatherer, which this one's would replace. Raises BackupError."""
    for path in backups(folder):
        try:
            other = read_manifest(path).gatherer
        except BackupError:
            continue  # damaged: `harvest doctor` says so
        if other != name:
            raise BackupError(f"{folder}: backups of the gatherer {other}, not {name}; name another folder")


def _next_stamp(folder: Path) -> str:
    """Return the name of a backup made now; later than the existing ones, also if the clock was set back."""
    now = datetime.now(tz=UTC)
    for path in backups(folder):
        with suppress(ValueError):
            now = max(now, datetime.strptime(path.name, STAMP).replace(tzinfo=UTC) + timedelta(milliseconds=1))
    return now.strftime(STAMP)


def _remove_old(folder: Path, keep: int) -> None:
    """Remove all backups but the latest ones, and the bodies that none of these names."""
    there = backups(folder)
    for path in there[:-keep]:
        # The manifest first: what is left of a removal that is killed is not a backup any more.
        (path / MANIFEST).unlink()
    for path in list(folder.iterdir()):
        if NAME.fullmatch(path.name) and not (path / MANIFEST).exists():
            shutil.rmtree(path)
    fault("backup.removed")
    try:
        live = {digest for path in there[-keep:] for digest in read_sums(path, read_manifest(path))[1]}
    except BackupError:
        return  # the bodies of a damaged backup are unknown: all stay
    blobs = FolderBlobs(folder / BODIES)
    for digest in blobs.digests():
        if digest not in live:
            blobs.path(digest).unlink()
