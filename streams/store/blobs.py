"""Bodies too large for the log, in a folder, by their SHA-256 (`schemas.ports.Blobs`).

A body is written to a temporary name; a sync flushes it, renames it to `ab/abcd...` (the first two digits of its digest, then all
of it) and flushes the folders. One sync serves all bodies written since the last, so that a batch pays for few flushes: sync
before the transaction that refers to the bodies commits.

Laws:
- What stands under a digest is whole and durable: only a flushed file gets that name.
- A body that could not be written, or flushed, leaves nothing behind. Temporary files of a killed process are dropped when the
  runner opens the folder (`owner=True`).
- A body written again counts as new for `trim`, which goes by the clock that its writer had: the file system's may be another one.
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
from typing import BinaryIO, NamedTuple

from streams.faults import fault
from streams.store.errors import translated

PIECE = 1 << 20
"""Bytes copied at a time."""
FLUSHERS = 8
"""Files flushed at once: the journal of the file system commits them together."""
DIGEST = re.compile(r"[0-9a-f]{64}")


class Trimmed(NamedTuple):
    """What a trim has dropped."""

    blobs: int
    bytes: int


class FolderBlobs:
    """Blobs in a local folder. May be used from several threads; one process at a time writes.

    owner: drop what a killed process left unfinished; give it to the runner only.
    clock: ms since the epoch, the time of what is written; none: the file system's.
    """

    def __init__(self, folder: Path, *, owner: bool = False, clock: Callable[[], int] | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._unfinished = folder / "new"
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._flushers = ThreadPoolExecutor(FLUSHERS, "flush")
        self._waiting: dict[str, Path] = {}
        self._flushing: dict[str, Path] = {}
        """By digest, what the next sync, and the one that is going on, makes durable: both can be read."""
        # Whoever was here before may have been cut off between making a folder and flushing the one it is in.
        self._touched: set[Path] = {folder, folder.parent} if folder.is_dir() else set()
        """Folders that the next sync flushes."""
        if owner and self._unfinished.is_dir():
            for leftover in self._unfinished.iterdir():
                if not leftover.is_dir():  # a folder is nothing of ours
                    leftover.unlink()

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """Store a body durably; return SHA-256 (hex), MD5 (hex) and length in bytes. Raises OSError and leaves nothing behind."""
        written = self.write(body)
        self.sync()
        return written

    def write(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `put`, but durable with the next `sync` only; it can be opened at once. Raises DiskFull or another OSError."""
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
                # It takes the place of one that is there, since that may have been damaged meanwhile.
                self._waiting[digest] = path
        return digest, md5, length

    def _date(self, path: Path) -> None:
        """Give a body the time of its writing."""
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
                # A raw write may be short where the disk is nearly full; the next one says so.
                while rest:
                    rest = rest[out.write(rest) :]
        return sha256.hexdigest(), md5.hexdigest(), length

    def sync(self) -> None:
        """Make durable all that was written since the last sync. Raises OSError; then what was waiting is gone.

        One at a time; meanwhile, others write and read.
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
                shutil.rmtree(final)  # nothing of ours
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
                _fsync(path)
        else:
            list(self._flushers.map(_fsync, paths))

    def open(self, digest: str) -> BinaryIO:
        """Open the body as a binary file. Raises FileNotFoundError."""
        try:
            return _opened(self.path(digest))
        except FileNotFoundError:
            # A sync in another thread may have moved it between our look and our opening.
            return _opened(self._path(digest))

    def path(self, digest: str) -> Path:
        """Where a body is now; a sync moves it. Raises FileNotFoundError for what is no digest."""
        return self._waiting.get(digest) or self._flushing.get(digest) or self._path(digest)

    def _path(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise FileNotFoundError(f"not a digest: {digest[:80]!r}")
        return self._folder / digest[:2] / digest

    def digests(self) -> Iterator[str]:
        """The digests of all durable bodies, in order."""
        for folder in sorted(self._folder.glob("[0-9a-f][0-9a-f]")):
            yield from sorted(p.name for p in folder.iterdir() if DIGEST.fullmatch(p.name))

    def trim(self, before_ms: int, live: Container[str] = frozenset()) -> Trimmed:
        """Drop the bodies last written before a time (ms since the epoch), but for those in `live`."""
        count = size = 0
        for digest in list(self.digests()):
            if digest in live:
                continue
            path = self._path(digest)
            # Under the lock, so that a body written again in between is kept.
            with self._lock:
                status = path.stat()
                if status.st_mtime_ns < before_ms * 1_000_000:
                    path.unlink()
                    count += 1
                    size += status.st_size
        return Trimmed(count, size)


def _opened(path: Path) -> BinaryIO:
    """A file to read. Raises FileNotFoundError where there is none: a folder, a pipe or a link is no body."""
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


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
