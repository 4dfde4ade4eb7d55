"""An FTP server in the test's own event loop, each of whose replies and data connections a test can replace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

LOOPBACK = "127.0.0.1"
FOREVER = 3_600
Behaviour = Callable[["FtpPeer", asyncio.StreamWriter], Awaitable[None]]
"""Writes a reply to the control connection."""

USUAL: dict[str, bytes] = {
    "": b"220 ready\r\n",
    "USER": b"331 password\r\n",
    "PASS": b"230 in\r\n",
    "FEAT": b"211-Features:\r\n MLST type*;size*;modify*;\r\n SIZE\r\n MDTM\r\n211 End\r\n",
    "TYPE": b"200 ok\r\n",
    "PWD": b'257 "/" is current\r\n',
    "CWD": b"250 ok\r\n",
    "SIZE": b"213 5\r\n",
    "MDTM": b"213 20240102030405\r\n",
    "QUIT": b"221 bye\r\n",
}


@dataclass
class FtpPeer:
    """The server: `replies` by command ("": the greeting), `data` of RETR, MLSD and LIST, their `end`, the `commands` it got."""

    replies: Mapping[str, bytes | Behaviour] = field(default_factory=dict)
    data: bytes | Behaviour = b"hello"
    end: bytes = b"226 done\r\n"
    commands: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    data_port: int = 0

    @property
    def url(self) -> str:
        return f"ftp://{LOOPBACK}:{self.port}/"

    async def said(self, command: str) -> None:
        """Wait until the client has sent a command."""
        while command not in self.commands:  # noqa: ASYNC110 - the list may be read at any time
            await asyncio.sleep(0.01)

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._say("", writer)
            while line := await reader.readline():
                command = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
                self.commands.append(command)
                await self._say(command.partition(" ")[0], writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _say(self, verb: str, writer: asyncio.StreamWriter) -> None:
        reply = self.replies.get(verb, self.replies.get("*", USUAL.get(verb)))
        if reply is None and verb == "EPSV":
            reply = f"229 ok (|||{self.data_port}|)\r\n".encode()
        elif reply is None and verb in ("RETR", "MLSD", "LIST"):
            reply = self._transfer
        if callable(reply):
            await reply(self, writer)
        else:
            writer.write(reply or b"502 not implemented\r\n")
        await writer.drain()

    async def _transfer(self, _: FtpPeer, writer: asyncio.StreamWriter) -> None:
        writer.write(b"150 here\r\n")
        await (await self._started.get()).wait()
        writer.write(self.end)

    async def transferred(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = asyncio.Event()
        self._started.put_nowait(sent)
        try:
            if callable(self.data):
                await self.data(self, writer)
            else:
                writer.write(self.data)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
            sent.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FtpPeer]:
        self._started: asyncio.Queue[asyncio.Event] = asyncio.Queue()
        control = await asyncio.start_server(self.control, LOOPBACK, 0)
        data = await asyncio.start_server(self.transferred, LOOPBACK, 0)
        self.port, self.data_port = (server.sockets[0].getsockname()[1] for server in (control, data))
        try:
            yield self
        finally:
            control.close()
            data.close()
