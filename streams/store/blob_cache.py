"""Local copies of bodies in object storage, bounded in bytes.

Strategy: a folder for each start of the machine, since a crash of the machine may leave files without their content; the file that
was used least recently goes first. Several processes share the folder: a file appears by renaming, and one that is open stays
readable after its deletion.

Laws:
- The cache is never larger than its limit for longer than an eviction takes; bodies on their way (`temporary`) are not counted.
- Temporary files of a process that is gone are deleted by the next process that opens the cache.
- The folder may be on a volume that machines share: what a process of another machine uses stays.
- A cache that somebody deletes while it is used is made again.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from streams.store.errors import LockedError
from streams.store.locks import LockFile

SLACK = 20
"""A process evicts after it has added a twentieth of the limit."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class BlobCache:
    """Bodies by digest in a folder, at most `limit` bytes. Thread-safe; several processes may share the folder."""

    def __init__(self, folder: Path, limit: int) -> None:
        boot = _BOOT.read_text("ascii").strip() if _BOOT.exists() else "boot"
        self._folder = folder / boot
        self._limit = limit
        self._lock = threading.Lock()
        self._added = limit
        """Bytes added since the last eviction; initially the limit, so that the first addition looks."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for other in folder.iterdir():
            if other.name != boot and not _delete_dead(other):
                shutil.rmtree(other, ignore_errors=True)
        self._unfinished = self._make_unfinished()

    def _make_unfinished(self) -> Path:
        """Create a folder for temporary files of this process, whose lock shows that it lives; delete those of dead processes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _delete_dead(self._folder)
        # Created under a name that the others do not look at, until its lock is taken.
        made = self._folder / f"making-{secrets.token_hex(8)}"
        made.mkdir(parents=True)
        self._alive = LockFile(made / "lock")
        self._alive.claim()
        return made.rename(self._folder / f"new-{made.name.removeprefix('making-')}")

    def temporary(self) -> Path:
        """Return a path for a body on its way; `add` or the caller removes the file. Raises OSError."""
        with self._lock:
            if not self._unfinished.is_dir():
                self._alive.close()
                self._unfinished = self._make_unfinished()
        return self._unfinished / secrets.token_hex(16)

    def open(self, digest: str) -> BinaryIO | None:
        """Open a cached body; None if it is not cached."""
        try:
            file = open(self._path(digest), "rb")  # noqa: SIM115 - the caller closes it
        except FileNotFoundError:
            return None
        # Marks it as used; the time of access is not updated on every file system.
        os.utime(file.fileno())
        return file

    def add(self, path: Path, digest: str) -> None:
        """Take a complete file over, under its digest, and evict others if the cache has grown enough. Raises OSError."""
        final, size = self._path(digest), path.stat().st_size
        final.parent.mkdir(parents=True, exist_ok=True)
        path.rename(final)
        with self._lock:
            self._added += size
            due = self._added * SLACK >= self._limit
            if due:
                self._evict()
                self._added = 0

    def discard(self, digest: str) -> None:
        """Remove a body that is not what it should be."""
        self._path(digest).unlink(missing_ok=True)

    def _evict(self) -> None:
        """Delete the files that were used least recently, until the cache has room for what is added before the next look."""
        found = []
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            with suppress(FileNotFoundError):  # evicted by another process
                about = path.stat()
                found.append((about.st_mtime_ns, about.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._limit - self._limit // SLACK:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def close(self) -> None:
        """Delete the temporary files of this process."""
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._alive.close()


def _delete_dead(folder: Path) -> bool:
    """Delete the temporary files of dead processes in the folder of one start of a machine; return whether a process lives."""
    living = False
    for other in folder.glob("new-*"):
        # Another process may delete it at the same time.
        with suppress(OSError):
            lock = LockFile(other / "lock")
            try:
                lock.claim()
                shutil.rmtree(other, ignore_errors=True)
            except LockedError:
                living = True
            finally:
                lock.close()
    return living
