"""The whole stream as a ready file beside the feed, as the Gatherer of 1995 kept it: most collectors ask for this one.

Strategy: a stream whose mark is asked for again, while nothing has changed, is written to a file as it is sent; from then on, that
file is sent. So a feed that changes all the time is never written twice.

Laws:
- A file is named by its mark, and has all of its stream, and no later change. A stream that ends early leaves nothing; nor does a
  killed process.
- One mark has a file at a time. Deleting it, at any time, costs time alone.
- What prevents a file (a folder of another user, a full disk, a file system without files that have no name) prevents no stream.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sinks.feed.mark import Mark

ROOM = 4
"""A file is written if the disk has room for so many of them."""
FLUSHED = 32 << 20
"""Bytes that are flushed to the disk at once at the most: other streams wait meanwhile."""


class ReadyStreams:
    """The ready file of a feed. For any thread."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        """Held while a file is written."""
        self._asked: Mark | None = None

    def open(self, feed: Path, mark: Mark) -> BinaryIO | None:
        """Return the file of a mark, which the caller closes; None if there is none."""
        try:
            return _path(feed, mark).open("rb", buffering=0)
        except OSError:
            return None

    def kept(self, feed: Path, mark: Mark, pieces: Iterator[bytes], is_current: Callable[[], bool]) -> Iterator[bytes]:
        """Return an iterator over the pieces of a stream, which writes them if the mark is asked for again.

        `is_current` returns whether the feed has that mark still: a stream has what changes while it is sent.
        """
        again, self._asked = self._asked == mark, mark
        if again:
            return self._written(feed, mark, pieces, is_current)
        return _first(feed, pieces)

    def _written(self, feed: Path, mark: Mark, pieces: Iterator[bytes], is_current: Callable[[], bool]) -> Iterator[bytes]:
        if not self._turn.acquire(blocking=False):
            yield from pieces
            return
        file: BinaryIO | None = None
        try:
            file = _unnamed(feed)
            for piece in pieces:
                yield piece
                file = _append(file, piece)
            if file is not None:
                _name(file, feed, mark, is_current)
        finally:
            if file is not None:
                _close(file)
            self._turn.release()


def _first(feed: Path, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Delete the files of all marks, in the thread that makes the pieces: that of a large file takes long."""
    _delete(feed)
    yield from pieces


def _path(feed: Path, mark: Mark) -> Path:
    return feed.with_name(f"{feed.name}.{mark}.gz")


def _unnamed(feed: Path) -> BinaryIO | None:
    """Return a new file without a name, which disappears when it is closed; None if there is no room for it."""
    try:
        if shutil.disk_usage(feed.parent).free < ROOM * feed.stat().st_size:
            return None
        return os.fdopen(os.open(feed.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), "wb")
    except OSError:
        return None


def _append(file: BinaryIO | None, piece: bytes) -> BinaryIO | None:
    """Append to a file, and return it; None if that failed."""
    if file is None:
        return None
    try:
        file.write(piece)
        if (at := file.tell()) // FLUSHED != (at - len(piece)) // FLUSHED:
            os.fdatasync(file.fileno())
    except OSError:
        _close(file)
        return None
    return file


def _close(file: BinaryIO) -> None:
    """Close a file; what its buffer has still may find no room."""
    with suppress(OSError):
        file.close()


def _name(file: BinaryIO, feed: Path, mark: Mark, is_current: Callable[[], bool]) -> None:
    """Give a file its name, and delete those of other marks, if its mark is that of the feed still."""
    with suppress(OSError), _folder(feed.parent) as folder:
        if not is_current():
            return
        file.flush()
        # Otherwise it might have its name, and less than all of its content, after a power failure.
        os.fsync(file.fileno())
        _delete(feed)
        # With a folder, since without one link(2) is called, which does not follow the link to the file.
        os.link(f"/proc/self/fd/{file.fileno()}", _path(feed, mark), src_dir_fd=folder, follow_symlinks=True)


def _delete(feed: Path) -> None:
    """Delete the files of all marks."""
    for path in _found(feed):
        # One that cannot be deleted keeps no other one.
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _found(feed: Path) -> list[Path]:
    """Return the paths of the files of all marks."""
    with suppress(OSError):
        return list(feed.parent.glob(f"{feed.name}.*.gz"))
    return []


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)
