"""The FTP adapter against servers that misbehave: bounded waits, one event with a reason, and nothing removed."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import pytest
import uvloop

from schemas.records import CrawlEvent
from streams.fetch import FetchSettings
from streams.fetch.adapters import ftp, ftp_control
from streams.fetch.adapters.connection import Connection
from streams.fetch.answers import FetchError
from tests.streams.fetch.ftp_peer import FOREVER, LOOPBACK, FtpPeer

SHORT: dict[str, Any] = {"answer_timeout": 0.4, "connect_timeout": 0.4, "total_timeout": 5.0}
"""Time limits of the tests of servers that do not answer: what is asserted is which limit ends the wait."""


async def _silent(peer: FtpPeer, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(FOREVER)


async def _drip(peer: FtpPeer, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"2")
        await writer.drain()
        await asyncio.sleep(0.05)


async def _flood(peer: FtpPeer, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


async def _lines(peer: FtpPeer, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"220-welcome\r\n" * 1_000)
        await writer.drain()


async def _hang_up(peer: FtpPeer, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _cut(peer: FtpPeer, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hel")


REPLIES = [
    ({"": _silent}, "no answer in time", True),
    ({"": _drip}, "no answer in time", True),
    ({"": _flood}, "a line of more than", False),
    ({"": _lines}, "a reply of more than", False),
    ({"": b"SSH-2.0-x\r\n"}, "not an FTP server: SSH-2.0-x", False),
    ({"": b"421 busy\r\n"}, "the server closed the connection: 421 busy", True),
    ({"": _hang_up}, "the server closed the connection", True),
    ({"PASS": b"530 too many users\r\n"}, "anonymous login: 530 too many users", True),
    ({"USER": b"332 account\r\n"}, "anonymous login: 332", False),
    ({"*": b"230 ok\r\n", "": b"220 ready\r\n"}, "no passive mode: 230 ok", False),
    ({"*": b"220 ok\r\n"}, "anonymous login: 220 ok", False),
    ({"RETR": _silent, "MLSD": _silent}, "no answer in time", True),
    ({"RETR": _drip, "MLSD": _drip}, "no answer in time", True),
    ({"EPSV": b"229 ok (|||1|)\r\n"}, "no passive mode: port 1", False),
    ({"EPSV": b"229 ok (|||99999|)\r\n"}, "no passive mode: port 99999", False),
    ({"EPSV": b"229 ok (|||65535|)\r\n"}, "no data connection: cannot connect", True),
    ({"EPSV": b"502 no\r\n", "PASV": b"227 ok\r\n"}, "no passive mode: 227 ok", False),
    ({"SIZE": b"213 -1\r\n", "RETR": b"150 here\r\n426 cut\r\n", "MLSD": b"150 here\r\n426 cut\r\n"}, "was cut off: 426 cut", True),
]


@pytest.mark.parametrize(("replies", "reason", "retryable"), REPLIES)
@pytest.mark.parametrize("path", ["a", "d/"])
def test_misbehaving_control_connection_is_one_failure(
    replies: Any, reason: str, retryable: bool, path: str, ftp_world: Any, run: Any
) -> None:
    """Whatever the control connection does, the wait is bounded and ends in one failure with its reason; another host goes on."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer(replies), **SHORT) as here, FtpPeer().running() as other:
            (event,) = await here.get(path)
            assert isinstance(event, CrawlEvent)
            assert (event.kind, event.retryable) == ("failed", retryable)
            assert reason in event.reason
            assert (await here.fetcher.fetch(here.make(f"{other.url}a", address=LOOPBACK)))[-1].kind == "fetched"

    run(scenario())


DATA = [
    ("a", _silent, {}, "no answer in time", True),
    ("d/", _silent, {}, "no answer in time", True),
    ("a", _drip, {"grace": 0.2, "min_rate": 1_000}, "too slow", True),
    ("d/", _drip, {"grace": 0.2, "min_rate": 1_000}, "too slow", True),
    ("a", _drip, {"total_timeout": 0.5, "answer_timeout": 9.0}, "not whole after 0.5 seconds", False),
    ("a", _flood, {"max_body": 1_000_000}, "body larger than 1,000,000 bytes", False),
    ("d/", _flood, {}, "a line of more than", False),
    ("a", _cut, {}, "3 bytes instead of 5", True),
]


@pytest.mark.parametrize(("path", "data", "settings", "reason", "retryable"), DATA)
def test_misbehaving_data_connection_is_one_failure(
    path: str, data: Any, settings: Any, reason: str, retryable: bool, ftp_world: Any, run: Any
) -> None:
    """A data connection that is slow, endless, silent or cut off ends in one failure with its reason; the next URL goes on."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer(data=data), **(SHORT | settings)) as here:
            (event,) = await here.get(path)
            assert (event.kind, event.retryable) == ("failed", retryable)
            assert reason in event.reason
            here.peer.data = b"hello"
            assert (await here.get("b"))[-1].kind == "fetched"

    run(scenario())


def test_broken_connection_is_a_failure_under_uvloop() -> None:
    """A connection that the peer resets between two commands is a retryable failure, as under the loop of the standard library."""

    async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def scenario() -> None:
        settings = FetchSettings(allow=("127.0.0.0/8",))
        server = await asyncio.start_server(_reset, LOOPBACK, 0)
        async with FtpPeer().running() as peer:
            control = await ftp_control.Control.open(settings, LOOPBACK, peer.port)
            control._writer.transport.abort()
            await asyncio.sleep(0.1)
            with pytest.raises(FetchError, match="the server closed the connection") as closed:
                await control.command("NOOP")
        assert closed.value.retryable
        with pytest.raises(FetchError, match="connection broken") as broken:
            await exchange(Connection(settings, LOOPBACK, server.sockets[0].getsockname()[1]))
        assert broken.value.retryable
        server.close()

    async def exchange(opened: Connection) -> None:
        async with opened as connection:
            await connection.send(b"a\r\n")
            await asyncio.sleep(0.1)
            connection.post(b"b\r\n")
            await connection.send(b"c\r\n")

    uvloop.run(scenario())


def test_address_of_passive_mode_is_ignored(ftp_world: Any, run: Any) -> None:
    """Data connections go to the address of the server, whatever address it names (RFC 2577, 3)."""

    async def scenario() -> None:
        async with ftp_world() as here:
            high, low = divmod(here.peer.data_port, 256)
            here.peer.replies = {"EPSV": b"500 what?\r\n", "PASV": f"227 ok (192,0,2,1,{high},{low})\r\n".encode()}
            for path in "ab":
                assert (await here.get(path))[-1].kind == "fetched"
            assert (here.peer.commands.count("EPSV"), here.peer.commands.count("PASV")) == (1, 2)

    run(scenario())


def test_recursive_listing_of_the_login_says_nothing_of_the_root_directory(ftp_world: Any, run: Any, split: Any) -> None:
    """An ls-lR in the directory of the login does not replace listings below the root directory, where names may be the same."""
    text = b".:\ntotal 0\n\n./pub:\ntotal 0\n-rw-r--r-- 1 a a 5 Jan  1 2020 x\n"

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"PWD": b'257 "/home"\r\n', "SIZE": b"502 no\r\n"})) as here:
            here.peer.data = b"type=file;size=%d;modify=20231101000000; ls-lR\r\n" % len(text)
            await here.get()
            here.peer.data = text
            assert b"; x\n" in split(await here.get("pub/"))[0].body
            here.peer.data = b"type=file;size=1; y\r\n"
            assert split(await here.get("%2F/pub/"))[0].body == b"type=file;size=1; y\n"
            assert here.peer.commands[-3:] == ["CWD /pub", "EPSV", "MLSD"]

    run(scenario())


def test_recursive_listing_older_than_the_last_listing_does_not_count(ftp_world: Any, run: Any, split: Any) -> None:
    """A directory that was listed by the server is not listed from an older ls-lR, which lacks what was added since."""
    text = b".:\ntotal 0\n\n./pub:\ntotal 0\n"

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"SIZE": b"502 no\r\n"}, b"type=file; x\r\n")) as here:
            _, event = split(await here.get("pub/"))
            here.peer.data = b"type=file;size=%d;modify=20231101000000; ls-lR\r\n" % len(text)
            await here.get()
            here.peer.data = b"type=file; x\r\n"
            (again,) = await here.get("pub/", validators=event.validators)
            assert again.kind == "unchanged"
            here.peer.data = text
            got, event = split(await here.get("pub/"))
            assert got.body == b""
            assert [record.kind for record in await here.get("pub/", validators=event.validators)] == ["unchanged"]
            assert here.peer.commands.count("RETR /ls-lR") == 1

    run(scenario())


def test_too_large_file_is_not_requested(ftp_world: Any, run: Any) -> None:
    """A file whose size exceeds the limit is a failure before it is transferred."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"SIZE": b"213 1000\r\n"}), max_body=999) as here:
            (event,) = await here.get("a")
            assert (event.kind, event.retryable, event.reason) == ("failed", False, "body larger than 999 bytes")
            assert not [command for command in here.peer.commands if command.startswith("RETR")]

    run(scenario())


def test_listing_with_too_many_lines_is_not_whole(ftp_world: Any, run: Any, split: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a listing with more lines than the limit the first are kept, with a line that says so; the connection is given up."""
    monkeypatch.setattr(ftp, "MAX_LISTED", 10)

    async def scenario() -> None:
        async with ftp_world(FtpPeer(data=b"type=file; x\r\n" + b"\r\n" * 1_000_000)) as here:
            got, _ = split(await here.get("d/"))
            assert got.body == b"type=unreadable; more lines\ntype=file; x\n"
            here.peer.data = b"hello"
            assert (await here.get("a"))[-1].kind == "fetched"
            assert here.peer.connections == 2

    run(scenario())


@pytest.mark.parametrize("value", [b"99999999999999", b"20240230000000", b"19691231235959", b"9999", b"99991231235959", b""])
def test_impossible_time_is_unknown(value: bytes, ftp_world: Any, run: Any, split: Any) -> None:
    """A time that does not exist, or that no record can hold, is unknown."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"MDTM": b"213 %s\r\n" % value})) as here:
            _, event = split(await here.get("a"))
        assert event.validators.mtime == 0

    run(scenario())
