"""Brokers of another gateway, asked by HTTP as the fetch edge does: only addresses that may be dialled, nothing without a limit.

What a gateway sends is untrusted: a body is at most MAX_BODY long, and anything but the expected JSON is a SilentError.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from processors.query.routing.merging import Answered
from processors.query.routing.statistics import MAX_BYTES, Statistics, decode_statistics
from processors.query.snippet import CLOSE, OPEN
from schemas.ports import Hit
from streams.fetch.adapters.web import Client
from streams.fetch.answers import ALLOW as FETCH_ALLOW
from streams.fetch.answers import FetchError
from streams.fetch.decode import Decoding
from streams.fetch.name_lookup import NameLookup
from streams.fetch.settings import FetchSettings
from streams.routing.files import write_whole

MAX_BODY = 1 << 20
"""Maximum length of an answer in bytes."""
MAX_RATIO = 100
MAX_BROKERS = 200
"""Maximum number of Brokers of one gateway that are considered."""
MAX_TRIED = 2
"""Maximum number of addresses of a gateway that are tried."""
AT_ONCE = 8
"""Requests to one gateway at once: as many of one client as it lets wait."""
ELSEWHERE = "statistics-elsewhere"
"""Folder in the data folder of the statistics that other gateways sent."""
KEPT = 1_000
"""Maximum number of files in that folder."""
MAX_HITS = 100
"""Maximum number of hits that a gateway returns for one request."""
ALLOW = "local gateways have to be allowed (fetch.allow)"
SHOWN = 2_000
"""Maximum length of a title, a URL or a snippet."""

Model = TypeVar("Model")
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}\Z")]


class SilentError(Exception):
    """A gateway or a Broker has given no answer that can be used; the message is the reason, in one bounded line."""


class _Broker(msgspec.Struct):
    name: Name
    mark: str = ""
    has_views: bool = True


class _Brokers(msgspec.Struct):
    brokers: list[_Broker]


class _Hit(msgspec.Struct):
    oid: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    url: str
    title: str
    type: str
    score: float
    snippet: str
    marks: list[tuple[int, int]]
    digest: str = ""


class _Answer(msgspec.Struct):
    total: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    hits: list[_Hit]


class Listed(NamedTuple):
    """The Brokers of a gateway."""

    marks: Mapping[str, str]
    """The mark of its statistics for each that may be asked."""
    without: Sequence[str]
    """Those that have not the views that are asked for."""


class RemoteBrokers:
    """The Brokers of one gateway. Create and use it inside a running event loop; `url` ends with a slash."""

    def __init__(self, url: str, client: Client, look: NameLookup, data: Path | None = None) -> None:
        """`data`: the data folder, in which statistics are kept as long as their mark is the same."""
        self.url = url
        self._data = data
        self._client = client
        self._look = look
        self._places = asyncio.Semaphore(AT_ONCE)
        self._decoding = asyncio.Lock()

    async def listed(self, views: Sequence[str] = ()) -> Listed:
        """Return the gateway's Brokers, those with all of these views apart from the others. Raises SilentError."""
        asked = f"?{urlencode([('view', path) for path in views])}" if views else ""
        found = _decoded(await self._get(f"api/brokers{asked}"), _Brokers).brokers[:MAX_BROKERS]
        marks = {broker.name: broker.mark for broker in found if broker.has_views}
        return Listed(marks, [broker.name for broker in found if not broker.has_views])

    async def statistics(self, name: str, mark: str) -> Statistics:
        """Return the statistics of a Broker with a mark. Raises SilentError."""
        path = None
        if self._data is not None and mark:
            known = hashlib.sha256(f"{self.url} {name} {mark}".encode("utf-8", "replace")).hexdigest()
            path = self._data / ELSEWHERE / known
            with suppress(OSError, ValueError):
                return await self._decode(path.read_bytes())
        async with self._places:
            data = await self._get(f"api/brokers/{quote(name)}/statistics", MAX_BYTES)
        try:
            found = await self._decode(data)
        except ValueError as error:
            raise SilentError(str(error)) from None
        if path is not None:
            with suppress(OSError):
                keep_newest(path, data)
        return found

    async def _decode(self, data: bytes) -> Statistics:
        """Return encoded statistics: other gateways have their turn between any two of this one. Raises ValueError."""
        async with self._decoding:
            await asyncio.sleep(0)
            return decode_statistics(data)

    async def search(self, name: str, text: str, limit: int) -> Answered:
        """Return the best hits of a Broker. Raises SilentError."""
        asked = urlencode({"q": text, "size": min(limit, MAX_HITS)})
        async with self._places:
            answer = _decoded(await self._get(f"api/brokers/{quote(name)}/search?{asked}"), _Answer)
        if not all(math.isfinite(hit.score) for hit in answer.hits):
            raise SilentError("a score is no number")
        hits = answer.hits[:limit]
        return Answered(name, [_hit(hit) for hit in hits], max(answer.total, len(hits)), [hit.digest[:64] for hit in hits])

    async def _get(self, path: str, most: int = MAX_BODY) -> bytes:
        """Return the body of an answer. Raises SilentError."""
        parts = urlsplit(self.url)
        try:
            found = await self._look.addresses(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
            for address in found[: MAX_TRIED - 1]:
                try:
                    return await self._body(path, address, most)
                except FetchError as error:
                    if not error.unreachable or len(found) == 1:
                        raise
            return await self._body(path, found[-1], most)
        except FetchError as error:
            raise SilentError(error.reason.replace(FETCH_ALLOW, ALLOW)[:200]) from None

    async def _body(self, path: str, address: str, most: int) -> bytes:
        async with self._client.exchange(self.url + path, address, {}) as response:
            if response.status != 200:
                raise FetchError(f"status {response.status}", retryable=False)
            decoding = Decoding(response.headers.get("Content-Encoding", ""), most, MAX_RATIO)
            return b"".join([piece async for piece in self._client.pieces(response, decoding)])


def keep_newest(path: Path, data: bytes) -> None:
    """Write a file, and remove the oldest of its folder if there are too many. Raises OSError."""
    write_whole(path, data)
    others = sorted(path.parent.iterdir(), key=lambda other: other.stat().st_mtime)
    for old in others[: max(0, len(others) - KEPT)]:
        old.unlink(missing_ok=True)


def client_settings(given: FetchSettings, deadline: float) -> FetchSettings:
    """Return the settings of the client: those of the fetch edge, with no wait longer than the deadline, and small bodies."""
    names = ("dns_timeout", "connect_timeout", "answer_timeout", "total_timeout")
    shorter = {name: min(getattr(given, name), deadline) for name in names}
    return msgspec.structs.replace(given, max_body=MAX_BODY, grace=deadline, **shorter)


def _decoded(data: bytes, model: type[Model]) -> Model:
    try:
        return msgspec.json.decode(data, type=model)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SilentError(f"not the answer of a gateway: {str(error)[:100]}") from None


def _hit(found: _Hit) -> Hit:
    title, url = found.title[:SHOWN], found.url[:SHOWN]
    return Hit(found.oid, url, title, found.type[:100], max(0.0, found.score), _marked(found.snippet[:SHOWN], found.marks))


def _marked(text: str, marks: list[tuple[int, int]]) -> str:
    """Return a snippet with its marks as a Hit has them; ranges that are none are left out."""
    text, made, at = text.replace(OPEN, " ").replace(CLOSE, " "), "", 0
    for start, end in sorted(marks[:100]):
        if at <= start < end <= len(text):
            made += f"{text[at:start]}{OPEN}{text[start:end]}{CLOSE}"
            at = end
    return made + text[at:]
