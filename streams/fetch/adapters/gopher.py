"""The adapter for Gopher (RFC 1436): one connection a request, which sends a selector and reads until the end.

Laws:
- No request is sent for an item that asks for input or leads to another protocol (`processors/essence/listings/gopher.py`).
- There are no conditional requests: an item with the bytes of before is unchanged.
- A menu ends with the line `.`, or with the connection. Everything else ends with the connection; a text (0, 4, 6) that ends with
  the line `.` is decoded by RFC 1436. Lines of a text have LF, as in the file: on the wire they have CR LF.
- RFC 1436 has no status: an answer in the form of an error is one. If it says that nothing is there, the item is gone, else failed.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from processors.essence.listings.gopher import FILES, MEDIA, REFUSED, failure
from processors.gopher_urls import MENU, PORT, GopherItem, gopher_item
from schemas.records import DOUBT, FetchRequest, Record, Validators
from streams.fetch.adapters import Tools
from streams.fetch.adapters.connection import Connection
from streams.fetch.adapters.text_lines import GopherText
from streams.fetch.addresses import Addresses
from streams.fetch.answers import Answers, FetchError
from streams.fetch.body import SPOOLS, Body

TEXTS = frozenset("046")
TYPES = {MENU: MEDIA, "0": "text/plain", "h": "text/html", "g": "image/gif", "4": "application/mac-binhex40"}
"""Media type that the type of an item states."""
MAX_ERROR = 4_096
"""Maximum bytes of an answer that may be an error."""


class Gopher:
    """An `Adapter`. Create and use it inside a running event loop."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._addresses = Addresses(tools, PORT)
        self._spools = asyncio.Semaphore(SPOOLS)
        # A text needs a second body, taken after the first: with one semaphore for both, the first ones could wait for each other.
        self._second = asyncio.Semaphore(SPOOLS)

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host."""
        return await self._addresses.resolve(request)

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request, after waiting for its slots. Raises FetchError, StoreError, TooLongError."""
        item, answers = gopher_item(request.url), Answers(request, self._tools.clock())
        if item.type != MENU and item.type not in FILES:
            return answers.refused(REFUSED.get(item.type, "gopher: an item of an unknown type"))
        if why := self._addresses.refusal(request):
            return answers.refused(why)
        async with self._addresses.slots(request) as address:
            return await self._exchange(answers, address, item)

    async def _exchange(self, answers: Answers, address: str, item: GopherItem) -> list[Record]:
        tools = self._tools
        async with AsyncExitStack() as stack:
            body = await stack.enter_async_context(Body(tools.blobs, self._spools, tools.settings.spool))
            # The connection is closed before the body is stored.
            async with Connection(tools.settings, address, self._addresses.port(answers.request.host)) as connection:
                await connection.send(item.selector + b"\r\n")
                if item.type == MENU:
                    head = await _menu(connection, body)
                elif item.type in TEXTS:
                    second = await stack.enter_async_context(Body(tools.blobs, self._second, tools.settings.spool))
                    head, body = await _text(connection, body, second)
                else:
                    head = await _file(connection, body)
            return await self._answer(answers, item, head, body)

    async def _answer(self, answers: Answers, item: GopherItem, head: bytes, body: Body) -> list[Record]:
        """Return the answer for a body; `head`: its first bytes."""
        if body.size <= MAX_ERROR and (error := failure(head, menu=item.type == MENU)):
            if error.missing:
                return answers.gone(error.text)
            raise FetchError(f"the server answers: {error.text}", retryable=False)
        request, known = answers.request, answers.request.validators
        if item.type == MENU and not body.size and not request.depth and answers.now > request.root.accept:
            # PyGopherd sends nothing for an empty folder. A root that is empty is most likely a broken server.
            doubted = known is not None and known.size > 0
            raise FetchError(f"{DOUBT}: the root menu is empty" if doubted else "an empty menu", retryable=not doubted)
        validators = Validators(md5=body.md5, size=body.size)
        if known is not None and (known.md5, known.size) == (body.md5, body.size):
            return answers.unchanged(validators)
        return answers.fetched(await body.store(), validators, TYPES.get(item.type, ""), {})

    async def close(self) -> None:
        """Close threads; no connection outlives its request."""
        self._addresses.close()


async def _file(connection: Connection, body: Body) -> bytes:
    """Read to the end of the connection; return the first bytes."""
    head = b""
    async for piece in connection.pieces():
        head += piece[: MAX_ERROR - len(head)]
        await body.write(piece)
    return head


async def _menu(connection: Connection, body: Body) -> bytes:
    """Read to the line that ends the menu, or to the end of the connection; return the first bytes."""
    head, tail = b"", b"\n"
    async for piece in connection.pieces():
        window = tail + piece
        ends = [at + 1 for end in (b"\n.\r\n", b"\n.\n") if (at := window.find(end)) >= 0]
        kept = piece[: window.index(b"\n", min(ends)) + 1 - len(tail)] if ends else piece
        head += kept[: MAX_ERROR - len(head)]
        await body.write(kept)
        if ends:
            break
        tail = window[-3:]
    return head


async def _text(connection: Connection, plain: Body, undoubled: Body) -> tuple[bytes, Body]:
    """Read to the end of the connection; return the first bytes, and that of two empty bodies that has the text."""
    decoder, head = GopherText(), b""
    try:
        async for piece in connection.pieces():
            head += piece[: MAX_ERROR - len(head)]
            await _write(decoder.feed(piece), plain, undoubled)
    except TimeoutError:
        if not decoder.terminated:
            raise
    terminated = decoder.terminated
    await _write(decoder.end(), plain, undoubled)
    return head, undoubled if terminated else plain


async def _write(texts: tuple[bytes, bytes], plain: Body, undoubled: Body) -> None:
    await plain.write(texts[0])
    await undoubled.write(texts[1])
