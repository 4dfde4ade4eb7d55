"""The FTP adapter against servers that misbehave: bounded waits, one event with a reason, and nothing removed."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from processors.essence.listings.ftp import MEDIA
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Record, Validators
from streams.fetch import Fetcher, FetchSettings
from streams.fetch.adapters import ftp, ftp_control
from streams.fetch.adapters.connection import Connection
from streams.fetch.answers import FetchError
from tests.streams.fetch.ftp_peer import FOREVER, LOOPBACK, FtpPeer

SHORT: dict[str, Any] = {"answer_timeout": 0.4, "connect_timeout": 0.4, "total_timeout": 5.0}
"""Time limits of the tests of servers that do not answer: what is asserted is which limit ends the wait."""


class World:
    """A fetcher, and a server."""

    def __init__(self, peer: FtpPeer, fetcher: Fetcher, make: Callable[..., FetchRequest]) -> None:
        self.peer = peer
        self.fetcher = fetcher
        self.make = make

    async def get(self, path: str = "", **options: Any) -> list[Record]:
        return await self.fetcher.fetch(self.make(self.peer.url + path, **({"address": LOOPBACK} | options)))


@pytest.fixture
def world(blobs: Any, now: int, make_request: Callable[..., FetchRequest]) -> Callable[..., Any]:
    """An async context manager that gives a World, without pauses and with loopback allowed, unless settings override it."""

    @asynccontextmanager
    async def open_world(peer: FtpPeer | None = None, **settings: Any) -> AsyncIterator[World]:
        usual: dict[str, Any] = {"pause": 0.0, "allow": ("127.0.0.0/8",)}
        given = FetchSettings(**(usual | settings))
        async with (peer or FtpPeer()).running() as running, Fetcher(given, blobs, lambda: now) as fetcher:
            yield World(running, fetcher, make_request)

    return open_world


def test_file_gives_object_and_validators(world: Any, run: Any, split: Any) -> None:
    """A file gives an object; size and time of the server are its validators, and once they are known, nothing is transferred."""

    async def scenario() -> None:
        async with world() as here:
            got, event = split(await here.get("a%20b/c"))
            known = await here.get("a%20b/c", validators=event.validators)
            commands = here.peer.commands
        assert (got.outcome, got.body, got.md5, got.status) == ("fetched", b"hello", hashlib.md5(b"hello").hexdigest(), 226)
        assert event.validators == Validators(md5=got.md5, size=5, mtime=1_704_164_645 * 10**9)
        assert [record.kind for record in known] == ["unchanged"]
        assert commands[:5] == ["USER anonymous", "PASS Harvest/0.1@", "FEAT", "TYPE I", "PWD"]
        again = [c for c in commands[5:] if c != "EPSV"]
        assert again == ["SIZE /a b/c", "MDTM /a b/c", "RETR /a b/c", "SIZE /a b/c", "MDTM /a b/c"]

    run(scenario())


def test_same_bytes_with_another_time_are_unchanged(world: Any, run: Any) -> None:
    """A file with another time, or on a server that states none, is transferred; the same bytes are unchanged."""

    async def scenario() -> None:
        for replies, modified in (({}, 1_704_164_645 * 10**9), ({"SIZE": b"502 no\r\n", "MDTM": b"502 no\r\n"}, 0)):
            async with world(FtpPeer(replies)) as here:
                known = Validators(md5=hashlib.md5(b"hello").hexdigest(), size=5, mtime=7)
                (event,) = await here.get("a", validators=known)
            assert (event.kind, event.validators.mtime) == ("unchanged", modified)

    run(scenario())


def test_directory_gives_a_listing(world: Any, run: Any, split: Any) -> None:
    """A directory gives its listing in the normal form, by MLSD if the server has it, otherwise by LIST; the same is unchanged."""

    async def scenario() -> None:
        mlsd, listed = b"size=5;type=file; x\r\ntype=dir; d\r\n", b"-rw-r--r-- 1 a a 5 Jan  1 2020 x\r\n"
        cases: tuple[tuple[bytes, dict[str, bytes], str], ...]
        cases = ((mlsd, {}, "MLSD"), (listed, {"FEAT": b"500 what?\r\n"}, "LIST"), (listed, {"MLSD": b"502 no\r\n"}, "LIST"))
        for data, replies, command in cases:
            async with world(FtpPeer(replies, data)) as here:
                got, event = split(await here.get("pub/"))
                known = await here.get("pub/", validators=event.validators)
                assert here.peer.commands[-1] == command
                assert here.peer.commands[-3] == "CWD /pub"
            assert got.content_type == got.headers["content-type"] == MEDIA
            assert (b"type=file;size=5;" in got.body, event.listing) == (True, True)
            assert [(record.kind, record.listing) for record in known] == [("unchanged", True)]

    run(scenario())


def test_directory_that_the_server_cannot_read_is_a_failure(world: Any, run: Any) -> None:
    """A directory that vsftpd may not read, which it answers with no entry and a code of success, removes nothing."""

    async def scenario() -> None:
        end = b"226 Transfer done (but failed to open directory).\r\n"
        async with world(FtpPeer({"FEAT": b"500 what?\r\n"}, b"", end=end)) as here:
            (event,) = await here.get("pub/")
            assert (event.kind, event.retryable) == ("failed", False)
            assert "failed to open directory" in event.reason
            await here.get("pub/")
            assert here.peer.connections == 1

    run(scenario())


def test_file_that_is_a_directory_has_moved(world: Any, run: Any) -> None:
    """The URL of a directory without a slash redirects to the one with it."""

    async def scenario() -> None:
        async with world(FtpPeer({"RETR": b"550 not a plain file\r\n"})) as here:
            gone, event, found = await here.get("pub")
            url = here.peer.url
        assert isinstance(gone, FetchedObject)
        assert (gone.outcome, event.kind, event.reason, found.links[0].url) == ("gone", "gone", "moved", f"{url}pub/")

    run(scenario())


def test_resolving_requests_nothing(world: Any, run: Any) -> None:
    """A host is resolved by its address alone; its robots.txt is empty, and allows all."""

    async def scenario() -> None:
        async with world() as here:
            (event,) = await here.get("robots.txt", kind="resolve", address="")
            assert here.peer.connections == 0
        assert (event.kind, event.addresses, event.robots, event.reason) == ("resolved", (LOOPBACK,), b"", "")

    run(scenario())


def test_refused_address_is_not_connected_to(world: Any, run: Any) -> None:
    """An address that is not allowed is refused, resolved or pinned."""

    async def scenario() -> None:
        async with world(allow=()) as here:
            (event,) = await here.get("a")
            (resolved,) = await here.get("robots.txt", kind="resolve", address="")
            (unresolved,) = await here.get("a", address="")
            assert here.peer.connections == 0
        assert (event.kind, "loopback" in event.reason) == ("refused", True)
        assert (resolved.robots, "loopback" in resolved.reason) == (None, True)
        assert (unresolved.kind, unresolved.retryable, "loopback" in unresolved.reason) == ("failed", False, True)

    run(scenario())


@pytest.mark.parametrize(("code", "retryable"), [("550", False), ("450", True), ("451", True), ("530", True), ("553", False)])
def test_refusal_removes_nothing(code: str, retryable: bool, world: Any, run: Any) -> None:
    """No code of a file or a directory reports it as gone: what is missing is decided by the listing above it."""

    async def scenario() -> None:
        async with world(FtpPeer({verb: f"{code} no\r\n".encode() for verb in ("RETR", "CWD", "SIZE", "MDTM")})) as here:
            for path in ("a", "a/"):
                (event,) = await here.get(path)
                assert (event.kind, event.retryable, f"{code} no" in event.reason) == ("failed", retryable, True)
            assert here.peer.connections == 1

    run(scenario())


# ---- connections -----------------------------------------------------------------------------------------------------


def test_connection_is_kept_and_replaced_when_the_server_closed_it(world: Any, run: Any) -> None:
    """Exchanges share a connection; one that the server closed meanwhile, with 421 or without, is no failure."""

    async def scenario() -> None:
        for bye in (b"", b"421 too idle\r\n"):
            closing: list[asyncio.StreamWriter] = []

            async def remember(peer: FtpPeer, writer: asyncio.StreamWriter, closing: list[Any] = closing) -> None:
                closing.append(writer)
                writer.write(b"220 ready\r\n")

            async with world(FtpPeer({"": remember})) as here:
                for path in "ab":
                    assert (await here.get(path))[-1].kind == "fetched"
                assert here.peer.connections == 1
                closing[0].write(bye)
                closing[0].close()
                assert (await here.get("c"))[-1].kind == "fetched"
                assert here.peer.connections == 2

    run(scenario())


def test_connection_with_a_stray_reply_is_not_used_again(world: Any, run: Any) -> None:
    """A reply too many, which would be taken for that of the next command, ends the use of a connection."""

    async def scenario() -> None:
        async with world(FtpPeer({"RETR": b"550 no\r\n226 stray\r\n"}), pause=0.1) as here:
            assert (await here.get("a"))[-1].kind == "failed"
            here.peer.replies = {}
            assert (await here.get("b"))[-1].kind == "fetched"
            assert here.peer.connections == 2

    run(scenario())


def test_idle_connection_is_closed(world: Any, run: Any) -> None:
    """A connection that is not used for `ftp_idle` is closed with QUIT."""

    async def scenario() -> None:
        async with world(ftp_idle=0.0) as here:
            await here.get("a")
            await here.peer.said("QUIT")
            assert (await here.get("a"))[-1].kind == "fetched"
            assert here.peer.connections == 2

    run(scenario())


def test_number_of_connections_is_bounded(world: Any, run: Any, monkeypatch: pytest.MonkeyPatch, make_request: Any) -> None:
    """At most so many connections are open, those that are kept counted: the oldest one makes room."""
    monkeypatch.setattr(ftp, "MAX_CONTROL", 2)

    async def scenario() -> None:
        async with world() as here, FtpPeer().running() as second, FtpPeer().running() as third:
            peers = [here.peer, second, third]
            for peer in peers:
                request = make_request(f"{peer.url}a", address=LOOPBACK)
                assert (await here.fetcher.fetch(request))[-1].kind == "fetched"
            await here.peer.said("QUIT")
            assert [peer.commands[-1].partition(" ")[0] for peer in peers] == ["QUIT", "RETR", "RETR"]

    run(scenario())


def test_path_is_relative_where_the_home_directory_is_unknown(world: Any, run: Any) -> None:
    """Without PWD paths are relative to the login, and a connection that changed its directory is not used again."""

    async def scenario() -> None:
        async with world(FtpPeer({"PWD": b'257 "DISK:[DIR]"\r\n'})) as here:
            await here.get("pub/a")
            await here.get("%2Fetc/motd")
            await here.get("pub/")
            await here.get("pub/a")
            assert here.peer.connections == 2
            sent = [c for c in here.peer.commands if c.startswith(("RETR", "CWD"))]
        assert sent == ["RETR pub/a", "RETR /etc/motd", "CWD pub", "RETR pub/a"]

    run(scenario())


# ---- misbehaviour ----------------------------------------------------------------------------------------------------


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
    replies: Any, reason: str, retryable: bool, path: str, world: Any, run: Any
) -> None:
    """Whatever the control connection does, the wait is bounded and ends in one failure with its reason; another host goes on."""

    async def scenario() -> None:
        async with world(FtpPeer(replies), **SHORT) as here, FtpPeer().running() as other:
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
    path: str, data: Any, settings: Any, reason: str, retryable: bool, world: Any, run: Any
) -> None:
    """A data connection that is slow, endless, silent or cut off ends in one failure with its reason; the next URL goes on."""

    async def scenario() -> None:
        async with world(FtpPeer(data=data), **(SHORT | settings)) as here:
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


def test_address_of_passive_mode_is_ignored(world: Any, run: Any) -> None:
    """Data connections go to the address of the server, whatever address it names (RFC 2577, 3)."""

    async def scenario() -> None:
        async with world() as here:
            high, low = divmod(here.peer.data_port, 256)
            here.peer.replies = {"EPSV": b"500 what?\r\n", "PASV": f"227 ok (192,0,2,1,{high},{low})\r\n".encode()}
            for path in "ab":
                assert (await here.get(path))[-1].kind == "fetched"
            assert (here.peer.commands.count("EPSV"), here.peer.commands.count("PASV")) == (1, 2)

    run(scenario())


def test_recursive_listing_of_the_login_says_nothing_of_the_root_directory(world: Any, run: Any, split: Any) -> None:
    """An ls-lR in the directory of the login does not replace listings below the root directory, where names may be the same."""
    text = b".:\ntotal 0\n\n./pub:\ntotal 0\n-rw-r--r-- 1 a a 5 Jan  1 2020 x\n"

    async def scenario() -> None:
        async with world(FtpPeer({"PWD": b'257 "/home"\r\n', "SIZE": b"502 no\r\n"})) as here:
            here.peer.data = b"type=file;size=%d;modify=20231101000000; ls-lR\r\n" % len(text)
            await here.get()
            here.peer.data = text
            assert b"; x\n" in split(await here.get("pub/"))[0].body
            here.peer.data = b"type=file;size=1; y\r\n"
            assert split(await here.get("%2F/pub/"))[0].body == b"type=file;size=1; y\n"
            assert here.peer.commands[-3:] == ["CWD /pub", "EPSV", "MLSD"]

    run(scenario())


def test_recursive_listing_older_than_the_last_listing_does_not_count(world: Any, run: Any, split: Any) -> None:
    """A directory that was listed by the server is not listed from an older ls-lR, which lacks what was added since."""
    text = b".:\ntotal 0\n\n./pub:\ntotal 0\n"

    async def scenario() -> None:
        async with world(FtpPeer({"SIZE": b"502 no\r\n"}, b"type=file; x\r\n")) as here:
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


def test_too_large_file_is_not_requested(world: Any, run: Any) -> None:
    """A file whose size exceeds the limit is a failure before it is transferred."""

    async def scenario() -> None:
        async with world(FtpPeer({"SIZE": b"213 1000\r\n"}), max_body=999) as here:
            (event,) = await here.get("a")
            assert (event.kind, event.retryable, event.reason) == ("failed", False, "body larger than 999 bytes")
            assert not [command for command in here.peer.commands if command.startswith("RETR")]

    run(scenario())


def test_listing_with_too_many_lines_is_not_whole(world: Any, run: Any, split: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a listing with more lines than the limit the first are kept, with a line that says so; the connection is given up."""
    monkeypatch.setattr(ftp, "MAX_LISTED", 10)

    async def scenario() -> None:
        async with world(FtpPeer(data=b"type=file; x\r\n" + b"\r\n" * 1_000_000)) as here:
            got, _ = split(await here.get("d/"))
            assert got.body == b"type=unreadable; more lines\ntype=file; x\n"
            here.peer.data = b"hello"
            assert (await here.get("a"))[-1].kind == "fetched"
            assert here.peer.connections == 2

    run(scenario())


@pytest.mark.parametrize("value", [b"99999999999999", b"20240230000000", b"19691231235959", b"9999", b"99991231235959", b""])
def test_impossible_time_is_unknown(value: bytes, world: Any, run: Any, split: Any) -> None:
    """A time that does not exist, or that no record can hold, is unknown."""

    async def scenario() -> None:
        async with world(FtpPeer({"MDTM": b"213 %s\r\n" % value})) as here:
            _, event = split(await here.get("a"))
        assert event.validators.mtime == 0

    run(scenario())
