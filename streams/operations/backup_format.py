"""The layout of a backup folder: manifests, lists of digests, and which backups are complete.

| part | is |
| --- | --- |
| `20261128T152603.120000Z/store.sqlite` | log, rows and offsets at one moment |
| `20261128T152603.120000Z/SHA256SUMS` | digests of that file and its bodies, for `sha256sum -c` in the backup folder |
| `20261128T152603.120000Z/backup.json` | versions, counts, the digest of the list, the definitions of Brokers |
| `blobs/` | bodies over 64 kB, by SHA-256: those of all backups in the folder |
| `backup.lock`, `new/` | the lock of the command that writes; a backup that is not finished |
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from streams.store import schema

MANIFEST, SUMS, LOCK, UNFINISHED, BODIES = "backup.json", "SHA256SUMS", "backup.lock", "new", "blobs"
IGNORED = {"lost+found"}
"""Entries of an empty file system."""
FORMAT = 1
"""Version of the layout."""
STAMP = "%Y%m%dT%H%M%S.%fZ"
NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z")


class BackupError(Exception):
    """A backup cannot be made, or used; the message gives the reason in one line."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `backup.json`: versions, the Gatherer's name, the ends of all topics, bodies, and the digest of `SHA256SUMS`.

    `missing`: digests of bodies that the log names and that the original did not have. `definitions`: the files of its folder
    `brokers`, by name.
    """

    format: int
    harvest: str
    store: int
    made: str
    gatherer: str
    ends: dict[str, list[int]]
    bodies: int
    body_bytes: int
    missing: list[str]
    sums: str
    kind: Literal["harvest backup"] = "harvest backup"
    definitions: dict[str, str] = {}


def sums_of(stamp: str, store: str, bodies: Iterable[str]) -> bytes:
    """Return the content of `SHA256SUMS`, given the name of the backup and the digests of its files."""
    lines = [f"{store}  {stamp}/{schema.FILE}", *(f"{digest}  {BODIES}/{digest[:2]}/{digest}" for digest in sorted(bodies))]
    return "".join(f"{line}\n" for line in lines).encode()


def backups(folder: Path) -> list[Path]:
    """Return the complete backups in a folder, the latest last."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name) and (path / MANIFEST).is_file())


def read_manifest(backup: Path) -> Manifest:
    """Return the manifest of a backup. Raises BackupError if it is damaged, foreign or of a newer version."""
    try:
        found: object = msgspec.json.decode((backup / MANIFEST).read_bytes())
        if isinstance(found, dict) and isinstance(number := found.get("format"), int) and number > FORMAT:
            raise BackupError(f"{backup}: made by a newer version of harvest (format {number}, this program knows {FORMAT})")
        return msgspec.convert(found, Manifest)
    except FileNotFoundError:
        raise BackupError(f"{backup}: no backup of harvest here") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackupError(f"{backup}: damaged, or not a backup of harvest: {MANIFEST}: {error}") from None


def read_sums(backup: Path, manifest: Manifest) -> tuple[str, list[str]]:
    """Return the digest of a backup's store, and its bodies' digests in order. Raises BackupError if the list is damaged."""
    try:
        text = (backup / SUMS).read_bytes()
    except FileNotFoundError:
        raise damaged(backup, f"{SUMS} is missing") from None
    if hashlib.sha256(text).hexdigest() != manifest.sums:
        raise damaged(backup, f"{SUMS} is not as it was written")
    store, *bodies = (line.partition("  ")[0] for line in text.decode().splitlines())
    if len(bodies) != manifest.bodies:
        raise damaged(backup, f"{MANIFEST} counts {manifest.bodies:,} bodies, {SUMS} lists {len(bodies):,}")
    return store, bodies


def damaged(backup: Path, what: str) -> BackupError:
    """Return the error of a damaged backup."""
    return BackupError(f"{backup}: damaged: {what}")


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file and flush it."""
    with open(path, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
