"""A collector behind a proxy that spoils changes: whatever arrives, the next pass has what the source has."""

from __future__ import annotations

import gzip
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.streams.cli.test_collect import gateway, summaries

KEPT = ("Content-Type", "ETag", "IM", "Delta-Base")


class Proxy(ThreadingHTTPServer):
    """A proxy for one gateway. `fault`: what it does to changes: "cut", "base" (of other marks), or nothing."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = urlsplit(target).netloc
        self.fault = ""
        self.statuses: list[int] = []
        """Statuses of the parts sent, in their order."""

    @property
    def url(self) -> str:
        """URL that stands for the gateway."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Forwards one request."""

    server: Proxy

    def do_GET(self) -> None:
        """Send what the gateway sends, decompressed, with the present fault."""
        connection = http.client.HTTPConnection(self.server.target, timeout=60)
        wanted = {name: self.headers[name] for name in ("If-None-Match", "A-IM") if name in self.headers}
        connection.request("GET", self.path, headers=wanted)
        answer = connection.getresponse()
        body = answer.read()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        fields = {name: answer.headers[name] for name in KEPT if name in answer.headers}
        if answer.status == 226 and self.server.fault == "cut":
            body = body[:-20]
        elif answer.status == 226 and self.server.fault == "base":
            fields["Delta-Base"] = '"other-1"'
        if not self.path.endswith(("/", ".txt")):
            self.server.statuses.append(answer.status)
        self.send_response(answer.status)
        for name, value in fields.items():
            self.send_header(name, value)
        if answer.status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        connection.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""


@contextmanager
def proxied(target: str) -> Iterator[Proxy]:
    """Return a proxy that runs."""
    with Proxy(target) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


@pytest.mark.slow(30)
@pytest.mark.parametrize("fault", ["cut", "base"])
def test_spoiled_changes_are_not_lost(fault: str, harvest: Any, tmp_path: Path) -> None:
    """Changes that are cut short are rejected, and those of another base refused: the whole part is fetched instead."""
    root = tmp_path / "some"
    root.mkdir()
    for number in range(30):
        (root / f"{number}.txt").write_text(f"The text number {number}.\n")
    harvest("gather", root, "--data", "source", "--gatherer", "source", "--quiet")
    with gateway(harvest, "source") as url, proxied(url) as proxy:
        local = ("--allow", "127.0.0.0/8", "--pause", "0", "--quiet")
        asked = ("collect", proxy.url, "--data", "collector", "--gatherer", "us", *local)
        harvest(*asked)
        assert summaries(harvest, "collector") == summaries(harvest, "source")
        (root / "7.txt").write_text("Another text.\n")
        (root / "8.txt").unlink()
        harvest("gather", "--data", "source", "--quiet")
        proxy.fault, proxy.statuses[:] = fault, []
        harvest(*asked)
        assert 226 in proxy.statuses
        # A base that is not ours is noticed before anything is read: the whole is requested at once.
        assert (200 in proxy.statuses) == (fault == "base")
        assert (summaries(harvest, "collector") == summaries(harvest, "source")) == (fault == "base")
        assert bool(harvest.lines("rejected", "list", "--data", "collector")) == (fault == "cut")
        proxy.fault, proxy.statuses[:] = "", []
        harvest(*asked)
        assert 226 not in proxy.statuses
        assert summaries(harvest, "collector") == summaries(harvest, "source")
        assert not harvest.lines("rejected", "list", "--data", "collector")
