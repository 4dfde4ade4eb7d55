"""Connections of the client of OpenSearch, with bounds that it lacks: of the time and of the size of a whole answer.

Its time-out is one for each piece of an answer: a server that sends a byte now and then would hold a search for ever, and one that
sends without end would fill the memory.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

from opensearchpy import Urllib3HttpConnection
from urllib3 import HTTPResponse
from urllib3.exceptions import ReadTimeoutError, ResponseError

PIECE = 1 << 16
MAX_ANSWER = 1 << 30
"""Maximum bytes of an answer, decoded: that of a search has at most 10,000 hits, or 200 records."""

Open = Callable[..., Any]


class BoundedConnection(Urllib3HttpConnection):
    """Connection whose time-out is one for the whole answer."""

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        self.pool.urlopen = bounded(self.pool, float(self.timeout))


class UncheckedName(BoundedConnection):
    """Connection that accepts a certificate for another name; the client has no such option beside a context of TLS."""

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        self.pool.assert_hostname = False


def bounded(pool: Any, timeout: float) -> Open:
    """Return the function of a pool that sends a request, with an end to its answer; `timeout`: in seconds."""
    send = pool.urlopen

    def urlopen(method: str, url: str, *given: Any, **more: Any) -> HTTPResponse:
        until = time.monotonic() + timeout
        response = send(method, url, *given, **more, preload_content=False)
        try:
            body = bytearray()
            # Not `stream`: it waits until a piece is full.
            while piece := response.read1(PIECE, decode_content=True):
                body += piece
                if time.monotonic() > until:
                    raise ReadTimeoutError(pool, url, f"no whole answer within {timeout:g} s")
                if len(body) > MAX_ANSWER:
                    raise ResponseError(f"an answer of more than {MAX_ANSWER:,} bytes")
        except BaseException:
            response.close()
            raise
        response.release_conn()
        headers = {name: value for name, value in response.headers.items() if name.lower() != "content-encoding"}
        return HTTPResponse(io.BytesIO(body), headers, response.status)

    return urlopen
