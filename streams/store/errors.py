"""Expected failures of a store, as opposed to bugs: each is one clear line for the user."""

from __future__ import annotations

import errno
import os

import apsw

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""System errors for a lack of space: disk, quota or file size."""


AFRESH = "to start afresh, delete the data folder or name another one (--data DIR)"
"""Advice for a store that is lost."""


class StoreError(Exception):
    """The data folder cannot be used as requested; the message gives the reason in one line."""


class AbsentError(StoreError):
    """The store does not exist, or its creation was interrupted; the next runner creates it."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder}: no data of harvest here")


class LockedError(StoreError):
    """Another runner uses the data folder."""


class NewerError(StoreError):
    """The data folder was written by a newer version of the program."""


class DamagedBody(FileNotFoundError):  # noqa: N818 - named like the condition that it is a kind of
    """A body has other bytes than its digest says, or too many; the message names the digest, and may go into a record."""


class DiskFull(OSError):  # noqa: N818 - named for the user's condition, like BrokenPipe
    """No space left. The whole transaction, or blob, was undone; the store stays usable."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def translated(error: BaseException, path: str, system_errno: int = 0) -> BaseException:
    """Return the exception to raise for an error of SQLite or of the system.

    DiskFull if there was no space, StoreError if the file or a lock is at fault; anything else unchanged.
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
