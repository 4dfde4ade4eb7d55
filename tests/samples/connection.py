"""The server's end of an HTTP connection, for sites that are fast enough to measure crawlers with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Connection(asyncio.Protocol):
    """A connection of a client; requests without a body may arrive in pieces or several at once.

    `answer`: returns the bytes of the answer to a request, which is the text of its header.
    """

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(self._answer(request))
