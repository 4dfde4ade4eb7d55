"""Where a local path is: the folder that it is in, opened from its root down, and never through a link below that.

Strategy: a root is reached as its user named it, by links too; from the folder that it is in, each component is opened by
itself, relative to the one above, and is no link (O_NOFOLLOW). So nobody who may write below a root can have it lead elsewhere,
not even between two system calls. The folder opened last stays open, since the files of one folder come together.

Laws:
- A component that is a link, or no folder, is missing: ENOTDIR.
- What is held open is let go of with the bulk: a folder that is replaced is seen to be another one in the next.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from processors.identity import file_path
from schemas.records import FetchRequest

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Places:
    """For one bulk of requests; a context manager. `own`: (device, inode) of folders that are not to be listed."""

    def __init__(self, own: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.own = own
        self._at = (b"", b"")
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()

    def of(self, request: FetchRequest) -> tuple[int, bytes]:
        """The open folder that a `file:` URL is in, and the name that it has there. Raises OSError and ValueError."""
        path = file_path(request.url).rstrip(b"/") or b"/"
        top = _top(request.root.url, path)
        folder, _, name = path.rpartition(b"/")
        if self._fd < 0 or self._at != (top, folder):
            self._leave()
            self._fd = _walk(top, folder[len(top) :])
            self._at = (top, folder)
        return self._fd, name or b"."

    def _leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _top(root: str, path: bytes) -> bytes:
    """The folder that a path's root is in, without a slash at its end; a path outside of it is a root of its own."""
    if root.startswith("file:///"):
        base = file_path(root).rstrip(b"/")
        if path == base or path.startswith(base + b"/"):
            return base.rpartition(b"/")[0]
    return path.rpartition(b"/")[0]


def _walk(top: bytes, below: bytes) -> int:
    fd = os.open(top or b"/", _FOLDER)
    for name in _names(below):
        above = fd
        try:
            fd = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
            raise
        finally:
            os.close(above)
    return fd


def _names(path: bytes) -> Iterator[bytes]:
    for name in path.split(b"/"):
        if name == b"..":
            raise ValueError("a path that leads up")
        if name not in (b"", b"."):
            yield name
