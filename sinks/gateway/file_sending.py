"""Sends a file by sendfile(2), so that its bytes do not pass through this process.

The server offers it to the application as an entry in the scope (`SEND_FILE`), since ASGI has messages with bytes alone. A socket
belongs to its transport, which nobody else may wait for; so the wait is for a duplicate of its descriptor.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import BinaryIO

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sinks.gateway import guard

SEND_FILE = "harvest.send_file"
"""Key in the scope of a coroutine function that sends so many bytes of a file, from its beginning, as the body of the answer."""
PIECE = 1 << 20
"""Bytes after which others have their turn."""


class FileAnswer(Response):
    """Answer with the bytes of a file; `end` is called when it has been sent, or cannot be."""

    def __init__(self, file: BinaryIO, end: Callable[[], None], media_type: str, headers: Mapping[str, str]) -> None:
        self._file, self._end = file, end
        self._size = os.fstat(file.fileno()).st_size
        super().__init__(None, media_type=media_type, headers={**headers, "Content-Length": str(self._size)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer. Raises BrokenOffError."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if SEND_FILE in scope:
                await scope[SEND_FILE](self._file.fileno(), self._size)
            else:
                while piece := await asyncio.to_thread(self._file.read, PIECE):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._end()


async def send_file(transport: asyncio.WriteTransport, file: int, size: int) -> None:
    """Send `size` bytes of an open file behind what was written to the transport. Raises BrokenOffError."""
    # This thread waits for the disk if the file is not in memory: it is read ahead.
    os.posix_fadvise(file, 0, size, os.POSIX_FADV_WILLNEED)
    socket = os.dup(transport.get_extra_info("socket").fileno())
    try:
        while transport.get_write_buffer_size() and not transport.is_closing():
            await _writable(socket)
            await asyncio.sleep(0)  # the transport writes
        sent = 0
        while sent < size and not transport.is_closing():
            try:
                count = os.sendfile(socket, file, sent, min(PIECE, size - sent))
            except BlockingIOError:
                await _writable(socket)
                continue
            if not count:
                raise guard.BrokenOffError("the file became shorter")
            sent += count
            await asyncio.sleep(0)
    except OSError as error:
        raise guard.BrokenOffError(f"it cannot be sent: {error.strerror or error}") from error
    finally:
        os.close(socket)
    if sent < size:
        raise guard.BrokenOffError("its reader has gone")


async def _writable(socket: int) -> None:
    """Wait until a socket can be written to. Raises BrokenOffError."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(socket, ready.set)
    try:
        async with asyncio.timeout(guard.PATIENCE):
            await ready.wait()
    except TimeoutError:
        raise guard.BrokenOffError("nobody reads it") from None
    finally:
        loop.remove_writer(socket)
