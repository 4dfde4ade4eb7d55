"""A web site whose pages are a mapping, and which counts its requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Site(NamedTuple):
    """A site: its URL, its pages by name, and the paths that were requested."""

    url: str
    pages: MutableMapping[str, str]
    requests: list[str]


@contextmanager
def site() -> Iterator[Site]:
    """Serve a site on loopback, whose first page links to all others. Answers have no validators: each request is a fresh look."""
    pages: dict[str, str] = {}
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            name = self.path.strip("/")
            page = pages.get(name) if name else "".join(f'<p><a href="/{one}">{one}</a>' for one in sorted(pages))
            body = (page or "").encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html" if not name or name.endswith(".html") else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}/", pages, requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
