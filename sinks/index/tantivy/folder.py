"""Opening the folder of a tantivy index, and detecting that it is missing or damaged."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tantivy import Index, Schema

from processors.query import QueryError
from sinks.index.errors import IndexDamaged, IndexMissing, IndexOutdated

META = "meta.json"
"""File that a commit renames into place last: without it there is no index."""
LOCK = ".tantivy-meta.lock"
"""File that the engine locks for reading."""

MANAGED = ".managed.json"
"""The engine's list of its own files, which a reader does not need."""
WRITER_LOCK = ".tantivy-writer.lock"


ROOM = 50_000_000
"""Bytes that a batch may need in the folder; if there is less room, a failed write is taken for a full disk."""
OTHER_FIELDS = "the schema does not match"
"""Part of the engine's error for an index that has other fields."""
SYSTEM = re.compile(r"\(os error (\d+)\)")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def failed(path: Path, error: BaseException) -> OSError:
    """Return the error for a failed write: the system's error, if the engine reports it or the folder shows it."""
    said = SYSTEM.search(str(error))
    number = int(said[1]) if said else _refused(path)
    if number:
        return OSError(number, os.strerror(number), str(path))
    return OSError(f"the index cannot be written: {path}: {error}"[:300])


def _refused(path: Path) -> int:
    """Return the errno if the folder has no room, 0 if it has. The engine's threads die without reporting it."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM)
    except OSError as error:
        return error.errno if error.errno in NO_ROOM else 0
    return 0


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the engine while it reads the folder into IndexDamaged, or into OSError: reading may also write."""
    try:
        yield
    except QueryError:
        raise
    except ValueError as error:
        said = SYSTEM.search(str(error))
        if said and int(said[1]) in NO_ROOM:
            raise failed(path, error) from error
        if "Permission denied" in str(error) or "Read-only file system" in str(error):
            raise PermissionError(f"the index cannot be read: {path}: {error}"[:300]) from error
        kind = IndexOutdated if OTHER_FIELDS in str(error) else IndexDamaged
        raise kind(f"the index cannot be read: {path}: {error}"[:300]) from error
    except BaseException as error:
        # A panic of the engine is not an Exception in Python: raised if bytes do not match their length or check.
        if type(error).__name__ == "PanicException":
            raise IndexDamaged(f"the index cannot be read: {path}: {error}"[:300]) from error
        raise


def version(path: Path) -> tuple[int, int, int] | None:
    """Return what differs between any two commits of the index in a folder; None if there is none."""
    try:
        found = (path / META).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def share(path: Path) -> None:
    """Give the two files that the engine replaces by rename, readable by its owner only, the mode of the other files."""
    mode = stat.S_IMODE((path / WRITER_LOCK).stat().st_mode)
    for name in (META, MANAGED):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            (path / name).chmod(mode)


@contextlib.contextmanager
def viewed(path: Path) -> Iterator[Path]:
    """Yield a folder to read the index from: itself, or one of links to its files if it is not writable.

    The engine locks a file of the folder to read it. A writer's next commit is not visible through the links: files are then
    missing, which is IndexDamaged, as for a reader during a swap; opening the index again helps. Raises OSError.
    """
    if all(os.access(place, os.W_OK) for place in (path, path / LOCK) if place.exists()):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="harvest-index-") as links:
        for entry in path.iterdir():
            if entry.suffix != ".lock" and entry.name != MANAGED:
                Path(links, entry.name).symlink_to(entry.absolute())
        yield Path(links)


def open_folder(path: Path, schema: Schema, writable: bool, view: Path | None = None) -> Index:
    """Open the index in a folder, read from `view` of it if given; create it if there is none and it is `writable`.

    Raises IndexDamaged (also for an index with other fields), IndexMissing, OSError.
    """
    if not (path / META).exists():
        # Files that begin with a dot are locks and the engine's own list, which exist before the first commit.
        if path.is_dir() and any(not entry.name.startswith(".") for entry in path.iterdir()):
            raise IndexDamaged(f"the folder is not empty and has no index: {path}")
        if not writable:
            raise IndexMissing(f"there is no index yet: {path}")
        path.mkdir(parents=True, exist_ok=True)
    with reading(path):
        index = Index(schema, path=str(view or path), reuse=True)
        # Reloaded explicitly, after each commit or before each search: a watching thread would be half a second late.
        index.config_reader("manual")
        index.reload()
        return index
