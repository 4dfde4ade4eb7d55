"""Fixtures of the fetch edge: a server that misbehaves on demand, a blob store in memory, and requests."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec
import pytest

from processors.identity import frontier_key
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Record, Root
from streams.fetch import Fetcher, FetchSettings
from tests.streams.fetch.ftp_peer import FtpPeer

NOW = 1_700_000_000_000
LOOPBACK = "127.0.0.1"

Handler = Callable[["Heard", asyncio.StreamWriter], Awaitable[None]]


class Memory:
    """Blobs in a dict; `full` makes `put` fail, as a full disk does."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.full: OSError | None = None

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        if self.full is not None:
            raise self.full
        data = b"".join(iter(lambda: body.read(65_536), b""))
        digest = hashlib.sha256(data).hexdigest()
        self.bodies[digest] = data
        return digest, hashlib.md5(data).hexdigest(), len(data)

    def open(self, digest: str) -> BinaryIO:
        return io.BytesIO(self.bodies[digest])


@dataclass(frozen=True)
class Heard:
    """A request as the server received it."""

    path: str
    headers: dict[str, str]


@dataclass
class Server:
    """A server on plain asyncio streams, for which the test gives every byte of an answer."""

    port: int = 0
    heard: list[Heard] = field(default_factory=list)
    pages: dict[str, bytes | Handler] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = (line.partition(": ") for line in head[1:] if line)
            heard = Heard(head[0].split(" ")[1], {name.lower(): value for name, _, value in fields})
            self.heard.append(heard)
            page = self.pages.get(heard.path, answer("404 Not Found"))
            if isinstance(page, bytes):
                writer.write(page)
                await writer.drain()
            else:
                await page(heard, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    """Build an answer with its Content-Length; an underscore in a name stands for a hyphen."""
    fields = {"Content-Length": str(len(body)), "Connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


class Edge:
    """A fetcher, its server and its store."""

    def __init__(self, server: Server, blobs: Memory, fetcher: Fetcher) -> None:
        self.server = server
        self.blobs = blobs
        self.fetcher = fetcher

    async def get(self, path: str, **options: Any) -> list[Record]:
        return await self.fetcher.fetch(request(self.server.host + path, address=LOOPBACK, **options))

    def request(self, url: str, address: str) -> FetchRequest:
        return request(url, address=address)

    async def resolve(self, host: str = "") -> CrawlEvent:
        (event,) = await self.fetcher.fetch(request((host or self.server.host) + "/robots.txt", kind="resolve"))
        assert isinstance(event, CrawlEvent)
        return event


def request(url: str, **options: Any) -> FetchRequest:
    """Build a request as the frontier does."""
    given: dict[str, Any] = {
        "depth": 2,
        "version": 7,
        "rules": "r1",
        "root": Root(url="http://root.example/", run="run-1"),
    } | options
    return FetchRequest(url=url, host=frontier_key(url), time=NOW, **given)


@pytest.fixture
def make_request() -> Callable[..., FetchRequest]:
    """A function that builds a request from a URL and the fields that differ from the defaults."""
    return request


@pytest.fixture
def make_answer() -> Callable[..., bytes]:
    """A function that builds the bytes of an answer."""
    return answer


@pytest.fixture
def now() -> int:
    """The current time of all tests, in ms."""
    return NOW


@pytest.fixture
def blobs() -> Memory:
    """An empty blob store."""
    return Memory()


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """A function that runs a scenario in an event loop."""
    return asyncio.run


@pytest.fixture
def edge(blobs: Memory) -> Callable[..., Any]:
    """An async context manager that gives an Edge, without pauses and with loopback allowed, unless `settings` override it."""

    @asynccontextmanager
    async def open_edge(
        pages: dict[str, bytes | Handler] | None = None, lookup: Any = None, pace: Any = None, **settings: Any
    ) -> AsyncIterator[Edge]:
        server = Server(pages=pages or {})
        listening = await asyncio.start_server(server.serve, LOOPBACK, 0)
        server.port = listening.sockets[0].getsockname()[1]
        usual: dict[str, Any] = {"pause": 0.0, "allow": ("127.0.0.0/8",)}
        given = FetchSettings(**(usual | settings))
        async with listening, Fetcher(given, blobs, lambda: NOW, lookup=lookup, pace=pace) as fetcher:
            yield Edge(server, blobs, fetcher)

    return open_edge


@pytest.fixture
def split() -> Callable[[list[Record]], tuple[FetchedObject | None, CrawlEvent]]:
    """A function that splits an answer into object and event, and asserts that both repeat the fields of the request."""

    def take(records: list[Record]) -> tuple[FetchedObject | None, CrawlEvent]:
        objects = [r for r in records if isinstance(r, FetchedObject)]
        events = [r for r in records if isinstance(r, CrawlEvent)]
        assert len(objects) <= 1
        assert len(events) == 1
        assert len(records) == len(objects) + 1
        assert all((o.version, o.depth, o.root and o.root.run) == (7, 2, "run-1") for o in objects)
        event = events[0]
        assert (event.version, event.depth, event.rules, event.host) == (7, 2, "r1", frontier_key(event.url))
        assert msgspec.structs.asdict(event)["time"] == NOW
        return (objects[0] if objects else None), event

    return take


class FtpWorld:
    """A fetcher, and a server."""

    def __init__(self, peer: FtpPeer, fetcher: Fetcher, make: Callable[..., FetchRequest]) -> None:
        self.peer = peer
        self.fetcher = fetcher
        self.make = make

    async def get(self, path: str = "", **options: Any) -> list[Record]:
        return await self.fetcher.fetch(self.make(self.peer.url + path, **({"address": LOOPBACK} | options)))


@pytest.fixture
def ftp_world(blobs: Any, now: int, make_request: Callable[..., FetchRequest]) -> Callable[..., Any]:
    """An async context manager that gives an FtpWorld, without pauses and with loopback allowed, unless settings override it."""

    @asynccontextmanager
    async def open_world(peer: FtpPeer | None = None, **settings: Any) -> AsyncIterator[FtpWorld]:
        usual: dict[str, Any] = {"pause": 0.0, "allow": ("127.0.0.0/8",)}
        given = FetchSettings(**(usual | settings))
        async with (peer or FtpPeer()).running() as running, Fetcher(given, blobs, lambda: now) as fetcher:
            yield FtpWorld(running, fetcher, make_request)

    return open_world
