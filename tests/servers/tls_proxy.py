"""A proxy that speaks TLS and asks for a login (HTTP basic authentication), in front of a server that does neither."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

HOPS = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "host", "authorization"))
"""Header fields that are not handed on."""


class TlsProxy:
    """Forwards requests with the right login to a server, and answers others with 401."""

    def __init__(self, target: str, user: str, password: str) -> None:
        self._target = target
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        """The Authorization that is let through."""
        self.seen: list[str] = []
        """Method and path of each request with the right login."""

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request."""
        if request.headers.get("authorization") != self.login:
            return web.json_response({"error": "Unauthorized"}, status=401, headers={"WWW-Authenticate": "Basic"})
        self.seen.append(f"{request.method} {request.path}")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOPS}
        url = f"{self._target}{request.rel_url}"
        async with aiohttp.ClientSession() as client, client.request(
            request.method, url, headers=headers, data=await request.read()
        ) as found:  # fmt: skip
            kept = {name: value for name, value in found.headers.items() if name.lower() not in HOPS}
            return web.Response(body=await found.read(), status=found.status, headers=kept)


@contextmanager
def tls_proxy(proxy: TlsProxy, certificate: tuple[Path, Path], clients: Path | None = None) -> Iterator[str]:
    """Run a proxy on the loopback in a thread; yields its URL. With `clients`, a certificate signed by that CA is asked for."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    if clients is not None:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    loop, started = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []

    async def begin() -> web.AppRunner:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", proxy.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        ports.append(runner.addresses[0][1])
        return runner

    def run() -> None:
        runner = loop.run_until_complete(begin())
        loop.call_soon(started.set)  # a stop before that would be lost
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield f"https://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
