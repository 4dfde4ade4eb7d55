"""The adapter for newsgroups (RFC 3977): one connection a request, for reading only.

Laws:
- A group is listed by OVER, or else XOVER (RFC 2980, 2.8): the newest articles, as many as its root may have URLs. A pattern is
  listed by LIST ACTIVE, an article is read by its identifier.
- Numbers of articles are not counted through: one range is requested, whatever the group states as its first and last article.
- A group or article that the server does not have (411, 430) is gone. Everything else that is no answer is a failure.
- No login is tried, and no command that changes anything is sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import NamedTuple

from processors.essence.listings.listing_format import MAX_CHILDREN
from processors.essence.listings.nntp import MEDIA
from processors.news_urls import PORT, NewsName, news_name
from schemas.records import FetchRequest, Record, Validators
from streams.fetch.adapters import Tools
from streams.fetch.adapters.connection import Connection
from streams.fetch.adapters.text_lines import DotBlock
from streams.fetch.addresses import Addresses
from streams.fetch.answers import Answers, FetchError
from streams.fetch.body import SPOOLS, Body

ARTICLE = "message/news"
RETRYABLE = frozenset(("400", "403"))
"""Codes of a server that may answer later (RFC 3977, 3.2.1)."""
EMPTY = frozenset(("420", "423"))
"""Codes for a range without articles."""
LOGIN = frozenset(("450", "480", "483"))
MAX_NUMBER = 1 << 64

_GROUP = re.compile(r"([0-9]{1,20}) +([0-9]{1,20}) +([0-9]{1,20})(?: .*)?")


class Reply(NamedTuple):
    """The line that answers a command."""

    code: str
    text: str


class Nntp:
    """An `Adapter`. Create and use it inside a running event loop."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._addresses = Addresses(tools, PORT)
        self._spools = asyncio.Semaphore(SPOOLS)

    async def resolve(self, request: FetchRequest) -> list[Record]:
        """Return the one event that describes a host."""
        return await self._addresses.resolve(request)

    async def fetch(self, request: FetchRequest) -> list[Record]:
        """Return the records that answer a request, after waiting for its slots. Raises FetchError, StoreError, TooLongError."""
        answers = Answers(request, self._tools.clock())
        if why := self._addresses.refusal(request):
            return answers.refused(why)
        async with self._addresses.slots(request) as address:
            return await self._exchange(answers, address, news_name(request.url))

    async def _exchange(self, answers: Answers, address: str, wanted: NewsName) -> list[Record]:
        tools, request, known = self._tools, answers.request, answers.request.validators
        async with Body(tools.blobs, self._spools, tools.settings.spool) as body:
            # The connection is closed before the body is stored.
            async with Connection(tools.settings, address, self._addresses.port(request.host)) as connection:
                session = _Session(connection)
                await session.begin()
                missing = await _read(session, wanted, _limit(request), body)
                connection.post(b"QUIT\r\n")
            if missing:
                return answers.gone(f"status {missing.code} {missing.text}")
            validators = Validators(md5=body.md5, size=body.size)
            if known is not None and (known.md5, known.size) == (body.md5, body.size):
                return answers.unchanged(validators)
            media = ARTICLE if wanted.kind == "article" else MEDIA
            return answers.fetched(await body.store(), validators, media, {})

    async def close(self) -> None:
        """Close threads; no connection outlives its request."""
        self._addresses.close()


def _limit(request: FetchRequest) -> int:
    """Return the number of articles that the root of a group may have, besides the group if that is the root; 0: any."""
    urls = request.root.urls
    return max(1, urls - (request.url == request.root.url)) if urls else 0


async def _read(session: _Session, wanted: NewsName, limit: int, body: Body) -> Reply | None:
    """Read an article, or a listing of at most `limit` articles (0: `MAX_CHILDREN`); return the reply for what does not exist."""
    if wanted.kind == "article":
        reply = await session.command(b"ARTICLE <" + wanted.name + b">", "220", "430")
        if reply.code == "430":
            return reply
        await session.block(body)
    elif wanted.kind == "groups":
        await session.command(b"LIST ACTIVE " + wanted.name, "215")
        await session.block(body)
    else:
        reply = await session.command(b"GROUP " + wanted.name, "211", "411")
        if reply.code == "411":
            return reply
        if (numbers := newest(reply.text, limit)) and await session.overview(b"%d-%d" % numbers):
            await session.block(body)
    return None


def newest(text: str, limit: int) -> tuple[int, int] | None:
    """Return the first and last number of the newest articles of a group; None if it is empty.

    text: the arguments of a reply to GROUP: estimated number of articles, lowest, highest (RFC 3977, 6.1.1).
    limit: at most so many numbers; 0 or a greater one than `MAX_CHILDREN` means that.

    Raises FetchError for other arguments.
    """
    found = _GROUP.fullmatch(text)
    count, low, high = (int(found[at]) for at in (1, 2, 3)) if found else (0, 0, MAX_NUMBER)
    if high >= MAX_NUMBER:
        raise FetchError("malformed answer: GROUP without its numbers", retryable=False)
    most = min(limit or MAX_CHILDREN, MAX_CHILDREN)
    return (max(low, high - most + 1), high) if low <= high and count else None


class _Session:
    """Commands and replies on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def begin(self) -> None:
        """Read the greeting, and switch to reading: some servers begin as one for transfers between servers (RFC 3977, 5.3)."""
        _expect(await self._reply(), ("200", "201"))
        await self._connection.send(b"MODE READER\r\n")
        reply = await self._reply()
        if not reply.code.startswith("50") or reply.code == "502":
            _expect(reply, ("200", "201"))

    async def command(self, line: bytes, *codes: str) -> Reply:
        """Send a command and return its reply, which has one of the codes. Raises FetchError for any other."""
        await self._connection.send(line + b"\r\n")
        reply = await self._reply()
        _expect(reply, codes)
        return reply

    async def overview(self, numbers: bytes) -> bool:
        """Request the overview of a range; return False if there are no articles in it."""
        reply = await self.command(b"OVER " + numbers, "224", *EMPTY, "500", "501", "503")
        if reply.code.startswith("50"):
            reply = await self.command(b"XOVER " + numbers, "224", *EMPTY)
        return reply.code not in EMPTY

    async def block(self, body: Body) -> None:
        """Read a multi-line block."""
        block = DotBlock()
        async for piece in self._connection.pieces():
            await body.write(block.feed(piece))
            if block.ended:
                return
        raise FetchError("connection broken: closed within an answer", retryable=True)

    async def _reply(self) -> Reply:
        code, _, text = (await self._connection.line()).decode("utf-8", "replace").partition(" ")
        if len(code) != 3 or not (code.isascii() and code.isdigit()):
            raise FetchError("malformed answer: not NNTP", retryable=False)
        return Reply(code, text.strip())


def _expect(reply: Reply, codes: Sequence[str]) -> None:
    if reply.code in codes:
        return
    what = "a login is required" if reply.code in LOGIN else f"status {reply.code} {reply.text}".rstrip()
    raise FetchError(what, retryable=reply.code in RETRYABLE)
