"""The proxy passes on requests with the right login and no others, without the login, and ends with its block."""

from __future__ import annotations

import base64
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.servers.certificates import Authority
from tests.servers.fixtures import TIMEOUT
from tests.servers.nginx import proxy

PASSWORD = "never-to-be-seen"


class Server(ThreadingHTTPServer):
    """A server that answers every request, and records it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None, bytes]] = []


class Handler(BaseHTTPRequestHandler):
    """Records path, login and body."""

    server: Server

    def do_POST(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A running server."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(TIMEOUT)


def post(url: str, login: str, authority: Authority) -> tuple[int, bytes]:
    """The status and the body of the answer to a request."""
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}
    request = urllib.request.Request(url, b"x" * 3_000_000, headers, method="POST")
    try:
        context = ssl.create_default_context(cafile=str(authority.path))
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def test_only_requests_with_the_login_are_passed_on(server: Server, tmp_path: Path) -> None:
    """A request without the login, or with a wrong one, is refused; the right one is passed on without it, large as it is."""
    authority = Authority(tmp_path)
    at = f"http://127.0.0.1:{server.server_port}"
    with proxy(tmp_path, at, {"harvest": PASSWORD}, authority.sign("server")) as running:
        url = f"{running.url}/a/_bulk?x=%20y"
        refused = [post(url, login, authority)[0] for login in ("", "harvest:wrong", f"other:{PASSWORD}")]
        assert refused == [401, 401, 401]
        assert post(url, f"harvest:{PASSWORD}", authority) == (200, b"done")
        assert running.passed() == ["POST /a/_bulk"]
    assert server.requests == [("/a/_bulk?x=%20y", None, b"x" * 3_000_000)]
    logs = "".join((tmp_path / name).read_text("utf-8") for name in ("access.log", "error.log", "server.log"))
    assert PASSWORD not in logs


def test_proxy_ends_and_returns_on_its_port(server: Server, tmp_path: Path) -> None:
    """Nothing listens once the block has ended; a second start in the folder has the same address."""
    authority = Authority(tmp_path)
    certificate = authority.sign("server")
    at, users = f"http://127.0.0.1:{server.server_port}", {"harvest": PASSWORD}
    with proxy(tmp_path, at, users, certificate) as first:
        assert post(first.url, f"harvest:{PASSWORD}", authority)[0] == 200
    with pytest.raises(urllib.error.URLError, match="refused"):
        post(first.url, "", authority)
    with proxy(tmp_path, at, users, certificate) as second:
        assert second.url == first.url
        assert post(second.url, f"harvest:{PASSWORD}", authority)[0] == 200
