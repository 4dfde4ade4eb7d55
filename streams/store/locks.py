"""Locks of writers: one runner per data folder, and a queue for all other writers.

Both are flock(2) locks on their own files in the data folder: the kernel releases them however a process ends. A forked child
closes its copies, so that it does not keep the lock of a parent that was killed.
"""

from __future__ import annotations

import fcntl
import os
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams.store.errors import LockedError, StoreError


class LockFile:
    """An exclusive lock on a file. Raises OSError, or StoreError if the path is not a regular file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise StoreError(f"{path}: not a file")
        _OPEN.add(self)

    def claim(self) -> None:
        """Take the lock without waiting and write the process id into the file. Raises LockedError with one line."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise LockedError(f"{self._path.parent}: in use by another run of harvest (process {holder})") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back, if it was taken."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock during a `with` block, after waiting for it in the kernel."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        """Close the file, which releases the lock. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@contextmanager
def bodies_kept(folder: Path) -> Iterator[None]:
    """Keep the bodies of a data folder from being trimmed during a `with` block, after waiting for a trim. Raises OSError.

    The lock is on the folder itself, so that a user who may only read it can take it too, and leaves no file behind.
    """
    with _folder_locked(folder, fcntl.LOCK_SH):
        yield


@contextmanager
def bodies_trimmed(folder: Path) -> Iterator[bool]:
    """Yield whether the bodies of a data folder may be trimmed during the `with` block: not while somebody copies them."""
    try:
        with _folder_locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield True
    except BlockingIOError:
        yield False


@contextmanager
def _folder_locked(folder: Path, kind: int) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, kind)
        yield
    finally:
        os.close(fd)


def runner_of(folder: Path) -> int:
    """Return the process id of the runner of a data folder; 0 if there is none, or none of this machine (or container).

    The kernel's list is read, since an attempt to take the lock could make a runner fail that starts at that moment.
    """
    path = folder / "runner.lock"
    try:
        process, inode = int(path.read_bytes()[:20]), path.stat().st_ino
        held = Path("/proc/locks").read_text("ascii", "replace")
    except (OSError, ValueError):
        return 0
    for line in held.splitlines():
        # 1: FLOCK ADVISORY WRITE 4711 08:01:131090 0 EOF; the device is another one than that of stat on some file systems.
        match line.split():
            case [_, "FLOCK", _, _, owner, place, *_] if owner == str(process) and place.rpartition(":")[2] == str(inode):
                return process
    return 0


_OPEN: weakref.WeakSet[LockFile] = weakref.WeakSet()


def _close_in_child() -> None:
    for lock in list(_OPEN):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
