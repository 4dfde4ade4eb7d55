"""Opens a file whose bytes are known by size and digest, for sending it on: what is read is what was verified.

A file is read once for its digests, and again by the receiver. Its state (fstat) is compared after every read, so that a change in
between ends in an error, not in other bytes.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from typing import BinaryIO, NamedTuple, cast

from schemas.records import FetchRequest
from streams.fetch.adapters.places import Places

PIECE = 1 << 20
CHANGED = "changed since it was gathered"


class ContentDigest(NamedTuple):
    """Size and digests (hex) of the bytes that a file must have; sha256 "": not known."""

    size: int
    md5: str
    sha256: str = ""


class ChangedError(Exception):
    """A file is not the one that was gathered, or is no file any more; the message is one line."""


def open_regular(request: FetchRequest) -> BinaryIO:
    """Open the file of a `file:` URL without following links below its root.

    Only a regular file is opened, with flags under which that cannot block. Raises OSError, ValueError (not a path), ChangedError.
    """
    with Places() as places:
        at, name = places.of(request)
        # Before it is opened, since to open a device may have an effect; and after, since it may have been replaced in between.
        if not stat.S_ISREG(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            raise ChangedError(CHANGED)
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    file = open(fd, "rb", buffering=0)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        file.close()
        raise ChangedError(CHANGED)
    return cast("BinaryIO", file)


def verified(file: BinaryIO, content: ContentDigest) -> BinaryIO:
    """Return an open file at its start, for reading; takes over `file`.

    Raises ChangedError if its content is not the expected one, and OSError. Reading raises OSError (ESTALE) once it has changed.
    """
    try:
        unchanged = UnchangedFile(file)
        if unchanged.size != content.size:
            raise ChangedError(CHANGED)
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        try:
            while piece := unchanged.read(PIECE):
                md5.update(piece)
                sha256.update(piece)
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise ChangedError(CHANGED) from error
            raise
        if md5.hexdigest() != content.md5 or content.sha256 not in ("", sha256.hexdigest()):
            raise ChangedError(CHANGED)
        unchanged.seek(0)
    except BaseException:
        file.close()
        raise
    return cast("BinaryIO", io.BufferedReader(unchanged, PIECE))


class UnchangedFile(io.RawIOBase):
    """An open file as long as it has the state that it had when it was opened. `size`: its number of bytes then."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._fd = file.fileno()
        self._state = self._look()
        self.size = os.fstat(self._fd).st_size
        self._at = 0

    def _look(self) -> tuple[int, ...]:
        found = os.fstat(self._fd)
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position; ends are counted from the size that the file had."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: object, /) -> int:
        """Read at the position. Raises OSError (ESTALE) if the file was changed."""
        view = cast("memoryview", memoryview(buffer))[: max(0, self.size - self._at)]  # type: ignore[arg-type]
        read = os.preadv(self._fd, [view], self._at) if len(view) else 0
        if self._look() != self._state or (len(view) and not read):
            raise OSError(errno.ESTALE, CHANGED)
        self._at += read
        return read

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
