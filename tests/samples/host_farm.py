"""Many web servers on loopback, each at an address of its own in 127.0.0.0/8, which record when they were asked.

A `with` statement serves them for its duration, in a thread. The servers of one farm share one port. Each has a robots.txt with a
Crawl-delay, an index page and pages that this links to.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

from schemas.codec import decode
from schemas.records import CrawlEvent
from streams.store import Store

BACKLOG = 16
SPARE = 300
"""Files that may be open besides the sockets of the farm."""


class Asked(NamedTuple):
    """One request as a server received it; times in monotonic seconds."""

    path: str
    begun: float
    """When the request had arrived."""
    ended: float
    """When the answer was about to be sent."""


class Farm:
    """Servers that ask for a pause each.

    `asked` has the requests of each address in order of their end.
    """

    def __init__(self, pauses: Sequence[float], pages: int, takes: float = 0.0) -> None:
        """`pauses`: Crawl-delay of each server in seconds; `pages`: of each; `takes`: seconds that an answer takes."""
        self.addresses = [f"127.{1 + n // 65_000}.{n // 250 % 250}.{1 + n % 250}" for n in range(len(pauses))]
        self.pauses: Mapping[str, float] = dict(zip(self.addresses, pauses, strict=True))
        self.asked: dict[str, list[Asked]] = defaultdict(list)
        self.port = 0
        self._pages = pages
        self._takes = takes
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="farm", daemon=True)

    @property
    def urls(self) -> list[str]:
        """The URLs of the index pages."""
        return [f"http://{address}:{self.port}/" for address in self.addresses]

    def requests(self) -> int:
        """The number of requests so far, to robots.txt too."""
        return sum(len(asked) for asked in self.asked.values())

    def broken(self) -> list[tuple[str, float]]:
        """The pauses that were too short: address and seconds from the end of an answer to the next request."""
        return [
            (address, later.begun - earlier.ended)
            for address, asked in self.asked.items()
            for earlier, later in pairwise(sorted(asked, key=lambda one: one.begun))
            if later.begun - earlier.ended < self.pauses[address]
        ]

    def share(self, begin: float, end: float) -> float:
        """The requests between two times, as a share of what the pauses would allow if answers took no time."""
        count = sum(begin <= one.begun < end for asked in self.asked.values() for one in asked)
        return count / sum((end - begin) / pause for pause in self.pauses.values())

    def __enter__(self) -> Self:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = 3 * len(self.addresses) + SPARE
        if soft != resource.RLIM_INFINITY and soft < needed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard))
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        first = await asyncio.start_server(self._answer, self.addresses[0], 0, backlog=BACKLOG)
        self.port = first.sockets[0].getsockname()[1]
        others = [await asyncio.start_server(self._answer, address, self.port, backlog=BACKLOG) for address in self.addresses[1:]]
        self._ready.set()
        await self._stop.wait()
        for server in (first, *others):
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                begun, path = time.monotonic(), head.split(b" ", 2)[1].decode()
                if self._takes:
                    await asyncio.sleep(self._takes)
                status, kind, body = self._page(address, path)
                # Before it is sent: the other side may have it before this thread runs again.
                self.asked[address].append(Asked(path, begun, time.monotonic()))
                head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                writer.write(head + body)
                await writer.drain()
        writer.close()

    def _page(self, address: str, path: str) -> tuple[str, str, bytes]:
        if path == "/robots.txt":
            return "200 OK", "text/plain", f"User-agent: *\nCrawl-delay: {self.pauses[address]:g}\n".encode()
        links = "".join(f'<a href="/{n}">{n}</a>' for n in range(self._pages)) if path == "/" else ""
        if path != "/" and not path[1:].isdigit():
            return "404 Not Found", "text/plain", b""
        return "200 OK", "text/html", f"<title>{path} of {address}</title><p>{address} {path} {links}".encode()


def event_kinds(folder: Path) -> Counter[str]:
    """The number of events of each kind."""
    found: Counter[str] = Counter()
    with Store(folder, readonly=True) as store:
        for partition, end in enumerate(store.ends("crawl")):
            for logged in store.read("crawl", partition, 0, end):
                found[cast("CrawlEvent", decode(logged.value or b"")).kind] += 1
    return found
