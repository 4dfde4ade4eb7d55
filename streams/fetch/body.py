"""Receives a body: hashes it while it streams, keeps a small one in memory, spools a larger one to a file, and stores it as a blob.

The spool keeps data from slow peers out of memory, and out of the blob store until the body is complete. At most `SPOOLS` bodies
are spooled at once, so that hundreds of large ones cannot fill the disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import tempfile
from types import TracebackType
from typing import BinaryIO, Self, cast

from schemas.ports import Blobs
from streams.fetch.answers import Stored, StoreError
from streams.fetch.settings import INLINE

IN_MEMORY = 4 * INLINE
"""Maximum bytes of one body in memory."""
SPOOLS = 16


class Body:
    """Collects one body. An async context manager, which always deletes the spool file."""

    def __init__(self, blobs: Blobs, spools: asyncio.Semaphore, folder: str) -> None:
        self._blobs = blobs
        self._spools = spools
        self._folder = folder
        self._md5 = hashlib.md5()
        self._sha256 = hashlib.sha256()
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self._counted = False
        self.size = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
        if self._counted:
            self._spools.release()

    async def write(self, piece: bytes) -> None:
        """Append a piece. Raises StoreError if the spool cannot be written."""
        self.size += len(piece)
        self._md5.update(piece)
        self._sha256.update(piece)
        if self._file is None:
            self._memory += piece
            if len(self._memory) > IN_MEMORY:
                await self._spill()
            return
        try:
            self._file.write(piece)
        except OSError as error:
            raise StoreError(error.errno, f"the spool: {error.strerror}") from error

    async def _spill(self) -> None:
        await self._spools.acquire()
        self._counted = True
        try:
            self._file = cast("BinaryIO", tempfile.TemporaryFile(prefix="harvest-", dir=self._folder or None))  # noqa: SIM115
            self._file.write(self._memory)
        except OSError as error:
            raise StoreError(error.errno, f"the spool: {error.strerror}") from error
        self._memory = bytearray()

    @property
    def md5(self) -> str:
        """MD5 in hex of the bytes written so far."""
        return self._md5.hexdigest()

    async def store(self) -> Stored:
        """Return the whole body, inline up to 64 kB, otherwise in the blob store. Raises StoreError."""
        sha256 = self._sha256.hexdigest()
        if self.size <= INLINE:
            return Stored(bytes(self._memory), "", self.size, self.md5, sha256)
        try:
            await asyncio.to_thread(self._put)
        except OSError as error:
            raise StoreError(error.errno, f"the blob store: {error.strerror}") from error
        return Stored(None, sha256, self.size, self.md5, sha256)

    def _put(self) -> None:
        file = self._file or io.BytesIO(self._memory)
        file.seek(0)
        self._blobs.put(file)
