"""The adapter for FTP: files with size and time as validators, and directories as listings.

Strategy: a URL that ends with a slash is a directory. Its listing is that of MLSD if the server has it, otherwise of LIST, in the
normal form of `processors/essence/listings/ftp.py`. A file is requested with RETR, unless SIZE and MDTM are those of the last time.
One control connection a host is kept for some time, since a login costs more than most files. An ls-lR that a directory has
replaces the listings below it (`ftp_recursive.py`).

Laws:
- Nothing that a server says here removes an object: 550 means "missing" as well as "not for you". Only a listing without it does.
- A file URL that is a directory has moved to the URL with a slash; its listing decides on what is below.
- A path is never sent to LIST, which may take it for options or a pattern; CWD is sent instead.
- At most `MAX_CONTROL` control connections are open, those that are kept counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from processors.essence.listings.ftp import MAX_LINE, MEDIA, UNREADABLE, Form, normalize
from processors.ftp_urls import ftp_path
from processors.urls import guard
from schemas.records import FetchRequest, Record, Validators
from streams.fetch.adapters import Tools
from streams.fetch.adapters.ftp_control import UNKNOWN, Control, RefusedError, StaleError
from streams.fetch.adapters.ftp_recursive import Dated, RecursiveListings
from streams.fetch.addresses import Addresses
from streams.fetch.answers import ALLOW, Answers, FetchError
from streams.fetch.body import SPOOLS, Body
from streams.fetch.pace import TooLongError

PORT = 21
MAX_CONTROL = 64
MAX_LISTED = 1_000_001
"""Maximum number of lines of a listing that are read: one more than it may have children."""
LONGEST = MAX_LINE - len(UNREADABLE) - 1
"""Maximum bytes of a line that a server sends."""

Exchange = Callable[[Control], Awaitable[list[Record]]]


class Ftp:
    """An `Adapter`. Create and use it inside a running event loop."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._addresses = Addresses(tools, PORT)
        self._kept = KeptConnections(tools.settings.ftp_idle)
        self._recursive = RecursiveListings(tools.settings)
        self._spools = asyncio.Semaphore(SPOOLS)

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host: an address, and an empty robots.txt, which allows all."""
        return await self._addresses.resolve(request)

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request, after waiting for its slots. Raises FetchError, StoreError, TooLongError."""
        tools, patience = self._tools, self._tools.settings.patience
        if request.address and (why := guard(request.address, tools.settings.networks)):
            return Answers(request, tools.clock()).refused(f"{why}; {ALLOW}")
        if request.url.endswith("/") and (listed := self._recursive.listing(request, tools.clock())) is not None:
            return await self._listing(Answers(request, tools.clock()), listed)
        async with tools.pace.host(request.host, request.pause / 1000, patience):
            address = request.address or (await self._addresses.of(request.host))[0]
            async with tools.pace.address(address, patience), self._kept.room(patience), tools.places:
                return await self._bounded(request, address)

    async def _bounded(self, request: FetchRequest, address: str) -> list[Record]:
        settings = self._tools.settings
        whole = asyncio.timeout(settings.total_timeout)
        try:
            async with whole:
                return await self._connected(request, address)
        except TimeoutError as error:
            if not whole.expired():
                raise FetchError("no answer in time", retryable=True) from error
            # Not retryable: another try would occupy its host for as long again.
            raise FetchError(f"not whole after {settings.total_timeout:g} seconds", retryable=False) from error

    async def _connected(self, request: FetchRequest, address: str) -> list[Record]:
        """Answer a request on the kept connection of its host, or on a new one where there is none, or it was closed."""
        kept = self._kept.take(request.host, address)
        if kept is not None and not await kept.is_quiet():
            kept.close()
        elif kept is not None:
            try:
                return await self._exchange(request, kept)
            except StaleError:
                pass
        port = self._addresses.port(request.host)
        return await self._exchange(request, await Control.open(self._tools.settings, address, port))

    async def _exchange(self, request: FetchRequest, control: Control) -> list[Record]:
        answers = Answers(request, self._tools.clock())
        try:
            found = await (self._directory if request.url.endswith("/") else self._file)(control, answers)
        except RefusedError:
            self._kept.keep(request.host, control)
            raise
        except BaseException:
            control.close()
            raise
        self._kept.keep(request.host, control)
        return found

    # ---- files ---------------------------------------------------------------------------------------------------

    async def _file(self, control: Control, answers: Answers) -> list[Record]:
        path, known, settings = control.path(*ftp_path(answers.request.url)), answers.request.validators, self._tools.settings
        size, modified = await control.size(path), await control.modified(path)
        if known is not None and modified and (known.size, known.mtime) == (size, modified):
            return answers.unchanged(known)
        if (size or 0) > settings.max_body:
            raise FetchError(f"body larger than {settings.max_body:,} bytes", retryable=False)
        async with Body(self._tools.blobs, self._spools, settings.spool) as body:
            try:
                async with control.transfer("RETR", path) as pieces:
                    async for piece in pieces():
                        await body.write(piece)
            except RefusedError as refused:
                # The code says "not a plain file" as well as "not found" (RFC 959, 4.2.2).
                if refused.code == 550 and (await control.enter(path)).code == 250:
                    return answers.moved(answers.request.url + "/")
                raise
            if size is not None and body.size != size:
                raise FetchError(f"{body.size:,} bytes instead of {size:,}: cut off, or changed while reading", retryable=True)
            return await _answer(answers, body, modified=modified)

    # ---- directories ---------------------------------------------------------------------------------------------

    async def _directory(self, control: Control, answers: Answers) -> list[Record]:
        url = answers.request.url
        listed = await self._recursive.fetched(answers.request, answers.now, control)
        if listed is None:
            path = control.path(*ftp_path(url))
            if path and (reply := await control.enter(path)).code // 100 != 2:
                raise RefusedError("CWD", reply)
            lines, form = await _listed(control)
            # Up to a million lines: other hosts go on meanwhile.
            normal = await asyncio.to_thread(normalize, lines, form, answers.now)
            if self._tools.settings.ftp_recursive:
                self._recursive.note(answers.request, normal, answers.now)
            listed = Dated(normal, answers.now)
        return await self._listing(answers, listed)

    async def _listing(self, answers: Answers, listed: Dated) -> list[Record]:
        async with Body(self._tools.blobs, self._spools, self._tools.settings.spool) as body:
            await body.write(listed.normal)
            return await _answer(answers, body, modified=listed.time * 10**6, listing=True)

    async def close(self) -> None:
        """Close connections and threads."""
        self._addresses.close()
        self._kept.close()
        self._recursive.close()


async def _listed(control: Control) -> tuple[list[bytes], Form]:
    """Return the lines of the listing of the current directory."""
    if b"MLST" in control.features:
        try:
            return await _lines(control, "MLSD"), "MLSD"
        except RefusedError as refused:
            if refused.code not in UNKNOWN:
                raise
            control.features -= {b"MLST"}
    return await _lines(control, "LIST"), "LIST"


async def _lines(control: Control, form: Form) -> list[bytes]:
    lines: list[bytes] = []
    rest = b""
    async with control.transfer(form) as pieces:
        async for piece in pieces():
            *whole, rest = (rest + piece).split(b"\n")
            lines += (line.removesuffix(b"\r") for line in whole)
            if max(map(len, (rest, *whole))) > LONGEST:
                raise FetchError(f"a line of more than {LONGEST:,} bytes in a listing", retryable=False)
            if len(lines) > MAX_LISTED:
                # What is left out may be anything, so the listing is not whole.
                return [*lines[:MAX_LISTED], UNREADABLE + b"more lines"]
    return [*lines, rest.removesuffix(b"\r")] if rest else lines


async def _answer(answers: Answers, body: Body, *, modified: int = 0, listing: bool = False) -> list[Record]:
    """Return the answer with a body that was received: unchanged, or fetched."""
    known, validators = answers.request.validators, Validators(md5=body.md5, size=body.size, mtime=modified)
    if known is not None and (known.md5, known.size) == (body.md5, body.size):
        return answers.unchanged(validators, listing=listing)
    media = MEDIA if listing else ""
    return answers.fetched(
        await body.store(), validators, media, {"content-type": media} if media else {}, listing=listing, status=226
    )


class KeptConnections:
    """Control connections between exchanges: one a host, each for `idle` seconds, and never more than `MAX_CONTROL` in all."""

    def __init__(self, idle: float) -> None:
        self._idle = idle
        self._kept: dict[str, tuple[Control, asyncio.TimerHandle]] = {}
        self._room = asyncio.Semaphore(MAX_CONTROL)
        self._used = 0

    @asynccontextmanager
    async def room(self, patience: float) -> AsyncIterator[None]:
        """Make room for one connection in use. Raises TooLongError if that takes too long."""
        try:
            async with asyncio.timeout(patience):
                await self._room.acquire()
        except TimeoutError:
            raise TooLongError(patience) from None
        self._used += 1
        try:
            yield
        finally:
            self._used -= 1
            self._room.release()

    def take(self, host: str, address: str) -> Control | None:
        """Return the connection that is kept for a host, and close others until there is room for one more."""
        control, timer = self._kept.pop(host, (None, None))
        if timer is not None:
            timer.cancel()
        if control is not None and control.address != address:
            control.quit()
            control = None
        while self._kept and len(self._kept) + self._used > MAX_CONTROL:
            self._drop(next(iter(self._kept)))
        return control

    def keep(self, host: str, control: Control) -> None:
        """Keep a connection that is fit for another exchange; close any other."""
        if not control.clean:
            control.close()
            return
        if host in self._kept:
            self._drop(host)
        control.idle = True
        self._kept[host] = control, asyncio.get_running_loop().call_later(self._idle, self._drop, host)

    def _drop(self, host: str) -> None:
        control, timer = self._kept.pop(host)
        timer.cancel()
        control.quit()

    def close(self) -> None:
        """Close all connections."""
        for host in list(self._kept):
            self._drop(host)
