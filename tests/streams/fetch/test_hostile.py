from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest

from processors.frontier.robots import MAX_ROBOTS
from schemas.codec import decode, encode

Page = Callable[[Any, asyncio.StreamWriter], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\n"
BOMB = bytes(4_000_000)


def raw(data: bytes) -> bytes:
    """An answer with status 200, given from its header fields on."""
    return HEAD + data


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Page:
    """A server that sends without end until the client closes the connection."""

    async def page(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return page


async def silent(_: Any, writer: asyncio.StreamWriter) -> None:
    """A server that reads the request and sends nothing."""
    while not writer.is_closing():
        writer.write(b"")
        await asyncio.sleep(0.01)


LIMITS: dict[str, dict[str, float]] = {
    "no answer in time": {"answer_timeout": 0.2},
    "too slow": {"grace": 0.1, "min_rate": 100_000},
    "not whole after 0.5 seconds": {"total_timeout": 0.5},
}
"""Tight limits by expected reason; all others are generous, so that a busy machine does not change the result."""

CASES: list[tuple[str, bytes | Page, str, bool]] = [
    ("no answer", silent, "no answer in time", True),
    ("not HTTP", b"SSH-2.0-OpenSSH_9\r\n\r\n", "malformed answer", False),
    ("nothing", b"", "connection broken", True),
    ("half a header", b"HTTP/1.1 200 OK\r\nConte", "connection broken", True),
    ("too short for its length", raw(b"Content-Length: 10\r\n\r\nabc"), "truncated body", True),
    ("a length that is none", raw(b"Content-Length: ten\r\n\r\nabc"), "malformed answer", False),
    ("two lengths", raw(b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), "malformed answer", False),
    ("a cut chunk", raw(b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"), "truncated body", True),
    ("a chunk that is none", raw(b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"), "", False),
    ("a large header field", raw(b"X: " + b"y" * 100_000 + b"\r\n\r\n"), "malformed answer", False),
    ("many header fields", raw(b"X: y\r\n" * 1_000 + b"\r\n"), "malformed answer", False),
    ("an endless header", endless(HEAD, b"X-Field: y\r\n"), "malformed answer", False),
    ("a large length", raw(b"Content-Length: 99999999999\r\n\r\n"), "body larger than", False),
    ("an endless body", endless(HEAD + b"\r\n", bytes(65_536)), "body larger than", False),
    (
        "endless chunks",
        endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"a\r\n0123456789\r\n" * 5_000),
        "body larger than",
        False,
    ),
    ("a slow body", endless(HEAD + b"\r\n", b"x", 0.02), "too slow", True),
    ("a body that keeps up and never ends", endless(HEAD + b"\r\n", b"x", 0.001), "not whole after 0.5 seconds", False),
    ("a stalled body", endless(HEAD + b"\r\n", b"", 0.02), "no answer in time", True),
    (
        "an endless chunk extension",
        endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5", b";xxxx" * 100),
        "no answer in time",
        True,
    ),
    ("endless trailers", endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"), "malformed answer", False),
    ("no end of 100 Continue", endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "no answer in time", True),
    ("another protocol", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "status 101", False),
    ("an unknown coding", raw(b"Content-Encoding: rot13\r\n\r\nabc"), "content coding not supported", False),
    ("a chain of codings", raw(b"Content-Encoding: gzip, gzip\r\n\r\nabc"), "content coding not supported", False),
    ("no gzip", raw(b"Content-Encoding: gzip\r\n\r\n<html>"), "damaged gzip body", False),
    ("half a gzip", raw(b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"abc" * 100)[:-9]), "truncated gzip body", True),
    ("a gzip bomb", raw(b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(BOMB)), "gzip bomb", False),
    ("a deflate bomb", raw(b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(BOMB)), "deflate bomb", False),
    ("a br bomb", raw(b"Content-Encoding: br\r\n\r\n" + brotli.compress(BOMB)), "br bomb", False),
    ("many members", raw(b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"") * 10_000), "members", False),
]


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_hostile_answer_is_a_bounded_failure(case: tuple[str, bytes | Page, str, bool], edge: Any, run: Any, split: Any) -> None:
    """Whatever a server sends or omits, the result is one failure with a bounded reason that says whether to retry."""
    _, page, reason, retryable = case

    async def scenario() -> None:
        async with edge({"/x": page}, max_body=3_000_000, **LIMITS.get(reason, {})) as world:
            records = await world.get("/x")
        got, event = split(records)
        assert [decode(encode(r)) for r in records] == records
        assert got is None
        assert event.kind == "failed"
        assert reason in event.reason
        assert event.retryable == retryable
        assert len(event.reason) <= 200
        assert event.reason == " ".join(event.reason.removesuffix("^").split())

    run(scenario())


def test_decoded_size_is_limited(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A body whose decoded size exceeds the limit fails, also at a moderate ratio."""

    async def scenario() -> None:
        body = gzip.compress(bytes(range(256)) * 2_000)
        page = make_answer(body=body, Content_Encoding="gzip")
        async with edge({"/x": page}, max_body=100_000) as world:
            assert len(body) < 100_000
            _, event = split(await world.get("/x"))
        assert (event.kind, event.retryable) == ("failed", False)
        assert "when decoded" in event.reason

    run(scenario())


def test_refused_connection_may_be_retried(edge: Any, run: Any, split: Any) -> None:
    """A refused connection is a failure that may be retried."""

    async def scenario() -> None:
        # Bound but not listening, so that no other process gets the port.
        with socket.socket() as kept:
            kept.bind(("127.0.0.1", 0))
            async with edge() as world:
                (event,) = await world.fetcher.fetch(world.request(f"http://127.0.0.1:{kept.getsockname()[1]}/", "127.0.0.1"))
        assert (event.kind, event.retryable) == ("failed", True)
        assert "cannot connect" in event.reason

    run(scenario())


FORBIDDEN = [
    ("http://10.0.0.1/", "10.0.0.1"),
    ("http://harmless.example/", "169.254.169.254"),
    ("http://[::ffff:10.0.0.1]/", "93.184.216.34"),
    ("http://10.0.0.1/", "93.184.216.34"),
    ("http://harmless.example/", "nonsense"),
]


@pytest.mark.parametrize("case", FORBIDDEN)
def test_forbidden_addresses_are_not_connected_to(case: tuple[str, str], edge: Any, run: Any) -> None:
    """Neither a pinned address nor a host that is an address is connected to if the guard refuses it."""

    async def scenario() -> None:
        async with edge() as world:
            (event,) = await world.fetcher.fetch(world.request(*case))
        assert event.kind in ("refused", "failed")
        assert not event.retryable
        assert "is private" in event.reason or "link-local" in event.reason or "not an address" in event.reason

    run(scenario())


def test_internal_error_is_an_event_and_a_traceback(edge: Any, run: Any, split: Any, caplog: Any, make_request: Any) -> None:
    """An internal error of the edge also gives the frontier an event, and the log a traceback."""

    def broken(host: str, port: int) -> list[str]:
        raise RuntimeError("oops")

    async def scenario() -> None:
        async with edge(lookup=broken) as world:
            _, event = split(await world.fetcher.fetch(make_request("http://a.example/x")))
            assert (event.kind, event.retryable) == ("failed", False)
            assert "oops" in event.reason
            resolved = await world.resolve("http://a.example")
            assert (resolved.kind, resolved.robots) == ("resolved", None)
        assert any(record.exc_info for record in caplog.records)

    run(scenario())


def test_endless_robots_txt_is_truncated(edge: Any, run: Any) -> None:
    """An endless robots.txt is read up to the limit that RFC 9309 requires, and no further."""

    async def scenario() -> None:
        head = HEAD + b"\r\nUser-agent: *\nDisallow: /private\n"
        async with edge({"/robots.txt": endless(head, b"#" * 65_536)}) as world:
            event = await world.resolve()
        assert len(event.robots) == MAX_ROBOTS
        assert event.robots.startswith(b"User-agent")

    run(scenario())


def test_circle_of_redirects_is_not_followed(edge: Any, run: Any, make_answer: Any) -> None:
    """Each redirect of a circle is one answer to one request: the edge follows none."""

    async def scenario() -> None:
        pages = {"/a": make_answer("302 Found", Location="/b"), "/b": make_answer("302 Found", Location="/a")}
        async with edge(pages) as world:
            for here, there in (("/a", "/b"), ("/b", "/a")):
                found = (await world.get(here))[-1]
                assert [link.url for link in found.links] == [world.server.host + there]
            assert len(world.server.heard) == 2

    run(scenario())


def test_cancelled_request_releases_host_and_address(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """A cancelled request gives no answer, and occupies neither its host nor its address afterwards."""

    async def scenario() -> None:
        asked = asyncio.Event()

        async def stuck(heard: Any, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await silent(heard, writer)

        async with edge({"/stuck": stuck, "/x": make_answer(body=b"x")}) as world:
            task = asyncio.create_task(world.get("/stuck"))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            got, _ = split(await world.get("/x"))
            assert got.body == b"x"

    run(scenario())


def test_bytes_after_the_content_length_are_ignored(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """Bytes after the stated Content-Length belong to no answer, not even to the next one on the connection."""

    async def scenario() -> None:
        liar = raw(b"Content-Length: 2\r\n\r\nok" + make_answer(body=b"smuggled"))
        async with edge({"/a": liar, "/b": make_answer(body=b"b")}) as world:
            assert split(await world.get("/a"))[0].body == b"ok"
            assert split(await world.get("/b"))[0].body == b"b"

    run(scenario())
