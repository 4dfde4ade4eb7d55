"""HTTP and HTTPS: one conditional GET to one pinned address, and what its answer means.

Strategy: aiohttp speaks the protocol; it follows nothing, decodes nothing, resolves nothing and keeps no cookie. The address
was decided when the host was resolved, and is judged again before it is dialled; Host and SNI carry the name.

Laws:
- Every byte that a peer may send has a cap: header, body, decoded body. So has every wait: connection, header, pieces, whole.
- A redirect is an answer, not an errand (DESIGN, "Stages"): the target is a URL like any other, and is asked for by the frontier.
- RFC 9110 decides what a status means; Retry-After (10.2.3) counts up to a day.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_exceptions import BadHttpMessage, PayloadEncodingError
from yarl import URL

from processors.urls import canonical, guard
from schemas.ports import Blobs
from schemas.records import FetchRequest, Record, Validators
from streams.fetch.answers import Answers, FetchError, StoreError, bounded
from streams.fetch.body import SPOOLS, Body
from streams.fetch.decode import ACCEPT, Decoding
from streams.fetch.settings import LONGEST_WAIT, FetchSettings

MAX_HEADER = 8_190
"""Bytes of the status line, and of one header field."""
MAX_KEPT = 16_384
"""Bytes of all header fields, names and values, that a record keeps: those behind are left out."""
MAX_TYPE = 1_000
"""Characters of a content type."""
MAX_VALIDATOR = 300
READ = 65_536
KEEP_ALIVE = 15

REDIRECTS = frozenset((300, 301, 302, 303, 307, 308))
GONE = frozenset((404, 410))
RETRYABLE = frozenset((408, 425, 429))

_PINNED: ContextVar[str] = ContextVar("address to dial")


class _Pinned(AbstractResolver):
    """Answers with the address that the request names, judged once more."""

    def __init__(self, settings: FetchSettings) -> None:
        self._networks = settings.networks

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        address = _PINNED.get()
        if why := guard(address, self._networks):
            raise FetchError(why, retryable=False)
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        flags = socket.AI_NUMERICHOST
        return [ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=flags)]

    async def close(self) -> None:
        """Nothing is held."""


class Web:
    """The adapter for http and https. Build it, and use it, inside a running event loop."""

    def __init__(self, settings: FetchSettings, blobs: Blobs, clock: Callable[[], int]) -> None:
        self._settings = settings
        self._blobs = blobs
        self._clock = clock
        self._spools = asyncio.Semaphore(SPOOLS)
        connector = aiohttp.TCPConnector(
            resolver=_Pinned(settings), use_dns_cache=False, limit=0, keepalive_timeout=KEEP_ALIVE, happy_eyeballs_delay=None
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": settings.user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPT},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.connect_timeout, sock_read=settings.answer_timeout),
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            read_bufsize=READ,
        )

    async def close(self) -> None:
        """Let go of all connections."""
        await self._session.close()

    async def get(self, request: FetchRequest, address: str) -> list[Record]:
        """The answers to a request for an object. Raises FetchError and StoreError."""
        answers = Answers(request, self._clock())
        async with self.exchange(request.url, address, _conditions(request.validators)) as response:
            status = response.status
            if status in (200, 203):
                return await self._object(answers, response)
            if status == 304:
                return _not_modified(answers, response)
            if status in REDIRECTS:
                return answers.moved(_target(request.url, response), status)
            if status in GONE:
                return answers.gone(f"status {status}", status)
            raise self.status_failure(response)

    @asynccontextmanager
    async def exchange(self, url: str, address: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request, as far as the header of its answer. All that goes wrong in it, body included, is a FetchError."""
        pinned, whole = _PINNED.set(address), asyncio.timeout(self._settings.total_timeout)
        try:
            where = URL(url, encoded=True)
            if why := guard(address, self._settings.networks) or self._literal(where):
                raise FetchError(why, retryable=False)
            async with whole:
                async with asyncio.timeout(self._settings.answer_timeout):
                    response = await self._session.get(where, headers=headers, allow_redirects=False)
                try:
                    yield response
                finally:
                    response.release()
        except (FetchError, StoreError):
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            if whole.expired():
                # It would hold its host for as long again.
                raise FetchError(f"not whole after {self._settings.total_timeout:g} seconds", retryable=False) from error
            raise _failure(error) from error
        finally:
            _PINNED.reset(pinned)

    def _literal(self, url: URL) -> str:
        """The verdict on a host that is an address itself: aiohttp asks no resolver about it."""
        host = url.host or ""
        numeric = ":" in host or host.rpartition(".")[2].isdigit()
        return guard(host, self._settings.networks) if numeric else ""

    async def pieces(self, response: aiohttp.ClientResponse, decoding: Decoding) -> AsyncIterator[bytes]:
        """The decoded body as it comes. Raises FetchError for a peer too slow and a body too large."""
        settings, waited = self._settings, 0.0
        while True:
            began = time.monotonic()
            # sock_read starts again with every byte, even of a chunk extension without end that gives no body.
            async with asyncio.timeout(settings.answer_timeout):
                data = await response.content.readany()
            waited += time.monotonic() - began
            if not data:
                break
            for piece in decoding.feed(data):
                yield piece
                await asyncio.sleep(0)  # a large body that is here already must not hold up the others
            if waited > settings.grace and decoding.received < waited * settings.min_rate:
                raise FetchError(f"too slow: less than {settings.min_rate} bytes per second", retryable=True)
        decoding.end()

    async def _object(self, answers: Answers, response: aiohttp.ClientResponse) -> list[Record]:
        settings, headers, known = self._settings, response.headers, answers.request.validators
        if (response.content_length or 0) > settings.max_body:
            raise FetchError(f"body larger than {settings.max_body:,} bytes", retryable=False)
        decoding = Decoding(headers.get("Content-Encoding", ""), settings.max_body, settings.max_ratio)
        async with Body(self._blobs, self._spools, settings.spool) as body:
            async for piece in self.pieces(response, decoding):
                await body.write(piece)
            validators = Validators(
                etag=_validator(headers.get("ETag", "")),
                modified=_validator(headers.get("Last-Modified", "")),
                md5=body.md5,
                size=body.size,
            )
            if known is not None and (known.md5, known.size) == (body.md5, body.size):
                return answers.unchanged(validators)
            stored = await body.store()
        kept = kept_headers(headers.items())
        return answers.fetched(stored, validators, kept.get("content-type", "")[:MAX_TYPE], kept, status=response.status)

    def status_failure(self, response: aiohttp.ClientResponse) -> FetchError:
        """What a status that gives no object says about another try."""
        status = response.status
        retryable = status in RETRYABLE or status >= 500
        wait = retry_after(response.headers.get("Retry-After", ""), self._clock()) if retryable else 0
        return FetchError(f"status {status}", retryable=retryable, wait=wait)


def retry_after(value: str, now: int) -> int:
    """The wait in ms that a Retry-After header asks for, in seconds or by a date (RFC 9110, 10.2.3): from 0 to a day."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(int(value[:9]) * 1000, LONGEST_WAIT)
    try:
        when = parsedate_to_datetime(value)
        # One that names no zone (as asctime writes it) is in GMT (RFC 9110, 5.6.7), and not in that of this machine.
        until = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError, TypeError):
        return 0
    return max(0, min(until - now, LONGEST_WAIT))


def _conditions(known: Validators | None) -> dict[str, str]:
    """RFC 9110, 13.1."""
    headers = {}
    if known is not None and known.etag:
        headers["If-None-Match"] = known.etag
    if known is not None and known.modified:
        headers["If-Modified-Since"] = known.modified
    return headers


def _not_modified(answers: Answers, response: aiohttp.ClientResponse) -> list[Record]:
    known = answers.request.validators
    if known is None:
        raise FetchError("status 304 to an unconditional request", retryable=False)
    etag = _validator(response.headers.get("ETag", "")) or known.etag
    modified = _validator(response.headers.get("Last-Modified", "")) or known.modified
    return answers.unchanged(Validators(etag=etag, modified=modified, md5=known.md5, size=known.size))


def _target(source: str, response: aiohttp.ClientResponse) -> str:
    """Where a redirect leads, canonical. Raises FetchError for a place that is none, or the same."""
    location = response.headers.get("Location", "")
    # Bytes that are not ASCII go as they came: aiohttp hides those that are not UTF-8 in surrogates.
    raw = location.encode("utf-8", "surrogateescape")
    target = canonical("".join(chr(b) if b < 0x80 else f"%{b:02X}" for b in raw), source) if raw else None
    if target is None:
        where = f"no place that we know: {location}" if location else "a place that is not told"
        raise FetchError(f"status {response.status} to {where}", retryable=False)
    if target == source:
        raise FetchError(f"status {response.status} to itself", retryable=False)
    return target


def _validator(value: str) -> str:
    """A validator as it can be sent back, or "": cut short it would be another one."""
    return value if len(value) <= MAX_VALIDATOR and value.isascii() and value.isprintable() else ""


def kept_headers(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the header fields of a response as a record keeps them, names in lower case.

    Repeated fields are joined by a comma and a blank (RFC 9110, 5.3), those of Set-Cookie, which may not be (5.3), by a line feed.
    Fields beyond `MAX_KEPT` bytes in all are left out.
    """
    kept: dict[str, str] = {}
    room = MAX_KEPT
    for field, raw in fields:
        name, value = _text(field).lower(), _text(raw)
        room -= len(name.encode()) + len(value.encode()) + 2
        if room < 0:
            break
        between = "\n" if name == "set-cookie" else ", "
        kept[name] = f"{kept[name]}{between}{value}" if name in kept else value
    return kept


def _text(value: str) -> str:
    """Return a name or value without control characters; aiohttp hides bytes that are not UTF-8 in surrogates."""
    return bounded(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), MAX_KEPT)


def _failure(error: Exception) -> FetchError:
    """What aiohttp and the system raise, as a reason. Order matters: their classes inherit from each other."""
    text = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return FetchError("no connection in time", retryable=True, unreachable=True)
    if isinstance(error, TimeoutError):
        return FetchError("no answer in time", retryable=True)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return FetchError(f"cannot connect: {_cause(error)}", retryable=True, unreachable=True)
    if isinstance(error, aiohttp.ClientPayloadError):
        cause = error.__cause__
        if isinstance(cause, BadHttpMessage) and not isinstance(cause, PayloadEncodingError):
            return FetchError(f"malformed answer: {_pointed(cause.message)}", retryable=False)
        return FetchError(f"truncated body: {text}", retryable=True)
    if isinstance(error, aiohttp.ClientResponseError):
        return FetchError(f"malformed answer: {_pointed(error.message)}", retryable=False)
    if isinstance(error, ValueError):  # aiohttp.InvalidURL is one
        return FetchError(f"not a request: {text}", retryable=False)
    return FetchError(f"connection broken: {text}", retryable=True)


def _pointed(message: str) -> str:
    """What the parser says, on one line, without the caret that it puts below the place."""
    return " ".join(message.split()).removesuffix(" ^")


def _cause(error: aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError) -> str:
    """What the system or TLS said, without the words that aiohttp puts around it."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.certificate_error
    return getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or str(cause)
