"""The gateway's server: runs the application with uvicorn until it is stopped.

uvicorn has no time limit for a request that never ends, and one for idle connections alone; here a request has to be complete
within PATIENCE seconds, and one client has a limited number of connections, so that slow clients cannot take those of others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import cast

import h11
import uvloop
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from sinks.gateway.admin.ports import Administration
from sinks.gateway.app import application
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.brokers.registry import Registry
from sinks.gateway.file_sending import SEND_FILE, send_file
from sinks.gateway.guard import ABORT, BrokenOffError, client_key
from sinks.gateway.options import GatewayOptions
from sinks.gateway.ports import Collection, OpenIndex

PATIENCE = 15.0
"""Seconds in which a request has to arrive."""
IDLE = 15
"""Seconds after which a connection without a request is closed."""
GRACE = 10
"""Seconds that requests in progress have at the end."""
CONNECTIONS = 128
"""Connections of one client at once."""
ALL_CONNECTIONS = 2_000
SWITCH = 0.001
"""Seconds after which a thread that computes gives way to others."""
MAX_HEAD = 32_768
"""Maximum length of a request's head in bytes."""


class Protocol(H11Protocol):
    """HTTP/1.1 with a time limit for a request, and a limited number of connections for each client."""

    clients: Counter[str] = Counter()  # noqa: RUF012 - shared by all connections of the process
    proxies: Sequence[str] = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or close it if the client has too many; a proxy has those of its clients."""
        super().connection_made(transport)
        self._key = client_key(self.client[0]) if self.client else ""
        self.clients[self._key] += 1
        self._late = self.loop.call_later(PATIENCE, self._expire)
        if self.clients[self._key] > CONNECTIONS and not is_proxy(self.client[0] if self.client else "", self.proxies):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        super().connection_lost(exc)
        self._late.cancel()
        self.clients[self._key] -= 1
        if self.clients[self._key] <= 0:
            del self.clients[self._key]

    def handle_events(self) -> None:
        """Handle what has arrived; the time limit begins again with each complete request."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            # The application begins after this: it may end a connection whose client does not read.
            cast("dict[str, object]", self.scope).update({ABORT: self.transport.abort, SEND_FILE: self.send_file})
            self._wait(PATIENCE)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request of HTTP; called while its error is handled. A head that is too long is 431 (RFC 6585, 5)."""
        error = sys.exception()
        if not isinstance(error, h11.RemoteProtocolError) or error.error_status_hint != HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            super().send_400_response(msg)
            return
        text = f"The head of the request is longer than {MAX_HEAD:,} bytes.\n".encode("ascii")
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(text))), ("Connection", "close")]
        status = HTTPStatus(error.error_status_hint)
        answer = [h11.Response(status_code=status, headers=headers, reason=status.phrase), h11.Data(data=text), h11.EndOfMessage()]
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in answer))
        self.transport.close()

    async def send_file(self, file: int, size: int) -> None:
        """Send `size` bytes of an open file as the body of the answer in progress; none to HEAD. Raises BrokenOffError."""
        cycle: RequestResponseCycle = self.cycle
        if cycle.scope["method"] == "HEAD":
            return
        # h11 takes no data of an answer then, and the socket may be that of another connection already.
        if cycle.disconnected or self.transport.is_closing():
            raise BrokenOffError("its reader has gone")
        # The file is all of the body: what is counted here is sent there (h11: "Support for sendfile()").
        self.conn.send_with_data_passthrough(h11.Data(data=cast("bytes", range(size))))
        await send_file(self.transport, file, size)

    def on_response_complete(self) -> None:
        """Wait for the next request, which may begin as late as the connection may be idle."""
        super().on_response_complete()
        self._wait(PATIENCE + IDLE)

    def _wait(self, seconds: float) -> None:
        self._late.cancel()
        self._late = self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        """Close a connection whose request is not complete; one that is being answered is left alone."""
        cycle: RequestResponseCycle | None = self.cycle
        answering = cycle is not None and not cycle.response_complete
        if answering and self.conn.their_state is not h11.SEND_BODY:
            self._wait(PATIENCE)
        else:
            self.transport.abort()


def is_proxy(address: str, proxies: Sequence[str]) -> bool:
    """Return whether an address is that of a trusted proxy; `proxies`: addresses, networks, or `*` for any."""
    try:
        found = ip_address(address)
        return any(proxy == "*" or found in ip_network(proxy, strict=False) for proxy in proxies)
    except ValueError:
        return False


class _Gateway(Server):
    """Server that reports when it answers, and ends in order at the first signal and at once at the second."""

    def __init__(self, config: Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if not self.should_exit:
            self._started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals during the block; uvicorn would raise them once more at its end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self, number: signal.Signals) -> None:
        if self.should_exit:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.should_exit = True


def serve(
    options: GatewayOptions,
    open_index: OpenIndex,
    collection: Collection,
    started: Callable[[str], None],
    brokers: Brokers | None = None,
    administration: Administration | None = None,
    registry: Registry | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; then requests in progress are completed. Raises OSError if the address is not available.

    `started` is called once with the URL of the search page, when requests are answered; `brokers`: all Brokers of the gateway.
    Called in the main thread.
    """
    # Threads search; the one that answers need not wait long for its turn of the interpreter.
    sys.setswitchinterval(SWITCH)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    both = options.host == "::" and socket.has_dualstack_ipv6()
    listener = socket.create_server((options.host, options.port), family=family, backlog=512, dualstack_ipv6=both)
    Protocol.proxies = options.proxies
    with listener:
        # Inherited by connections; without it the second half of an answer waits for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = listener.getsockname()[1]
        logging.getLogger("uvicorn.error").addFilter(_is_logged)
        config = Config(
            application(options, open_index, collection, brokers, administration, registry),
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=ALL_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEAD,
            proxy_headers=bool(options.proxies),
            forwarded_allow_ips=list(options.proxies),
        )
        server = _Gateway(config, lambda: started(f"http://{url_host(options.host)}:{port}{options.root_path}/"))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve([listener]))


def _is_logged(record: logging.LogRecord) -> bool:
    """Return whether a message of uvicorn is logged: not what clients cause, nor answers that have a line of ours already."""
    return record.levelno >= logging.ERROR and "without completing response" not in record.getMessage()


def url_host(host: str) -> str:
    """Return the name by which a browser of this machine reaches an address."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - every address, this machine's among them
        return "localhost"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
