"""The HTTP server of a worker: /livez, /readyz, /metrics.

Strategy: the standard library's server on a thread of its own, so that it answers while the loop of a worker is busy or stuck,
which is when it is needed. It writes nothing, and shows nothing of the collection.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self

from streams.telemetry.exposition import CONTENT_TYPE, Exposition
from streams.telemetry.health import Health, Verdict
from streams.telemetry.metrics import Metrics

PATIENCE = 5.0
"""Seconds that a client may take to send its request."""
JSON = "application/json"
Answer = Callable[[], tuple[int, str, bytes]]
"""Returns a status, a content type and a body."""


class HealthServer:
    """Serves while the `with` block runs; `address` is (host, port). With port 0 the system chooses one.

    `measure` is called before the metrics are collected. Raises OSError if the address is not available.
    """

    def __init__(self, host: str, port: int, health: Health, metrics: Metrics, measure: Callable[[], None] = lambda: None) -> None:
        exposition = Exposition(metrics, health)

        def collected() -> tuple[int, str, bytes]:
            measure()
            return 200, CONTENT_TYPE, exposition.text()

        class Asked(_Handler):
            answers: ClassVar[Mapping[str, Answer]] = {
                "/livez": lambda: _verdict(health.alive()),
                "/readyz": lambda: _verdict(health.ready()),
                "/metrics": collected,
            }

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore a client that has disconnected."""

        self._server = Server((host, port), Asked)
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Return the address on which it listens."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _verdict(verdict: Verdict) -> tuple[int, str, bytes]:
    body = json.dumps({"ok": verdict.ok, "checks": {name: said or "ok" for name, said in verdict.checks.items()}})
    return (200 if verdict.ok else 503), JSON, f"{body}\n".encode()


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version = "harvest"
    sys_version = ""
    answers: ClassVar[Mapping[str, Answer]] = {}

    def do_GET(self) -> None:
        """Answer a request."""
        answer = self.answers.get(self.path.partition("?")[0])
        code, kind, body = answer() if answer else (404, "text/plain", b"/livez /readyz /metrics\n")
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the standard library's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Log nothing: probes come every few seconds."""
