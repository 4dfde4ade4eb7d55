"""Security of Faust's client: the credentials of its application, made from a `Security`.

Laws:
- No secret is part of a repr or an error: errors of the HTTP client, whose texts may have headers, are replaced by short ones.
- A token is requested again before it expires; requests have a time limit.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
import faust
from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]
from faust.auth import OAuthCredentials

from streams.kafka.client.security import OAUTH, Security

if TYPE_CHECKING:
    from faust.types.auth import CredentialsT

TIMEOUT = 10.0
"""Seconds that the server of tokens has to answer."""
SHARE = 0.8
"""Share of a token's life after which a new one is requested."""
LIFE = 300.0
"""Seconds that a token counts as valid whose answer names no time."""
MAX_ANSWER = 1 << 20
"""Maximum number of bytes of an answer with a token."""
EQUAL: Mapping[str, str] = {
    "metadata.max.age.ms": "consumer_metadata_max_age_ms",
    "connections.max.idle.ms": "consumer_connections_max_idle_ms",
    "max.partition.fetch.bytes": "consumer_max_fetch_size",
}
"""Settings of librdkafka with a number that Faust's client has too, under its own name."""


class TokenError(ConnectionError):
    """The server of tokens gives none; the text is one line without secrets.

    An OSError, which aiokafka takes for a broker that cannot be reached: it logs the text and tries again. It would end at others.
    """


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # aiokafka has no types
    """Tokens by OAuth 2.0 client credentials (RFC 6749, 4.4). For several event loops: it holds nothing that belongs to one."""

    def __init__(self, security: Security, clock: Callable[[], float] = time.monotonic) -> None:
        self._security = security
        self._clock = clock
        self._token = ""
        self._until = 0.0

    async def token(self) -> str:
        """Return a valid token. Raises TokenError."""
        if self._clock() >= self._until:
            asked = self._clock()
            self._token, life = await self._request()
            self._until = asked + SHARE * life
        return self._token

    async def _request(self) -> tuple[str, float]:
        """Return a new token and its life in seconds. Raises TokenError."""
        security = self._security
        form = {"grant_type": "client_credentials", **({"scope": security.scope} if security.scope else {})}
        # As librdkafka does it: not percent-encoded before (RFC 6749, 2.3.1), which few servers expect.
        login = base64.b64encode(f"{security.client_id}:{security.client_secret}".encode()).decode()
        headers = {"Authorization": f"Basic {login}"}
        context = ssl.create_default_context(cafile=security.token_ca or None)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(TIMEOUT)) as session,
                # The login goes to no other address than that of the settings.
                session.post(security.token_url, data=form, headers=headers, ssl=context, allow_redirects=False) as answer,
            ):
                status, body = answer.status, await answer.content.read(MAX_ANSWER)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TokenError(f"kafka.security.token_url: {security.token_url}: {type(error).__name__}") from None
        return _token_of(status, body, security.token_url)


def _token_of(status: int, body: bytes, url: str) -> tuple[str, float]:
    """Return the token of an answer, and its life in seconds. Raises TokenError."""
    if status != 200:
        raise TokenError(f"kafka.security.token_url: {url}: refuses the client (HTTP {status})")
    try:
        answer = json.loads(body)
        return str(answer["access_token"]), float(answer.get("expires_in", LIFE))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise TokenError(f"kafka.security.token_url: {url}: its answer has no token") from None


def credentials(security: Security) -> CredentialsT | None:
    """Return the credentials of a Faust application; None for an open cluster."""
    context = security.tls_context() if security.encrypted else None
    if not security.logs_in:
        return faust.SSLCredentials(context) if context else None
    if security.mechanism == OAUTH:
        return OAuthCredentials(oauth_cb=TokenProvider(security), ssl_context=context)
    return faust.SASLCredentials(
        username=security.user, password=security.password, ssl_context=context, mechanism=security.mechanism
    )


def equal_settings(client: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return what Faust's client has of these settings of librdkafka, and the names of the others."""
    found = {EQUAL[name]: int(value) for name, value in client.items() if name in EQUAL}
    return found, sorted(client.keys() - EQUAL.keys())
