from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from processors.essence.listings.gopher import MEDIA
from schemas.records import CrawlEvent, FetchedObject, Root
from tests.streams.fetch.lines_server import LOOPBACK, NOW, endless, line_edge, silent

Page = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]

MENU = b"0A\t/a\t127.0.0.1\t70\r\n"


def burrow(pages: dict[bytes, Page], heard: list[bytes] | None = None) -> Any:
    """A Gopher server with a page for each selector; it answers others with an error."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        selector = (await reader.readuntil(b"\r\n"))[:-2]
        if heard is not None:
            heard.append(selector)
        page = pages.get(selector, b"3'%s' does not exist\t\terror.host\t1\r\n" % selector)
        if isinstance(page, bytes):
            writer.write(page)
        else:
            await page(writer)

    return serve


async def answers(blobs: Any, pages: dict[bytes, Page], path: str, settings: dict[str, Any] | None = None, **options: Any) -> Any:
    """Return object and event that answer one request."""
    async with line_edge("gopher", burrow(pages), blobs, **(settings or {})) as edge:
        records = await edge.get(path, **options)
    (event,) = [r for r in records if isinstance(r, CrawlEvent)]
    objects = [r for r in records if isinstance(r, FetchedObject)]
    return (objects[0] if objects else None), event


BODIES: list[tuple[str, bytes, bytes, str]] = [
    ("/1/m", MENU + b".\r\n", MENU + b".\r\n", MEDIA),
    ("/1/m", MENU, MENU, MEDIA),
    ("/1/m", MENU + b".\r\nignored", MENU + b".\r\n", MEDIA),
    ("/0/m", b"a\r\n..b\r\n.\r\n", b"a\n.b\n", "text/plain"),
    ("/0/m", b"a\r\n..b\r\n", b"a\n..b\n", "text/plain"),
    ("/0/m", b"a\n.c", b"a\n.c", "text/plain"),
    ("/0/m", b"", b"", "text/plain"),
    ("/9/m", b"\x00\r\n.\r\n", b"\x00\r\n.\r\n", ""),
    ("/g/m", b"GIF89a", b"GIF89a", "image/gif"),
    ("/h/m", b"<p>\r\n", b"<p>\r\n", "text/html"),
]


@pytest.mark.parametrize(("path", "sent", "body", "media"), BODIES)
def test_item_is_fetched_by_its_type(blobs: Any, run: Any, path: str, sent: bytes, body: bytes, media: str) -> None:
    """Text is decoded by RFC 1436, menus end with their last line, all else is kept as it came; the type states the media type."""
    found, event = run(answers(blobs, {b"/m": sent}, path))
    assert (found.body, found.content_type, found.outcome) == (body, media, "fetched")
    assert (event.kind, event.validators.size, event.validators.md5) == ("fetched", len(body), found.md5)


def test_same_bytes_are_unchanged(blobs: Any, run: Any) -> None:
    """There are no conditional requests: an item with the digest of before is unchanged, and gives no object."""
    first, _ = run(answers(blobs, {b"/m": b"text\r\n"}, "/0/m"))
    again, event = run(answers(blobs, {b"/m": b"text\r\n"}, "/0/m", validators=first.validators))
    assert (again, event.kind, event.validators) == (None, "unchanged", first.validators)


def test_large_item_goes_to_the_blob_store(blobs: Any, run: Any) -> None:
    """A body of more than 64 kB is a blob, a text as well, in whichever form it was sent."""
    text = b"".join(b"%d\n" % number for number in range(100_000))
    sent = text.replace(b"\n", b"\r\n")
    for body in (sent, sent + b".\r\n", text):
        found, _ = run(answers(blobs, {b"/m": body}, "/0/m"))
        assert blobs.bodies[found.blob] == text


def test_selector_is_sent_as_the_url_has_it(blobs: Any, run: Any) -> None:
    """The bytes of the selector are sent, and nothing else."""
    heard: list[bytes] = []

    async def scenario() -> None:
        async with line_edge("gopher", burrow({}, heard), blobs) as edge:
            for path in ("/", "/1/a%20b", "/0%FF%3F.."):
                await edge.get(path)

    run(scenario())
    assert heard == [b"", b"/a b", b"\xff?.."]


def test_missing_item_is_gone_and_another_error_is_a_failure(blobs: Any, run: Any) -> None:
    """An error that says that nothing is there ends the item; any other leaves it."""
    found, event = run(answers(blobs, {}, "/0/m"))
    assert (found, event.kind, event.reason) == (None, "gone", "'/m' does not exist")
    found, event = run(answers(blobs, {b"/m": b"3Access denied\t\terror.host\t1\r\n"}, "/1/m"))
    assert (found, event.kind, event.retryable, event.reason) == (None, "failed", False, "the server answers: Access denied")


@pytest.mark.parametrize("path", ["/7/m", "/2m", "/8m", "/Tm", "/xm"])
def test_item_of_another_kind_is_refused_without_a_request(blobs: Any, run: Any, path: str) -> None:
    """A search, a telnet session, a phone book or an unknown type is refused, and the server gets no connection."""
    heard: list[bytes] = []

    async def scenario() -> Any:
        async with line_edge("gopher", burrow({}, heard), blobs) as edge:
            return await edge.get(path)

    (event,) = run(scenario())
    assert (event.kind, heard) == ("refused", [])
    assert event.reason.startswith("gopher: ")


def test_address_is_judged_before_the_connection(blobs: Any, run: Any) -> None:
    """An address that is not allowed is refused, whether it comes with the request or from the look-up."""
    _, event = run(answers(blobs, {b"/m": b"x"}, "/0/m", {"allow": ()}))
    assert event.kind == "refused"
    _, event = run(answers(blobs, {b"/m": b"x"}, "/0/m", {"allow": ()}, address=""))
    assert (event.kind, event.retryable) == ("failed", False)
    assert "have to be allowed" in event.reason


def test_host_is_resolved_without_robots(blobs: Any, run: Any) -> None:
    """A request to resolve gives the address and an empty robots.txt, without asking the server."""
    heard: list[bytes] = []

    async def scenario() -> Any:
        async with line_edge("gopher", burrow({}, heard), blobs) as edge:
            return await edge.get("/robots.txt", kind="resolve", address="")

    (event,) = run(scenario())
    assert (event.kind, event.addresses, event.robots, heard) == ("resolved", (LOOPBACK,), b"", [])


def test_address_that_accepts_a_connection_is_pinned(blobs: Any, run: Any) -> None:
    """Of several addresses the first that accepts a connection is pinned; if one may not be dialled, none is."""

    async def resolved(*addresses: str) -> Any:
        async with line_edge("gopher", burrow({}), blobs, lookup=lambda _host, _port: addresses) as edge:
            (event,) = await edge.get("/robots.txt", kind="resolve", address="")
        return event

    # The server listens on LOOPBACK alone.
    event = run(resolved("127.0.0.9", LOOPBACK, "127.0.0.8"))
    assert (event.addresses, event.robots) == ((LOOPBACK,), b"")
    event = run(resolved(LOOPBACK, "10.0.0.1"))
    assert (event.addresses, event.robots, event.retryable) == ((), None, False)
    assert "10.0.0.1 is private" in event.reason
    event = run(resolved())
    assert (event.robots, event.retryable) == (None, True)


def test_unknown_host_is_resolved_with_its_reason(blobs: Any, run: Any) -> None:
    """A name that does not exist is no reason to try again; a name server without an answer is."""

    async def resolved(lookup: Any, **settings: Any) -> Any:
        async with line_edge("gopher", burrow({}), blobs, lookup=lookup, **settings) as edge:
            (event,) = await edge.get("/robots.txt", kind="resolve", address="")
        return event

    def unknown(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    event = run(resolved(unknown))
    assert (event.robots, event.retryable) == (None, False)
    assert event.reason == f"cannot resolve {LOOPBACK}: Name or service not known"
    event = run(resolved(lambda _host, _port: time.sleep(0.3), dns_timeout=0.1))
    assert (event.retryable, event.reason) == (True, f"cannot resolve {LOOPBACK}: no answer in time")


def test_empty_root_menu_is_in_doubt(blobs: Any, run: Any) -> None:
    """A root menu that is suddenly empty is a broken server; below it there are empty folders."""
    first, _ = run(answers(blobs, {b"": MENU}, "/"))
    root = Root(url="gopher://x/", run="run-1")
    _, event = run(answers(blobs, {b"": b""}, "/", depth=0, root=root, validators=first.validators))
    assert event.reason == "removal in doubt: the root menu is empty"
    _, event = run(answers(blobs, {b"": b""}, "/", depth=0, root=root))
    assert (event.kind, event.reason) == ("failed", "an empty menu")
    found, _ = run(answers(blobs, {b"/m": b""}, "/1/m"))
    assert (found.size, found.content_type) == (0, MEDIA)


def drip(piece: bytes, pause: float = 0.01) -> Page:
    """A page that is sent piece by piece without end."""
    return lambda writer: endless(writer, piece, pause)


def left_open(body: bytes) -> Page:
    """A page after which the connection stays open."""

    async def page(writer: asyncio.StreamWriter) -> None:
        writer.write(body)
        await silent(writer)

    return page


async def reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection in the middle of a menu."""
    writer.write(MENU)
    await writer.drain()
    # With a linger time of 0, close() sends RST.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


BAD: list[tuple[str, str, Page, dict[str, Any], str]] = [
    ("silence", "/1/m", silent, {"answer_timeout": 0.2}, "no answer in time"),
    ("a byte a second", "/1/m", drip(b"i"), {"grace": 0.1, "min_rate": 100_000}, "too slow"),
    ("a menu without end", "/1/m", drip(MENU, 0), {"max_body": 100_000}, "body larger than 100,000 bytes"),
    ("a line without end", "/1/m", drip(b"i" * 1_000, 0), {"max_body": 100_000}, "body larger than 100,000 bytes"),
    ("a text without end", "/0/m", drip(b"text\r\n" * 100, 0), {"max_body": 100_000}, "body larger than 100,000 bytes"),
    ("a file without end", "/9/m", drip(b"\0" * 1_000, 0), {"max_body": 100_000}, "body larger than 100,000 bytes"),
    ("steady, but for ever", "/9/m", drip(b"\0" * 100), {"total_timeout": 0.5}, "not whole after 0.5 seconds"),
    ("a menu that is not ended", "/1/m", left_open(MENU), {"answer_timeout": 0.2}, "no answer in time"),
    ("a text that is not ended", "/0/m", left_open(b"text\r\n"), {"answer_timeout": 0.2}, "no answer in time"),
    ("a reset", "/9/m", reset, {}, "connection broken"),
]


@pytest.mark.parametrize(("path", "page", "settings", "reason"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_peer_costs_a_bounded_wait(blobs: Any, run: Any, path: str, page: Page, settings: dict[str, Any], reason: str) -> None:
    """Whatever a peer does, the answer is one event with a reason, and the next item of the server is fetched."""

    async def scenario() -> Any:
        pages = {b"/m": page, b"/good": b"good\r\n"}
        async with line_edge("gopher", burrow(pages), blobs, **settings) as edge:
            return await edge.get(path), await edge.get("/0/good")

    (event,), (found, _) = run(scenario())
    assert event.kind == "failed"
    assert event.reason.startswith(reason)
    assert (found.body, found.time) == (b"good\n", NOW)


@pytest.mark.parametrize(("path", "sent", "body"), [("/1/m", MENU + b".\r\n", MENU + b".\r\n"), ("/0/m", b"a\r\n.\r\n", b"a\n")])
def test_last_line_ends_an_answer_that_is_left_open(blobs: Any, run: Any, path: str, sent: bytes, body: bytes) -> None:
    """A server that keeps the connection open after the line `.` has sent all."""
    found, _ = run(answers(blobs, {b"/m": left_open(sent)}, path, {"answer_timeout": 0.3}))
    assert found.body == body


def test_closed_port_is_unreachable(blobs: Any, run: Any) -> None:
    """Without a server the request fails, and may be tried again."""

    async def scenario() -> Any:
        async with line_edge("gopher", burrow({}), blobs) as edge:
            request = edge.request("/0/m")
        async with line_edge("gopher", burrow({}), blobs) as other:
            return await other.fetcher.fetch(request)

    (event,) = run(scenario())
    assert (event.kind, event.retryable) == ("failed", True)
    assert event.reason.startswith("cannot connect")
