"""Stores bodies that are too large for the log in a folder, by their SHA-256 (`schemas.ports.Blobs`).

A body is written to a temporary name; a sync flushes it, renames it to `ab/abcd...` (the first two digits of its digest, then all
of it) and flushes the folders. One sync serves all bodies written since the last, so that a batch pays for few flushes: sync
before the transaction that refers to the bodies commits.

Laws:
- A file named by a digest is complete and durable: only a flushed file is renamed to it.
- A body that could not be written or flushed leaves nothing behind. Temporary files of a killed process are deleted when the
  runner opens the folder (`owner=True`).
- Writing a body again renews its time for `trim`. The time comes from the writer's clock, which may differ from the file system's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from streams.faults import fault
from streams.store.errors import translated

PIECE = 1 << 20
"""Bytes copied at a time."""
FLUSHERS = 8
"""Files flushed at once: the journal of the file system commits them together."""
DIGEST = re.compile(r"[0-9a-f]{64}")


class Trimmed(NamedTuple):
    """The number and the bytes of the bodies that a trim deleted."""

    blobs: int
    bytes: int


class BodyStore(Protocol):
    """`schemas.ports.Blobs` as edges need them: many bodies become durable together, and a storage elsewhere may fail."""

    remote: bool
    """Whether `open` may have to bring a body from elsewhere, and block for long."""

    @property
    def trouble(self) -> str:
        """What is wrong with the store at present, in one line; empty: nothing."""
        ...

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """Store a body durably; return SHA-256 (hex), MD5 (hex) and length in bytes. Raises OSError, StoreError."""
        ...

    def write(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `put`, but durable only after the next `sync`; readable at once. Raises OSError."""
        ...

    def sync(self) -> None:
        """Make all bodies written since the last sync durable. Raises OSError, StoreError."""
        ...

    def open(self, digest: str) -> BinaryIO:
        """Open a body as a local file. Raises FileNotFoundError, and if it cannot be reached, StoreError."""
        ...

    def discard(self, digest: str) -> None:
        """Forget what is kept locally of a body that turned out to be damaged."""
        ...

    def check(self, *, write: bool) -> None:
        """Check that bodies can be read, and with `write` stored. Raises StoreError."""
        ...

    def trim(self, before_ms: int, live: Container[str] = frozenset()) -> Trimmed:
        """Delete the bodies last written before a time (ms since the epoch), except those in `live`. Raises OSError, StoreError."""
        ...

    def stop(self) -> None:
        """Let no thread wait for the store any longer."""
        ...

    def close(self) -> None:
        """Release what the store uses; `put` and `sync` end before."""
        ...


class FolderBlobs:
    """Blobs in a local folder. Thread-safe; several processes may write, unless one is the `owner`.

    owner: delete the unfinished files of a killed process; only for the runner.
    clock: returns ms since the epoch, the time of written bodies; None: the file system's clock.
    """

    remote = False
    trouble = ""

    def __init__(self, folder: Path, *, owner: bool = False, clock: Callable[[], int] | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._unfinished = folder / "new"
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._flushers = ThreadPoolExecutor(FLUSHERS, "flush")
        self._waiting: dict[str, Path] = {}
        self._flushing: dict[str, Path] = {}
        """Path by digest of the bodies in the next sync (`_waiting`) and in the present one; both can be read."""
        # An earlier process may have been killed between creating a folder and flushing its parent.
        self._touched: set[Path] = {folder, folder.parent} if folder.is_dir() else set()
        """Folders to flush in the next sync."""
        if owner and self._unfinished.is_dir():
            for leftover in self._unfinished.iterdir():
                if not leftover.is_dir():  # a folder is not created by this class
                    leftover.unlink()

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """Store a body durably; return SHA-256 (hex), MD5 (hex) and length in bytes. Raises OSError and leaves nothing behind."""
        written = self.write(body)
        self.sync()
        return written

    def write(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `put`, but durable only after the next `sync`; readable at once. Raises DiskFull or another OSError."""
        path = self._unfinished / secrets.token_hex(16)
        try:
            self._make_folders()
            digest, md5, length = self._copy(body, path)
            self._date(path)
        except BaseException as error:
            path.unlink(missing_ok=True)
            raise translated(error, str(self._folder)) from error
        with self._lock:
            if digest in self._waiting:
                path.unlink()
            else:
                # Replaces an existing file, which may have been damaged meanwhile.
                self._waiting[digest] = path
        return digest, md5, length

    def _date(self, path: Path) -> None:
        """Set the modification time of a body to the writer's clock."""
        now = None if self._clock is None else self._clock() / 1_000
        os.utime(path, None if now is None else (now, now))

    def _make_folders(self) -> None:
        if not self._unfinished.is_dir():
            self._unfinished.mkdir(parents=True, exist_ok=True)
            with self._lock:
                self._touched |= {self._folder, self._folder.parent}

    def _copy(self, body: BinaryIO, path: Path) -> tuple[str, str, int]:
        sha256, md5, length = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        fault("blob.write")
        with open(path, "xb", buffering=0) as out:
            while piece := body.read(PIECE):
                sha256.update(piece)
                md5.update(piece)
                length += len(piece)
                rest = memoryview(piece)
                # A raw write may be short if the disk is nearly full; the next one raises the error.
                while rest:
                    rest = rest[out.write(rest) :]
        return sha256.hexdigest(), md5.hexdigest(), length

    def sync(self) -> None:
        """Make all bodies written since the last sync durable. Raises OSError; these bodies are then deleted.

        One sync at a time; other threads can write and read meanwhile.
        """
        with self._syncing:
            with self._lock:
                self._flushing, self._waiting = self._waiting, {}
                touched, self._touched = self._touched, set()
            try:
                if self._flushing or touched:
                    self._sync(touched)
            except BaseException as error:
                with self._lock:
                    self._touched |= touched
                for path in self._flushing.values():
                    path.unlink(missing_ok=True)
                raise translated(error, str(self._folder)) from error
            finally:
                self._flushing = {}

    def _sync(self, touched: set[Path]) -> None:
        self._flush(list(self._flushing.values()))
        fault("blob.flushed")
        for digest, path in self._flushing.items():
            final = self._path(digest)
            if final.is_dir() and not final.is_symlink():
                shutil.rmtree(final)  # not created by this class
            if not final.parent.is_dir():
                final.parent.mkdir()
                touched.add(self._folder)
            path.rename(final)
            touched.add(final.parent)
            fault("blob.renamed")
        self._flush(sorted(touched))
        fault("blob.synced")

    def _flush(self, paths: list[Path]) -> None:
        if len(paths) < 3:
            for path in paths:
                flush(path)
        else:
            list(self._flushers.map(flush, paths))

    def open(self, digest: str) -> BinaryIO:
        """Open the body as a binary file. Raises FileNotFoundError."""
        try:
            return _opened(self.path(digest))
        except FileNotFoundError:
            # A sync in another thread may have moved the file between look-up and opening.
            return _opened(self._path(digest))

    def path(self, digest: str) -> Path:
        """Return the present path of a body, which a sync changes. Raises FileNotFoundError for an invalid digest."""
        return self._waiting.get(digest) or self._flushing.get(digest) or self._path(digest)

    def _path(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise FileNotFoundError(f"not a digest: {digest[:80]!r}")
        return self._folder / digest[:2] / digest

    def discard(self, digest: str) -> None:
        """Do nothing: the next `put` replaces the damaged file."""

    def check(self, *, write: bool) -> None:
        """Do nothing: a folder that cannot be used is an error when it is opened."""

    def stop(self) -> None:
        """Do nothing: a folder answers at once."""

    def close(self) -> None:
        """End the threads that flush files."""
        self._flushers.shutdown()

    def digests(self) -> Iterator[str]:
        """Yield the digests of all durable bodies, in order."""
        for folder in sorted(self._folder.glob("[0-9a-f][0-9a-f]")):
            yield from sorted(p.name for p in folder.iterdir() if DIGEST.fullmatch(p.name))

    def trim(self, before_ms: int, live: Container[str] = frozenset()) -> Trimmed:
        """Delete the bodies last written before a time (ms since the epoch), except those in `live`."""
        count = size = 0
        for digest in list(self.digests()):
            if digest in live:
                continue
            path = self._path(digest)
            # Under the lock, so that a body that is written again meanwhile is kept.
            with self._lock:
                if path.stat().st_mtime_ns < before_ms * 1_000_000:
                    gone = self._remove_old(path, before_ms)
                    count += gone is not None
                    size += gone or 0
        return Trimmed(count, size)

    def _remove_old(self, path: Path, before_ms: int) -> int | None:
        """Delete a body, and return its size; None if another process has written it again meanwhile: then it stays."""
        self._make_folders()
        aside = self._unfinished / secrets.token_hex(16)
        path.rename(aside)
        status = aside.stat()
        if status.st_mtime_ns < before_ms * 1_000_000:
            aside.unlink()
            return status.st_size
        aside.rename(path)
        flush(path.parent)
        return None


def _opened(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises FileNotFoundError otherwise: a folder, a pipe or a link is not a body."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileNotFoundError(str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(str(path))
    return os.fdopen(fd, "rb")


def flush(path: Path) -> None:
    """Make a file, or the entries of a folder, durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
