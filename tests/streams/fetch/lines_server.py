"""A server of text lines on asyncio streams, for which the test gives every byte of an answer, and requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from processors.identity import frontier_key
from schemas.records import FetchRequest, Record, Root
from streams.fetch import Fetcher, FetchSettings

NOW = 1_700_000_000_000
LOOPBACK = "127.0.0.1"
STEP = 0.01

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LineEdge:
    """A fetcher and the server that it asks. `heard`: the lines that the server received."""

    def __init__(self, fetcher: Fetcher, scheme: str, port: int) -> None:
        self.fetcher = fetcher
        self.host = f"{scheme}://{LOOPBACK}:{port}"

    def request(self, path: str, **options: Any) -> FetchRequest:
        """Return a request for a path as the frontier makes it."""
        url = self.host + path
        given: dict[str, Any] = {"depth": 2, "version": 7, "rules": "r1", "root": Root(url=self.host + "/", run="run-1")}
        return FetchRequest(url=url, host=frontier_key(url), time=NOW, **(given | {"address": LOOPBACK} | options))

    async def get(self, path: str, **options: Any) -> list[Record]:
        """Return the answer to a request for a path."""
        return await self.fetcher.fetch(self.request(path, **options))


@asynccontextmanager
async def line_edge(scheme: str, serve: Serve, blobs: Any, lookup: Any = None, **settings: Any) -> AsyncIterator[LineEdge]:
    """Run a server and a fetcher without pauses, and with loopback allowed, unless `settings` override it."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    usual: dict[str, Any] = {"pause": 0.0, "allow": ("127.0.0.0/8",)}
    listening = await asyncio.start_server(handle, LOOPBACK, 0)
    async with listening, Fetcher(FetchSettings(**(usual | settings)), blobs, lambda: NOW, lookup=lookup) as fetcher:
        yield LineEdge(fetcher, scheme, listening.sockets[0].getsockname()[1])


async def endless(writer: asyncio.StreamWriter, piece: bytes, pause: float = 0.0) -> None:
    """Send a piece again and again until the client closes the connection."""
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)


async def silent(writer: asyncio.StreamWriter) -> None:
    """Send nothing until the client closes the connection."""
    while not writer.is_closing():
        writer.write(b"")
        await asyncio.sleep(STEP)
