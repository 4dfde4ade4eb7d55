"""One FTP control connection (RFC 959; EPSV: RFC 2428; MLSD, SIZE and MDTM: RFC 3659), logged in as anonymous (RFC 1635).

Laws:
- Every reply is limited in bytes, lines and time, and every argument is free of line ends: no name can add a command.
- Data connections go to the address of the control connection, whatever address the server names (RFC 2577, 3).
- A connection whose last exchange did not end as the standard says is not used again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple, Self

from processors.urls import guard
from streams.fetch.adapters.connection import Connection
from streams.fetch.answers import FetchError, bounded
from streams.fetch.settings import FetchSettings

MAX_REPLY_LINE = 16_384
"""Maximum bytes of one line of a reply: it may repeat a path."""
MAX_REPLY_LINES = 1_000
MAX_REPLY = 262_144
"""Maximum bytes of one reply."""
MAX_PRELIMINARY = 5
"""Maximum number of replies that announce another one, before the one that is waited for."""
LOWEST_PORT = 1_024
"""Data connections to lower ports are refused: other services listen there."""
UNKNOWN = (500, 501, 502, 503, 504, 522)
"""Codes of a command that a server does not know or support."""
UNOPENED = b"failed to open directory"
"""What vsftpd says in its reply of success to LIST of a directory that it may not read; it sends no entry then."""
LATEST = 1 << 63

_REPLY = re.compile(rb"([1-6]\d\d)([ -]|$)(.*)", re.DOTALL)
_EPSV = re.compile(rb"\(([!-~])\1\1(\d{1,5})\1\)")
_PASV = re.compile(rb"(?:\d{1,3},){4}(\d{1,3}),(\d{1,3})(?!\d)")
_PWD = re.compile(rb'"((?:[^"]|"")*)"')
_TIME = re.compile(rb"(\d{14})(?:\.(\d{1,9})\d*)?")


class Reply(NamedTuple):
    """A reply: its code, and its lines without code and line end."""

    code: int
    lines: tuple[bytes, ...]

    @property
    def text(self) -> bytes:
        """The text of the last line."""
        return self.lines[-1]

    def __str__(self) -> str:
        return bounded(f"{self.code} {self.text.decode('utf-8', 'replace')}", 120)


class RefusedError(FetchError):
    """The server answered a command with another code than those of success."""

    def __init__(self, command: str, reply: Reply) -> None:
        # 530: "not logged in" is what servers answer that have too many users.
        super().__init__(f"{command}: {reply}", retryable=400 <= reply.code < 500 or reply.code == 530)
        self.code = reply.code


class StaleError(Exception):
    """The server closed a connection while it was kept: not a failure, another one has to be opened."""


class Control:
    """A control connection. Not shared between tasks at a time."""

    def __init__(self, settings: FetchSettings, address: str, port: int) -> None:
        self.address = address
        self._settings = settings
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._extended = True
        """Whether EPSV may work."""
        self.idle = False
        """Whether it was kept, and no reply has arrived since."""
        self.clean = True
        """Whether each exchange ended regularly, and the directory is that of the login."""
        self.home: bytes | None = None
        """The directory of the login; None: unknown, or not as on Unix."""
        self.features: frozenset[bytes] = frozenset()

    @classmethod
    async def open(cls, settings: FetchSettings, address: str, port: int) -> Self:
        """Connect and log in. Raises FetchError."""
        self = cls(settings, address, port)
        if why := guard(address, settings.networks):
            raise FetchError(why, retryable=False)
        try:
            async with asyncio.timeout(settings.connect_timeout):
                self._reader, self._writer = await asyncio.open_connection(address, port, limit=MAX_REPLY_LINE)
        except TimeoutError as error:
            raise FetchError("no connection in time", retryable=True, unreachable=True) from error
        except OSError as error:
            raise FetchError(f"cannot connect: {error.strerror or error}", retryable=True, unreachable=True) from error
        try:
            await self._log_in()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Close the connection at once."""
        self.clean = False
        self._writer.transport.abort()

    def quit(self) -> None:
        """Say goodbye and close the connection, without waiting for an answer."""
        if not self._writer.transport.is_closing():
            self._writer.write(b"QUIT\r\n")
        self.clean = False
        self._writer.close()

    async def is_quiet(self) -> bool:
        """Return whether a kept connection is open, and nothing has arrived: a stray reply would be taken for that of a command."""
        try:
            async with asyncio.timeout(0):
                await self._reader.readuntil(b"\n")
        except TimeoutError:
            return True
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return False
        return False

    # ---- commands and replies ------------------------------------------------------------------------------------

    async def command(self, verb: str, argument: bytes = b"") -> Reply:
        """Send a command and return the reply. Raises FetchError, and StaleError on a connection that was kept."""
        if any(byte in argument for byte in b"\r\n\0"):
            raise FetchError("a name with a line end", retryable=False)
        if not self._writer.transport.is_closing():  # uvloop raises RuntimeError; the reply shows that it is closed
            self._writer.write(verb.encode() + (b" " + argument if argument else b"") + b"\r\n")
        return await self.reply()

    async def demand(self, verb: str, argument: bytes = b"") -> Reply:
        """Send a command and return the reply of success (2yz). Raises also RefusedError."""
        reply = await self.command(verb, argument)
        if reply.code // 100 != 2:
            raise RefusedError(verb, reply)
        return reply

    async def reply(self) -> Reply:
        """Return the next reply (RFC 959, 4.2)."""
        try:
            async with asyncio.timeout(self._settings.answer_timeout):
                reply = await self._read()
        except TimeoutError as error:
            raise FetchError("no answer in time", retryable=True) from error
        except (OSError, asyncio.IncompleteReadError) as error:
            if self.idle:
                raise StaleError from error
            raise FetchError("the server closed the connection", retryable=True) from error
        if reply.code == 421:
            if self.idle:
                raise StaleError
            raise FetchError(f"the server closed the connection: {reply}", retryable=True)
        self.idle = False
        return reply

    async def _read(self) -> Reply:
        lines: list[bytes] = []
        size, code = 0, b""
        while True:
            line = await self._line()
            size += len(line)
            found = _REPLY.fullmatch(line)
            if not code and found is None:
                raise FetchError(f"not an FTP server: {bounded(line[:60].decode('utf-8', 'replace'))}", retryable=False)
            if found is not None and (not code or found[1] == code):
                code = found[1]
                lines.append(found[3])
                if found[2] != b"-":
                    return Reply(int(code), tuple(lines))
            else:
                lines.append(line)
            if len(lines) >= MAX_REPLY_LINES or size > MAX_REPLY:
                raise FetchError(f"a reply of more than {MAX_REPLY_LINES:,} lines or {MAX_REPLY:,} bytes", retryable=False)

    async def _line(self) -> bytes:
        try:
            return (await self._reader.readuntil(b"\n")).rstrip(b"\r\n")
        except asyncio.LimitOverrunError as error:
            raise FetchError(f"a line of more than {MAX_REPLY_LINE:,} bytes in a reply", retryable=False) from error

    # ---- login ---------------------------------------------------------------------------------------------------

    async def _log_in(self) -> None:
        greeting = await self.reply()
        for _ in range(MAX_PRELIMINARY):
            if greeting.code != 120:  # "service ready in nnn minutes"
                break
            greeting = await self.reply()
        if greeting.code != 220:
            raise RefusedError("greeting", greeting)
        reply = await self.command("USER", b"anonymous")
        if reply.code == 331:
            # The password of anonymous is an address to write to (RFC 1635); here, who we are.
            agent = self._settings.user_agent
            reply = await self.command("PASS", (agent if "@" in agent else f"{agent}@").encode())
        if reply.code not in (230, 202):
            raise RefusedError("anonymous login", reply)
        features = await self.command("FEAT")
        if features.code == 211:
            # One feature a line, indented by a blank (RFC 2389, 3.2).
            self.features = frozenset(line.split()[0].upper() for line in features.lines[1:-1] if line.strip())
        if b"UTF8" in self.features:
            await self.command("OPTS", b"UTF8 ON")
        await self.demand("TYPE", b"I")
        where = await self.command("PWD")
        found = _PWD.match(where.text) if where.code == 257 else None
        if found and found[1].startswith(b"/") and not any(byte in found[1] for byte in b"\r\n\0"):
            self.home = found[1].replace(b'""', b'"')

    def path(self, at_top: bool, path: bytes) -> bytes:
        """Return a path as the server understands it: absolute, where the directory of the login is known."""
        if at_top:
            return b"/" + path
        return path if self.home is None else (self.home.rstrip(b"/") + b"/" + path).rstrip(b"/") or b"/"

    # ---- what a path is ------------------------------------------------------------------------------------------

    async def size(self, path: bytes) -> int | None:
        """Return the size of a file in bytes; None: unknown."""
        reply = await self.command("SIZE", path)
        text = reply.text.strip()
        return int(text) if reply.code == 213 and text.isdigit() and len(text) < 19 else None

    async def modified(self, path: bytes) -> int:
        """Return the time of the last change of a file in ns since the epoch (RFC 3659, 3); 0: unknown."""
        reply = await self.command("MDTM", path)
        found = _TIME.fullmatch(reply.text.strip()) if reply.code == 213 else None
        try:
            moment = datetime.strptime(found[1].decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC) if found else None
        except ValueError:
            return 0
        nanoseconds = int(moment.timestamp()) * 10**9 + int((found[2] or b"0").ljust(9, b"0")) if moment and found else 0
        return nanoseconds if 0 < nanoseconds < LATEST else 0

    async def enter(self, path: bytes) -> Reply:
        """Change the directory, and return the reply; a relative path makes the connection unfit for further exchanges."""
        self.clean = self.clean and self.home is not None
        return await self.command("CWD", path)

    # ---- data ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def transfer(self, verb: str, argument: bytes = b"") -> AsyncIterator[Callable[[], AsyncIterator[bytes]]]:
        """Yield a function that iterates over the data that a command gives. Raises RefusedError if there are none.

        If the data are not read to their end, the connection is closed.
        """
        port, ended = await self._passive(), False
        async with AsyncExitStack() as stack:
            try:
                data = await stack.enter_async_context(Connection(self._settings, self.address, port))
            except FetchError as failure:
                raise FetchError(f"no data connection: {failure.reason}", retryable=failure.retryable) from failure
            reply = await self.command(verb, argument)
            if reply.code // 100 not in (1, 2):
                raise RefusedError(verb, reply)

            async def pieces() -> AsyncIterator[bytes]:
                nonlocal ended
                async for piece in data.pieces():
                    yield piece
                ended = True

            # Also after an error: the reply that ends the transfer would be read as that to the next command.
            stack.callback(lambda: None if ended else self.close())
            yield pieces
        if not ended:
            return
        for _ in range(MAX_PRELIMINARY):
            if reply.code // 100 != 1:
                break
            reply = await self.reply()
        if reply.code // 100 != 2:
            raise FetchError(f"{verb} was cut off: {reply}", retryable=True)
        if UNOPENED in reply.text:
            raise RefusedError(verb, reply)

    async def _passive(self) -> int:
        """Return the port of the next data connection. Its address is ignored: it is that of the control connection."""
        reply, found, port = Reply(500, (b"EPSV",)), None, 0
        if self._extended:
            reply = await self.command("EPSV")
            found = _EPSV.search(reply.text) if reply.code == 229 else None
            self._extended = found is not None
            port = int(found[2]) if found else 0
        if found is None and ":" not in self.address:
            reply = await self.command("PASV")
            found = _PASV.search(reply.text) if reply.code == 227 else None
            port = int(found[1]) * 256 + int(found[2]) if found else 0
        if found is None:
            raise FetchError(f"no passive mode: {reply}", retryable=400 <= reply.code < 500)
        if not LOWEST_PORT <= port < 65_536:
            raise FetchError(f"no passive mode: port {port}", retryable=False)
        return port
