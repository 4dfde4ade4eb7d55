"""The kernel's notices of changes in folders (inotify(7)), with the names as bytes.

Called by ctypes. Packages for this report names as text only, or follow links, or raise for the first name that is not UTF-8;
a Gatherer meets all of these.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, FOLDER = 0x4000, 0x8000, 0x4000_0000
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK = 0x100_0000, 0x200_0000, 0x400_0000
MASK = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK
"""Whatever changes an entry or its content. Reading is none of it: this program reads every file that it gathers."""

_HEAD = struct.Struct("iIII")
_READ = 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


class Notice(NamedTuple):
    """One notice: the watch that it comes from, what happened (a mask), and the name of the entry; b"": the folder itself."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """Watches on folders. Raises OSError where the system has no more instances (EMFILE)."""

    def __init__(self) -> None:
        self.fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, path: bytes) -> int:
        """Watch a folder and return the number of the watch, the same for the same folder; a link is not followed.

        Raises OSError: ENOSPC if the user has no more watches, ENOENT, ENOTDIR, EACCES.
        """
        return _checked(_libc.inotify_add_watch(self.fd, path, MASK))

    def remove(self, watch: int) -> None:
        """End a watch; one that has ended already is no error."""
        _libc.inotify_rm_watch(self.fd, watch)

    def read(self) -> list[Notice]:
        """Return the notices that have arrived, without waiting."""
        found: list[Notice] = []
        while True:
            try:
                data = os.read(self.fd, _READ)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                found.append(Notice(watch, mask, data[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        """End all watches."""
        os.close(self.fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
