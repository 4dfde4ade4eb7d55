"""HTTP and HTTPS: sends one conditional GET to one pinned address, and interprets the response.

Strategy: aiohttp handles the protocol; following redirects, decoding, name resolution and cookies are turned off. The address was
chosen when the host was resolved, and is checked again before the connection; Host and SNI carry the name.

Laws:
- All that a peer sends is limited in bytes: header, body, decoded body. All waits are limited in time: connection, header, pieces,
  the whole exchange.
- A redirect is not followed here (DESIGN, "Stages"): its target is a URL like any other, and the frontier requests it. Only in a
  chain that sets cookies within one host (`chain.py`), further requests are sent, one by one, with the cookies of the chain.
- Of a part of another Gatherer's database only the changes are requested (RFC 3229), where the ETag of the last answer is known.
  Changes of anything but that are a failure, after which the whole is requested. An equal body of changes is no unchanged object.
- RFC 9110 defines what a status means; Retry-After (10.2.3) is respected up to one day.
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

from processors.collector import CHANGED, MANIPULATION, is_part
from processors.urls import guard
from schemas.ports import Blobs
from schemas.records import DOUBT, OTHER_BASE, FetchRequest, Record, Validators
from streams.fetch.adapters.chain import Redirect, redirect
from streams.fetch.answers import Answers, FetchError, StoreError, bounded
from streams.fetch.body import SPOOLS, Body
from streams.fetch.decode import ACCEPT, Decoding
from streams.fetch.settings import LONGEST_WAIT, FetchSettings

MAX_HEADER = 8_190
"""Maximum bytes of the status line, and of one header field."""
MAX_KEPT = 16_384
"""Maximum bytes of all header fields, names and values, in a record; further fields are left out."""
SINGLE = frozenset({"content-type", "last-modified", "date", "etag", "content-length", "content-location", "expires", "server"})
"""Fields that have one value: of several, the first is kept."""
NEEDED = SINGLE | {"content-disposition", "content-encoding", "content-language", "link", "x-robots-tag"}
"""Fields that summaries and decisions depend on: they are kept before all others."""
MAX_TYPE = 1_000
"""Maximum characters of a content type."""
MAX_VALIDATOR = 300
ACCEPTED = "A-IM"
"""Field of a request that names the instance manipulations that are accepted."""
READ = 65_536
KEEP_ALIVE = 15

REDIRECTS = frozenset((300, 301, 302, 303, 307, 308))
GONE = frozenset((404, 410))
RETRYABLE = frozenset((408, 425, 429))

_PINNED: ContextVar[str] = ContextVar("address to dial")


class _Pinned(AbstractResolver):
    """Resolves each name to the pinned address of the request, after checking that address again."""

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
        """Do nothing: no resources stay open."""


class Client:
    """HTTP client that connects to checked addresses alone. Create and use it inside a running event loop."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
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
        """Close all connections."""
        await self._session.close()

    @asynccontextmanager
    async def exchange(self, url: str, address: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request; yield the response once its header has arrived. Any failure, including in the body, is a FetchError."""
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
                # Not retryable: another try would occupy its host for as long again.
                raise FetchError(f"not whole after {self._settings.total_timeout:g} seconds", retryable=False) from error
            raise _failure(error) from error
        finally:
            _PINNED.reset(pinned)

    def _literal(self, url: URL) -> str:
        """Return why a host that is an IP address is refused, or "": aiohttp does not call the resolver for those."""
        host = url.host or ""
        numeric = ":" in host or host.rpartition(".")[2].isdigit()
        return guard(host, self._settings.networks) if numeric else ""

    async def pieces(self, response: aiohttp.ClientResponse, decoding: Decoding) -> AsyncIterator[bytes]:
        """Yield the decoded body in pieces. Raises FetchError if the peer is too slow or the body too large."""
        settings, waited = self._settings, 0.0
        while True:
            began = time.monotonic()
            # sock_read restarts with every byte, even within an endless chunk extension, which yields no body.
            async with asyncio.timeout(settings.answer_timeout):
                data = await response.content.readany()
            waited += time.monotonic() - began
            if not data:
                break
            for piece in decoding.feed(data):
                yield piece
                await asyncio.sleep(0)  # lets other tasks run while a large buffered body is decoded
            if waited > settings.grace and decoding.received < waited * settings.min_rate:
                raise FetchError(f"too slow: less than {settings.min_rate} bytes per second", retryable=True)
        decoding.end()


class Web(Client):
    """The HTTP client of the adapter for http and https. Create and use it inside a running event loop."""

    def __init__(self, settings: FetchSettings, blobs: Blobs, clock: Callable[[], int]) -> None:
        super().__init__(settings)
        self._blobs = blobs
        self._clock = clock
        self._spools = asyncio.Semaphore(SPOOLS)

    async def get(self, request: FetchRequest, address: str, url: str, cookie: str) -> list[Record] | Redirect:
        """Send a request and return the records that answer it, or a redirect. Raises FetchError and StoreError.

        `url`: that of the request, or another of its chain of redirects; at another one, a final response gives no records.
        `cookie`: the Cookie header, "" for none.
        """
        final, began = url == request.url, time.monotonic()
        headers = (_conditions(request) if final else {}) | ({"Cookie": cookie} if cookie else {})
        async with self.exchange(url, address, headers) as response:
            status = response.status
            answers = Answers(request, self._clock(), int((time.monotonic() - began) * 1_000))
            if status in REDIRECTS:
                fields = response.headers
                return redirect(url, status, fields.get("Location", ""), tuple(fields.getall("Set-Cookie", ())))
            if status in RETRYABLE or status >= 500:
                raise self.status_failure(response)
            if not final:
                return []
            if status in (200, 203):
                return await self._object(answers, response)
            if status == CHANGED and ACCEPTED in headers:
                return await self._changes(answers, response)
            if status == 304:
                return _not_modified(answers, response)
            if status in GONE:
                return answers.gone(f"status {status}")
            raise self.status_failure(response)

    async def _changes(self, answers: Answers, response: aiohttp.ClientResponse) -> list[Record]:
        """Return the answer for changes since the object that was fetched last."""
        known, headers = answers.request.validators, response.headers
        applied = (name.strip().lower() for value in headers.getall("IM", ()) for name in value.split(","))
        if known is None or headers.get("Delta-Base", "") != known.etag or [*applied] != [MANIPULATION]:
            raise FetchError(OTHER_BASE, retryable=True)
        return await self._object(answers, response)

    async def _object(self, answers: Answers, response: aiohttp.ClientResponse) -> list[Record]:
        changes = response.status == CHANGED
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
                md5="" if changes else body.md5,
                size=body.size,
            )
            if not changes and known is not None and (known.md5, known.size) == (body.md5, body.size):
                return answers.unchanged(validators)
            if known is not None and known.size > 0 and not body.size and _doubts(answers):
                raise FetchError(f"{DOUBT}: the start page is empty", retryable=False)
            stored = await body.store()
        # Of several fields the first counts: joined, they would be no media type.
        content_type = _text(headers.get("Content-Type", ""))[:MAX_TYPE]
        kept = kept_headers(headers.items())
        return answers.fetched(stored, validators, content_type, kept, status=response.status, changes=changes)

    def status_failure(self, response: aiohttp.ClientResponse) -> FetchError:
        """Return the failure for a status without an object: retryable or not, and the wait before the next try."""
        status = response.status
        retryable = status in RETRYABLE or status >= 500
        wait = retry_after(response.headers.get("Retry-After", ""), self._clock()) if retryable else 0
        return FetchError(f"status {status}", retryable=retryable, wait=wait, status=status)


def retry_after(value: str, now: int) -> int:
    """Return the wait in ms that a Retry-After header asks for, in seconds or as a date (RFC 9110, 10.2.3): from 0 to one day."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(int(value[:9]) * 1000, LONGEST_WAIT)
    try:
        when = parsedate_to_datetime(value)
        # A date without a zone (as asctime writes it) is in GMT (RFC 9110, 5.6.7), not in the zone of this machine.
        until = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError, TypeError):
        return 0
    return max(0, min(until - now, LONGEST_WAIT))


def _conditions(request: FetchRequest) -> dict[str, str]:
    """Return the header fields of a conditional request (RFC 9110, 13.1), and of one for changes (RFC 3229, 10.5.3)."""
    headers, known = {}, request.validators
    # A weak validator does not name one body (RFC 9110, 8.8.1): changes cannot be applied to it.
    if known is not None and known.etag.startswith('"') and is_part(request.root.url, request.url):
        headers[ACCEPTED] = MANIPULATION
    if known is not None and known.etag:
        headers["If-None-Match"] = known.etag
    if known is not None and known.modified:
        headers["If-Modified-Since"] = known.modified
    return headers


def _not_modified(answers: Answers, response: aiohttp.ClientResponse) -> list[Record]:
    known = answers.request.validators
    if known is None:
        raise FetchError("status 304 to an unconditional request", retryable=False)
    # The mark of a part moves with the changes up to it alone, which a status 304 does not have.
    stated = "" if is_part(answers.request.root.url, answers.request.url) else response.headers.get("ETag", "")
    etag = _validator(stated) or known.etag
    modified = _validator(response.headers.get("Last-Modified", "")) or known.modified
    return answers.unchanged(Validators(etag=etag, modified=modified, md5=known.md5, size=known.size))


def _doubts(answers: Answers) -> bool:
    """Return whether a root that suddenly is empty is most likely a broken server; see `processors/frontier/doubt.py`."""
    return not answers.request.depth and answers.now > answers.request.root.accept


def _validator(value: str) -> str:
    """Return a validator if it can be sent back unchanged, else "": a shortened one would be another validator."""
    return value if len(value) <= MAX_VALIDATOR and value.isascii() and value.isprintable() else ""


def kept_headers(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the header fields of a response as they are stored in a record, names in lower case.

    Repeated fields are joined by a comma and a blank (RFC 9110, 5.3); those of Set-Cookie, which must not be (5.3), by a line feed.
    Of `SINGLE` fields the first is kept. Fields for which there is no room in `MAX_KEPT` bytes are left out, `NEEDED` fields last.
    """
    kept: dict[str, str] = {}
    room = MAX_KEPT
    named = [(_text(field).lower(), _text(raw)) for field, raw in fields]
    for name, value in sorted(named, key=lambda field: field[0] not in NEEDED):
        size = len(name.encode()) + len(value.encode()) + 2
        if size > room or (name in SINGLE and name in kept):
            continue
        room -= size
        between = "\n" if name == "set-cookie" else ", "
        kept[name] = f"{kept[name]}{between}{value}" if name in kept else value
    return kept


def _text(value: str) -> str:
    """Return a name or value without control characters; aiohttp hides bytes that are not UTF-8 in surrogates."""
    return bounded(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), MAX_KEPT)


def _failure(error: Exception) -> FetchError:
    """Convert an exception of aiohttp or the system into a FetchError. The order matters: their classes inherit from each other."""
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
    if isinstance(error, ValueError):  # includes aiohttp.InvalidURL
        return FetchError(f"not a request: {text}", retryable=False)
    return FetchError(f"connection broken: {text}", retryable=True)


def _pointed(message: str) -> str:
    """Return the message of the HTTP parser on one line, without the caret that marks the place of the error."""
    return " ".join(message.split()).removesuffix(" ^")


def _cause(error: aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError) -> str:
    """Return the error text of the system or of TLS, without the words that aiohttp adds."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.certificate_error
    return getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or str(cause)
