"""The FTP adapter: files, directories, conditions, and the connections that are kept."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from processors.essence.listings.ftp import MEDIA
from schemas.records import FetchedObject, Validators
from streams.fetch.adapters import ftp
from tests.streams.fetch.ftp_peer import LOOPBACK, FtpPeer


def test_file_gives_object_and_validators(ftp_world: Any, run: Any, split: Any) -> None:
    """A file gives an object; size and time of the server are its validators, and once they are known, nothing is transferred."""

    async def scenario() -> None:
        async with ftp_world() as here:
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


def test_same_bytes_with_another_time_are_unchanged(ftp_world: Any, run: Any) -> None:
    """A file with another time, or on a server that states none, is transferred; the same bytes are unchanged."""

    async def scenario() -> None:
        for replies, modified in (({}, 1_704_164_645 * 10**9), ({"SIZE": b"502 no\r\n", "MDTM": b"502 no\r\n"}, 0)):
            async with ftp_world(FtpPeer(replies)) as here:
                known = Validators(md5=hashlib.md5(b"hello").hexdigest(), size=5, mtime=7)
                (event,) = await here.get("a", validators=known)
            assert (event.kind, event.validators.mtime) == ("unchanged", modified)

    run(scenario())


def test_directory_gives_a_listing(ftp_world: Any, run: Any, split: Any) -> None:
    """A directory gives its listing in the normal form, by MLSD if the server has it, otherwise by LIST; the same is unchanged."""

    async def scenario() -> None:
        mlsd, listed = b"size=5;type=file; x\r\ntype=dir; d\r\n", b"-rw-r--r-- 1 a a 5 Jan  1 2020 x\r\n"
        cases: tuple[tuple[bytes, dict[str, bytes], str], ...]
        cases = ((mlsd, {}, "MLSD"), (listed, {"FEAT": b"500 what?\r\n"}, "LIST"), (listed, {"MLSD": b"502 no\r\n"}, "LIST"))
        for data, replies, command in cases:
            async with ftp_world(FtpPeer(replies, data)) as here:
                got, event = split(await here.get("pub/"))
                known = await here.get("pub/", validators=event.validators)
                assert here.peer.commands[-1] == command
                assert here.peer.commands[-3] == "CWD /pub"
            assert got.content_type == got.headers["content-type"] == MEDIA
            assert (b"type=file;size=5;" in got.body, event.listing) == (True, True)
            assert [(record.kind, record.listing) for record in known] == [("unchanged", True)]

    run(scenario())


def test_directory_that_the_server_cannot_read_is_a_failure(ftp_world: Any, run: Any) -> None:
    """A directory that vsftpd may not read, which it answers with no entry and a code of success, removes nothing."""

    async def scenario() -> None:
        end = b"226 Transfer done (but failed to open directory).\r\n"
        async with ftp_world(FtpPeer({"FEAT": b"500 what?\r\n"}, b"", end=end)) as here:
            (event,) = await here.get("pub/")
            assert (event.kind, event.retryable) == ("failed", False)
            assert "failed to open directory" in event.reason
            await here.get("pub/")
            assert here.peer.connections == 1

    run(scenario())


def test_file_that_is_a_directory_has_moved(ftp_world: Any, run: Any) -> None:
    """The URL of a directory without a slash redirects to the one with it."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"RETR": b"550 not a plain file\r\n"})) as here:
            gone, event, found = await here.get("pub")
            url = here.peer.url
        assert isinstance(gone, FetchedObject)
        assert (gone.outcome, event.kind, event.reason, found.links[0].url) == ("gone", "gone", "moved", f"{url}pub/")

    run(scenario())


def test_resolving_requests_nothing(ftp_world: Any, run: Any) -> None:
    """A host is resolved by its address alone; its robots.txt is empty, and allows all."""

    async def scenario() -> None:
        async with ftp_world() as here:
            (event,) = await here.get("robots.txt", kind="resolve", address="")
            assert here.peer.connections == 0
        assert (event.kind, event.addresses, event.robots, event.reason) == ("resolved", (LOOPBACK,), b"", "")

    run(scenario())


def test_refused_address_is_not_connected_to(ftp_world: Any, run: Any) -> None:
    """An address that is not allowed is refused, resolved or pinned."""

    async def scenario() -> None:
        async with ftp_world(allow=()) as here:
            (event,) = await here.get("a")
            (resolved,) = await here.get("robots.txt", kind="resolve", address="")
            (unresolved,) = await here.get("a", address="")
            assert here.peer.connections == 0
        assert (event.kind, "loopback" in event.reason) == ("refused", True)
        assert (resolved.robots, "loopback" in resolved.reason) == (None, True)
        assert (unresolved.kind, unresolved.retryable, "loopback" in unresolved.reason) == ("failed", False, True)

    run(scenario())


@pytest.mark.parametrize(("code", "retryable"), [("550", False), ("450", True), ("451", True), ("530", True), ("553", False)])
def test_refusal_removes_nothing(code: str, retryable: bool, ftp_world: Any, run: Any) -> None:
    """No code of a file or a directory reports it as gone: what is missing is decided by the listing above it."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer({verb: f"{code} no\r\n".encode() for verb in ("RETR", "CWD", "SIZE", "MDTM")})) as here:
            for path in ("a", "a/"):
                (event,) = await here.get(path)
                assert (event.kind, event.retryable, f"{code} no" in event.reason) == ("failed", retryable, True)
            assert here.peer.connections == 1

    run(scenario())


# ---- connections -----------------------------------------------------------------------------------------------------


def test_connection_is_kept_and_replaced_when_the_server_closed_it(ftp_world: Any, run: Any) -> None:
    """Exchanges share a connection; one that the server closed meanwhile, with 421 or without, is no failure."""

    async def scenario() -> None:
        for bye in (b"", b"421 too idle\r\n"):
            closing: list[asyncio.StreamWriter] = []

            async def remember(peer: FtpPeer, writer: asyncio.StreamWriter, closing: list[Any] = closing) -> None:
                closing.append(writer)
                writer.write(b"220 ready\r\n")

            async with ftp_world(FtpPeer({"": remember})) as here:
                for path in "ab":
                    assert (await here.get(path))[-1].kind == "fetched"
                assert here.peer.connections == 1
                closing[0].write(bye)
                closing[0].close()
                assert (await here.get("c"))[-1].kind == "fetched"
                assert here.peer.connections == 2

    run(scenario())


def test_connection_with_a_stray_reply_is_not_used_again(ftp_world: Any, run: Any) -> None:
    """A reply too many, which would be taken for that of the next command, ends the use of a connection."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"RETR": b"550 no\r\n226 stray\r\n"}), pause=0.1) as here:
            assert (await here.get("a"))[-1].kind == "failed"
            here.peer.replies = {}
            assert (await here.get("b"))[-1].kind == "fetched"
            assert here.peer.connections == 2

    run(scenario())


def test_idle_connection_is_closed(ftp_world: Any, run: Any) -> None:
    """A connection that is not used for `ftp_idle` is closed with QUIT."""

    async def scenario() -> None:
        async with ftp_world(ftp_idle=0.0) as here:
            await here.get("a")
            await here.peer.said("QUIT")
            assert (await here.get("a"))[-1].kind == "fetched"
            assert here.peer.connections == 2

    run(scenario())


def test_number_of_connections_is_bounded(ftp_world: Any, run: Any, monkeypatch: pytest.MonkeyPatch, make_request: Any) -> None:
    """At most so many connections are open, those that are kept counted: the oldest one makes room."""
    monkeypatch.setattr(ftp, "MAX_CONTROL", 2)

    async def scenario() -> None:
        async with ftp_world() as here, FtpPeer().running() as second, FtpPeer().running() as third:
            peers = [here.peer, second, third]
            for peer in peers:
                request = make_request(f"{peer.url}a", address=LOOPBACK)
                assert (await here.fetcher.fetch(request))[-1].kind == "fetched"
            await here.peer.said("QUIT")
            assert [peer.commands[-1].partition(" ")[0] for peer in peers] == ["QUIT", "RETR", "RETR"]

    run(scenario())


def test_path_is_relative_where_the_home_directory_is_unknown(ftp_world: Any, run: Any) -> None:
    """Without PWD paths are relative to the login, and a connection that changed its directory is not used again."""

    async def scenario() -> None:
        async with ftp_world(FtpPeer({"PWD": b'257 "DISK:[DIR]"\r\n'})) as here:
            await here.get("pub/a")
            await here.get("%2Fetc/motd")
            await here.get("pub/")
            await here.get("pub/a")
            assert here.peer.connections == 2
            sent = [c for c in here.peer.commands if c.startswith(("RETR", "CWD"))]
        assert sent == ["RETR pub/a", "RETR /etc/motd", "CWD pub", "RETR pub/a"]

    run(scenario())
