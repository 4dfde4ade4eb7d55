"""Guard of the gateway: an ASGI middleware that refuses requests before anything is asked, and adds security headers.

Laws:
- A Host that is not one of ours is refused, so that no page of another site can reach the gateway by a name of its own (DNS
  rebinding). Probes and metrics are answered under any name, and show nothing of the collection.
- Nothing is changed by a request: GET and HEAD, and POST for /login alone, but for the administration page (`admin/`) and the
  registry (`brokers/registry.py`), which are there only with their tokens, and ask for these themselves: the cookie of /login does
  not open them.
- A client has `rate` requests a second, over BURST seconds; styles, scripts and probes are free.
- With a token, everything but the probes, the login and its style asks for it: as a bearer, as a password, or as the
  cookie that /login gives.
- An answer that nobody reads is ended after PATIENCE seconds.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sinks.gateway.metrics import GatewayMetrics
from sinks.gateway.options import GatewayOptions

LOG = logging.getLogger("harvest.gateway")
BURST = 5.0
"""Seconds of requests that a client may save up."""
MAX_CLIENTS = 10_000
"""Clients that are remembered; the one that came longest ago is forgotten first."""
MAX_URL = 16_384
"""Maximum length of path and query of a URL in bytes."""
PATIENCE = 20.0
"""Seconds that a piece of an answer may wait for its reader."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
ABORT = "harvest.abort"
"""Key in the scope of a function that closes the connection at once, with what has not been read yet."""
COOKIE = "harvest-session"
PROBES = frozenset(("/livez", "/readyz", "/metrics"))
OPEN = frozenset(("/login", "/opensearch.xml"))
"""Paths that ask for no token, beside those below STATIC and the probes."""
STATIC = "/static/"
ADMIN = "/admin"
"""Path of the administration page, and the beginning of those below it."""
REGISTRY = "/registry"
"""Path to which servers send their registrations."""
NO_REGISTRY = "There is no registry here (serve.registry)."
NO_ADMIN = "There is no administration page without a token of its own: set serve.admin_token (HARVEST_SERVE_ADMIN_TOKEN)."
LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))
POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # What is found may be for some users alone.
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Cookie",
}


def _nothing() -> None:
    """Do nothing: a server without connections, as in tests."""


def session(token: str) -> str:
    """Return the value of the cookie of those who know the token; the token cannot be computed from it."""
    return hmac.new(token.encode(), b"harvest gateway session", hashlib.sha256).hexdigest()


def is_admin(path: str) -> bool:
    """Return whether a path, without the root path, is of the administration page."""
    return path == ADMIN or path.startswith(f"{ADMIN}/")


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; a name other than localhost may mean any."""
    name = host.strip("[]").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def client_key(address: str) -> str:
    """Return what a client is counted by: its address, of IPv6 the network of 64 bits that a client has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6:
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return address


def client_of(connection: HTTPConnection) -> str:
    """Return what the client of a request is counted by."""
    return client_key(connection.client.host) if connection.client else ""


class BrokenOffError(Exception):
    """An answer cannot be completed after it has begun: its connection is closed, which is how a client sees it."""


class Allowance:
    """Requests that each client may still send."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Count a request; return 0 if it is allowed, else the seconds after which one is."""
        if not self._rate:
            return 0.0
        now = self._clock()
        most = max(1.0, self._rate * BURST)
        saved, then = self._clients.pop(client, (most, now))
        saved = min(most, saved + (now - then) * self._rate)
        allowed = saved >= 1
        self._clients[client] = (saved - allowed, now)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0 if allowed else (1 - saved) / self._rate


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, options: GatewayOptions, metrics: GatewayMetrics) -> None:
        self._app, self._options, self._metrics = app, options, metrics
        self._hosts = {name.lower() for name in options.hosts}
        if options.host not in ("0.0.0.0", "::"):  # noqa: S104 - these are no names
            self._hosts.add(options.host.strip("[]").lower())
        self._allowance = Allowance(options.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 0
        # An answer to HEAD is that to GET, without its body, which the server leaves out.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                self._metrics.seconds.labels(_route(asked)).observe(time.monotonic() - started)
            try:
                async with asyncio.timeout(PATIENCE):
                    await send(message)
            except TimeoutError:
                raise BrokenOffError("nobody reads it") from None

        refusal = self._refusal(scope)
        try:
            await (refusal or self._app)(asked, receive, answer)
        except BrokenOffError as error:
            LOG.warning("an answer was broken off: %s", error)
            scope.get(ABORT, _nothing)()
        finally:
            self._metrics.requests.labels(_route(asked), str(status)).inc()

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused; None if it is not."""
        connection = HTTPConnection(scope)
        path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        if path in PROBES:
            return None
        if not self._is_ours(connection.headers):
            return self._refused(path, "host", 421, "This name is not served here (serve.hosts).")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            return self._refused(path, "length", 414, f"The address is longer than {MAX_URL:,} bytes.")
        if is_admin(path) and not self._options.admin:
            return self._refused(path, "token", 404, NO_ADMIN)
        if path == REGISTRY and not (self._options.token and self._options.registry):
            return self._refused(path, "token", 404, NO_REGISTRY)
        if refusal := self._method_refusal(scope["method"], path):
            return refusal
        if path.startswith(STATIC):
            return None
        if wait := self._allowance.take(client_of(connection)):
            return self._refused(path, "rate", 429, "Too many requests.", **{"Retry-After": str(int(wait) + 1)})
        if path not in OPEN and not is_admin(path) and not self._is_known(connection):
            return self._login(connection, path)
        return None

    def _method_refusal(self, method: str, path: str) -> Response | None:
        if method in ("GET", "HEAD") or (method == "POST" and (path in ("/login", REGISTRY) or is_admin(path))):
            return None
        if is_admin(path):
            return self._refused(path, "method", 405, "Only GET, HEAD and POST are answered.", Allow="GET, HEAD, POST")
        return self._refused(path, "method", 405, "Only GET and HEAD are answered.", Allow="GET, HEAD")

    def _is_ours(self, headers: Headers) -> bool:
        given = headers.getlist("host")
        if len(given) != 1:
            return False
        if (found := _HOST.fullmatch(given[0].lower())) is None:
            return False
        name = found[1].strip("[]").rstrip(".")
        return "*" in self._hosts or name in self._hosts or name in LOCAL

    def _is_known(self, connection: HTTPConnection) -> bool:
        token = self._options.token
        if not token:
            return True
        if is_token(self._options, presented(connection.headers.get("authorization", ""))):
            return True
        return hmac.compare_digest(connection.cookies.get(COOKIE, "").encode(), session(token).encode())

    def _login(self, connection: HTTPConnection, path: str) -> Response:
        if "text/html" in connection.headers.get("accept", "") and not path.startswith("/api/"):
            query = connection.scope["query_string"].decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="")
            return RedirectResponse(f"{connection.scope.get('root_path', '')}/login?next={back}", 303)
        return self._refused(
            path, "token", 401, "A token is needed (serve.token).", **{"WWW-Authenticate": 'Bearer, Basic realm="Harvest"'}
        )

    def _refused(self, path: str, reason: str, status: int, text: str, **headers: str) -> Response:
        self._metrics.refused.labels(reason).inc()
        if path.startswith("/api/"):
            return JSONResponse({"error": text}, status, headers)
        return PlainTextResponse(f"{text}\n", status, headers)


def is_token(options: GatewayOptions, given: bytes) -> bool:
    """Return whether this is the token of all clients, or that of the administration page, whose owners are clients, too."""
    found = [hmac.compare_digest(given, token.encode()) for token in (options.token, options.admin_token) if token]
    return any(found)  # after all were compared, so that the time does not tell which it is


def presented(authorization: str) -> bytes:
    """Return the token that a header presents: as a bearer, or as the password of any user, which readers of feeds can send."""
    kind, _, given = authorization.partition(" ")
    match kind.lower():
        case "bearer":
            return given.strip().encode()
        case "basic":
            try:
                return base64.b64decode(given.strip(), validate=True).partition(b":")[2]
            except ValueError:
                return b""
    return b""


def _route(scope: Scope) -> str:
    """Return the pattern of the path that a request was routed to; a path of the client's own would be a label without bound."""
    route = scope.get("route")
    return str(getattr(route, "path", "other"))
