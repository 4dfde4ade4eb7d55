"""Opens the folder that contains a local path, from its root down, without following a link below the root.

Strategy: a root is reached as its user named it, links included. From the folder that contains the root, each path component is
opened relative to the one above it and must not be a link (O_NOFOLLOW). So a user with write access below a root cannot redirect
the path, not even between two system calls. The last opened folder stays open, since the files of one folder arrive together.

Laws:
- A component that is a link, or not a folder, counts as missing: ENOTDIR.
- The open folder is closed at the end of the bulk: the next bulk notices that a folder was replaced.
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
    """Opens folders for one bulk of requests; a context manager. `own`: (device, inode) of folders that must not be listed."""

    def __init__(self, own: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.own = own
        self._at = (b"", b"")
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()

    def of(self, request: FetchRequest) -> tuple[int, bytes]:
        """Return the open folder that contains the target of a `file:` URL, and its name. Raises OSError and ValueError."""
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
    """Return the folder that contains a path's root, without a trailing slash; a path outside of the root is a root of its own."""
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
