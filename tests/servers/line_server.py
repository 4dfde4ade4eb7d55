"""A Gopher server on a thread, with answers that the test gives."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Any, Self


class LineServer:
    """A context manager. `pages`: the answer to each line; None: silence until the client closes the connection."""

    def __init__(self) -> None:
        self.pages: dict[bytes, bytes | None] = {}
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                outer.answer(self)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.port = int(self._server.server_address[1])
        self.address = f"127.0.0.1:{self.port}"

    def answer(self, request: Any) -> None:
        """Answer one request."""
        page = self.pages.get(request.rfile.readline().rstrip(b"\r\n"), b"3not found\t\terror.host\t1\r\n")
        try:
            if page is None:
                request.rfile.read()
            else:
                request.wfile.write(page)
        except OSError:
            pass

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
