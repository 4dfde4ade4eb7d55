"""Gateways of a routed search that have registered: they are found in a local Broker that is a registry (`routing.registry`).

At most MOST of them are asked: first those whose registrations have words of the query, the best first, then others. A registration
is untrusted: its URL is dialled as any other of a routed search, so only where `fetch.allow` and the public addresses permit it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING

from processors.broker.views import joined
from processors.query import parse
from processors.query.routing.choice import query_words
from schemas.query import Or, Query, Word
from streams.config.registry import gateway_url

if TYPE_CHECKING:
    from streams.routing.local import LocalBrokers

SERVERS = parse("type:Server AND kind:broker")
MOST = 50
"""Maximum number of registered gateways that one search asks for their Brokers."""
LATE = "no answer in time"


def registered_servers(local: LocalBrokers, registry: str, query: Query, own: str = "", patience: float | None = None) -> list[str]:
    """Return the URLs of registered gateways, but for `own`. `patience`: seconds that it may take; None: as long as it needs.

    Raises KeyError, OSError (also if it takes too long), IndexDamaged, QueryError.
    """
    found: dict[str, None] = {}
    end = None if patience is None else time.monotonic() + patience
    for wanted in _queries(query):
        if len(found) < MOST:
            # One server may have registered under several names, and this gateway, too.
            asked = local.begin_search(registry, wanted, 2 * MOST)
            try:
                hits = asked.result(None if end is None else max(0.0, end - time.monotonic())).hits
            except FutureTimeout:
                asked.cancel()
                raise TimeoutError(LATE) from None
            found |= dict.fromkeys(url for hit in hits if (url := _url(hit.url)) and url != own)
    return list(found)[:MOST]


def _queries(query: Query) -> Iterator[Query]:
    words = tuple(Word(word) for word in query_words(query))
    if words:
        yield joined((SERVERS, Or(words) if len(words) > 1 else words[0]))
    yield SERVERS


def _url(text: str) -> str:
    """Return the URL of a gateway; "" if it is none."""
    try:
        return gateway_url(text)
    except ValueError:
        return ""
