"""The sample web site on loopback: the pages of `site/`, two downloads, one redirect.

A `with` statement serves it for its duration, on a free port of 127.0.0.1. `Site.asked` lists the requested paths, so that a test
can check what a Gatherer did and did not fetch.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.samples import make_corpus

SITE = Path(__file__).parent / "site"
REDIRECTS = {"/old/harvest.html": "/harvest.html"}
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".pdf": "application/pdf",
    ".gz": "application/gzip",
}


def pages() -> dict[str, bytes]:
    """The content of the site by path; "/" is its index page."""
    files = {f"/{path.relative_to(SITE).as_posix()}": path.read_bytes() for path in SITE.rglob("*") if path.is_file()}
    files |= {f"/{name}": body for name, body in make_corpus.downloads().items()}
    return files | {"/": files["/index.html"]}


class Site:
    """The running site: `url` is its root, `asked` lists the requested paths.

    A test may change `files` (content by path), `redirects` (target by path) and `walls` (paths that redirect to a test for cookies
    and back, unless a request has the cookie). While `fail` is set, every response is `failure`. A path
    that begins with `/moves/` and ends with a number redirects to the next number, without end.
    After `hold(n)` the first n requests are answered, and all others block until `go_on`.
    """

    def __init__(self) -> None:
        self.files = pages()
        self.redirects = dict(REDIRECTS)
        self.walls: set[str] = set()
        self.asked: list[str] = []
        self.fail = False
        self.failure = HTTPStatus.SERVICE_UNAVAILABLE
        self.retry_after = 0
        """Seconds that such a response asks for; 0: none."""
        self._fine = sys.maxsize
        self._answered = sys.maxsize
        self._may_answer = threading.Event()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="site", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the root, with a trailing slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def hold(self, answered: int) -> None:
        """Answer the first `answered` requests and block the others until `go_on`, which leaves a client in the middle of a run."""
        self._answered = answered

    def fail_after(self, answered: int, retry_after: int) -> None:
        """Answer the first `answered` requests and refuse the others with 503, and with a Retry-After in seconds."""
        self._fine, self.retry_after = answered, retry_after

    def is_failing(self) -> bool:
        """Whether the present request is refused."""
        return self.fail or len(self.asked) > self._fine

    def go_on(self) -> None:
        """Answer all requests again."""
        self._answered = sys.maxsize
        self._may_answer.set()

    def hear(self, path: str) -> None:
        """Record a request, and wait until it may be answered."""
        self.asked.append(path)
        if len(self.asked) > self._answered:
            self._may_answer.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.go_on()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: a client may disconnect before it has read the whole response."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # In seconds: a client that a busy machine delays finds its connection still open; the site closes without waiting for it.
    timeout = 120

    def __init__(self, site: Site, *rest: Any) -> None:
        self._site = site
        super().__init__(*rest)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self._site.hear(path)
        body = self._site.files.get(path)
        if self._site.is_failing():
            fields = {"Retry-After": str(self._site.retry_after)} if self._site.retry_after else {}
            self._answer(self._site.failure, fields, b"Later.\n")
            return
        if path in self._site.walls and "tested=1" not in self.headers.get("Cookie", ""):
            fields = {"Location": f"{path}?test=1", "Set-Cookie": "tested=1; Path=/; HttpOnly"}
            self._answer(HTTPStatus.FOUND, {"Location": path} if "?" in self.path else fields)
        elif path in self._site.walls and "?" in self.path:
            self._answer(HTTPStatus.FOUND, {"Location": path})
        elif path in self._site.redirects:
            self._answer(HTTPStatus.MOVED_PERMANENTLY, {"Location": self._site.redirects[path]})
        elif path.startswith("/moves/"):
            self._answer(HTTPStatus.FOUND, {"Location": f"/moves/{int(path.rpartition('/')[2]) + 1}"})
        elif body is None:
            self._answer(HTTPStatus.NOT_FOUND, {"Content-Type": "text/plain"}, b"There is nothing here.\n")
        else:
            self._page(path, body)

    def _page(self, path: str, body: bytes) -> None:
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        headers = {"ETag": etag, "Last-Modified": formatdate(make_corpus.DATE, usegmt=True)}
        if self.headers.get("If-None-Match") == etag:
            self._answer(HTTPStatus.NOT_MODIFIED, headers)
        else:
            self._answer(HTTPStatus.OK, headers | {"Content-Type": MEDIA.get(Path(path).suffix, "text/html; charset=utf-8")}, body)

    def _answer(self, status: HTTPStatus, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is that of the base class)
        """Log nothing: the requested paths are in `asked`."""
