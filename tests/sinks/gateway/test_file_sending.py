"""Files sent by sendfile(2), over real connections, in the event loop of the gateway."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
import uvloop
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from sinks.gateway import guard
from sinks.gateway.file_sending import FileAnswer, send_file
from sinks.gateway.guard import BrokenOffError
from sinks.gateway.server import Protocol

SIZE = 8_000_000
"""More than the buffers of a connection hold."""
HEAD = b"head\n"
Reader = Callable[[socket.socket], Awaitable[None]]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[BinaryIO]:
    """An open file in which no two pieces are equal."""
    path = tmp_path / "file"
    path.write_bytes(b"".join(number.to_bytes(8, "big") for number in range(SIZE // 8)))
    with path.open("rb") as found:
        yield found


def sent(file: BinaryIO, size: int, read: Reader) -> None:
    """Send a head and a file to a client. Raises what sending raises."""

    async def scenario() -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                writer.write(HEAD)
                await send_file(writer.transport, file.fileno(), size)
            except BrokenOffError as error:
                writer.transport.abort()
                done.set_exception(error)
            else:
                writer.close()
                done.set_result(None)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            with socket.socket() as client:
                # A small window, so that the server has to wait.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, server.sockets[0].getsockname())
                await read(client)
                await done

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def test_file_is_sent_behind_what_was_written(file: BinaryIO) -> None:
    """The client receives the head, then each byte of the file once, in order."""
    received = bytearray()

    async def read(client: socket.socket) -> None:
        while piece := await asyncio.get_running_loop().sock_recv(client, 1 << 16):
            received.extend(piece)

    sent(file, SIZE, read)
    file.seek(0)
    assert received == HEAD + file.read()


def test_reader_that_goes(file: BinaryIO) -> None:
    """A client that closes its connection ends the sending."""

    async def leave(client: socket.socket) -> None:
        await asyncio.get_running_loop().sock_recv(client, 1 << 16)
        client.close()

    with pytest.raises(BrokenOffError):
        sent(file, SIZE, leave)


def test_reader_that_does_not_read(file: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads nothing is given up after the time that other answers have, too."""
    monkeypatch.setattr(guard, "PATIENCE", 0.2)

    async def nothing(_: socket.socket) -> None:
        pass

    with pytest.raises(BrokenOffError, match="nobody reads it"):
        sent(file, SIZE, nothing)


def test_file_that_became_shorter(file: BinaryIO) -> None:
    """A file with fewer bytes than announced ends the sending with an error, not with an answer that seems whole."""
    os.truncate(file.name, 100)

    async def read(client: socket.socket) -> None:
        while await asyncio.get_running_loop().sock_recv(client, 1 << 16):
            pass

    with pytest.raises(BrokenOffError, match="shorter"):
        sent(file, SIZE, read)


def test_reader_that_goes_before_the_answer(file: BinaryIO) -> None:
    """A client that has gone when the answer begins is nothing unexpected, and the answer ends."""

    async def scenario() -> list[str]:
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        ends: list[str] = []

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            try:
                await FileAnswer(file, lambda: ends.append("ended"), "text/plain", {})(scope, receive, send)
            except Exception as error:  # noqa: BLE001 - which one is what is tested
                done.set_result(error)
            else:
                done.set_result(None)

        config = Config(answer, http=Protocol, lifespan="off", log_config=None)
        config.load()
        loop = asyncio.get_running_loop()
        async with await loop.create_server(lambda: Protocol(config, ServerState(), {}), "127.0.0.1", 0) as server:
            with socket.create_connection(server.sockets[0].getsockname()) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return [*ends, type(await done).__name__, *ends]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(scenario()) == ["BrokenOffError", "ended"]
