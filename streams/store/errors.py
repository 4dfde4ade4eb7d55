"""What can go wrong with a store that is not a bug: each is one clear line for the user."""

from __future__ import annotations

import errno
import os

import apsw

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""System errors that mean: there is no room left for this user, disk or file."""


AFRESH = "to start afresh, delete the data folder or name another one (--data DIR)"
"""What helps where a store is lost."""


class StoreError(Exception):
    """The data folder cannot be used as asked; the message says why in one line."""


class AbsentError(StoreError):
    """There is no store, or one whose making was cut short, which the next runner makes anew."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder}: no data of harvest here")


class LockedError(StoreError):
    """Another runner works on the data folder."""


class NewerError(StoreError):
    """The data folder was written by a newer version of the program."""


class DiskFull(OSError):  # noqa: N818 - named for the user's condition, like BrokenPipe
    """No room left. Everything of the transaction, or of the blob, was undone; the store stays usable."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def translated(error: BaseException, path: str, system_errno: int = 0) -> BaseException:
    """What to raise for an error of SQLite or of the system.

    DiskFull where there was no room, StoreError where the file or a lock is at fault; anything else as it is.
    """
    if isinstance(error, apsw.FullError):
        return DiskFull(path)
    if isinstance(error, apsw.IOError) and system_errno in FULL:
        return DiskFull(path)
    if isinstance(error, OSError) and error.errno in FULL and not isinstance(error, DiskFull):
        return DiskFull(path)
    if isinstance(error, apsw.BusyError):
        return StoreError(f"{path}: another program held the store for too long")
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError)):
        return StoreError(f"{path}: {error}: {AFRESH}")
    if isinstance(error, (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError)):
        return StoreError(f"{path}: {error}")
    return error
