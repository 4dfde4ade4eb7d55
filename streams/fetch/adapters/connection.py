"""One TCP connection to one pinned address, for protocols of text lines (Gopher, NNTP).

Laws:
- The address is checked again before the connection.
- Every wait is limited in time: the connection, each line, each piece of a body, and the whole exchange (`fetch.total_timeout`).
- Every line and every body is limited in bytes, and a body also in its rate (`fetch.min_rate` after `fetch.grace`).
- What the peer does wrong raises FetchError, and nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from processors.urls import guard
from streams.fetch.answers import FetchError, StoreError
from streams.fetch.settings import FetchSettings

READ = 65_536
MAX_LINE = 4_096
"""Maximum bytes of one line that is read alone."""


class Connection:
    """An async context manager that connects, and closes at its end. Create and use it inside a running event loop."""

    def __init__(self, settings: FetchSettings, address: str, port: int) -> None:
        self._settings = settings
        self._address = address
        self._port = port
        self._whole = asyncio.timeout(settings.total_timeout)
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._waited = 0.0
        self._received = 0

    async def __aenter__(self) -> Self:
        if why := guard(self._address, self._settings.networks):
            raise FetchError(why, retryable=False)
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                self._reader, self._writer = await asyncio.open_connection(self._address, self._port, limit=READ)
        except TimeoutError as error:
            raise FetchError("no connection in time", retryable=True, unreachable=True) from error
        except OSError as error:
            raise FetchError(f"cannot connect: {error.strerror or error}", retryable=True, unreachable=True) from error
        await self._whole.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.transport.abort()
        try:
            await self._whole.__aexit__(kind, error, at)
        except TimeoutError as late:
            # Not retryable: another try would occupy its host for as long again.
            raise FetchError(f"not whole after {self._settings.total_timeout:g} seconds", retryable=False) from late
        if isinstance(error, TimeoutError):
            raise FetchError("no answer in time", retryable=True) from error
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            raise FetchError(f"connection broken: {error.strerror or type(error).__name__}", retryable=True) from error

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises OSError if the connection is broken."""
        if self._writer.transport.is_closing():  # uvloop would raise RuntimeError
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        self._writer.write(data)
        async with asyncio.timeout(self._settings.answer_timeout):
            await self._writer.drain()

    def post(self, data: bytes) -> None:
        """Send the last bytes of an exchange, as far as that is possible at once: whether they arrive does not matter."""
        if not self._writer.transport.is_closing():
            self._writer.write(data)

    async def line(self, limit: int = MAX_LINE) -> bytes:
        """Return the next line without its end (CR LF, or LF). Raises FetchError if it is too long or cut off."""
        async with asyncio.timeout(self._settings.answer_timeout):
            try:
                found = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                raise FetchError(f"a line of more than {READ:,} bytes", retryable=False) from error
            except asyncio.IncompleteReadError as error:
                raise FetchError("connection broken: closed within an answer", retryable=True) from error
        if len(found) > limit:
            raise FetchError(f"a line of more than {limit:,} bytes", retryable=False)
        return found.rstrip(b"\r\n")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield what arrives, until the peer closes the connection. Raises FetchError if it is too slow or too much."""
        settings = self._settings
        while True:
            began = time.monotonic()
            async with asyncio.timeout(settings.answer_timeout):
                data = await self._reader.read(READ)
            self._waited += time.monotonic() - began
            if not data:
                return
            self._received += len(data)
            if self._received > settings.max_body:
                raise FetchError(f"body larger than {settings.max_body:,} bytes", retryable=False)
            yield data
            if self._waited > settings.grace and self._received < self._waited * settings.min_rate:
                raise FetchError(f"too slow: less than {settings.min_rate} bytes per second", retryable=True)
