"""Gateways on the loopback that answer as they should, or as they should not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from processors.query import parse, predicate
from processors.query.forms import DEFAULT
from processors.query.routing.statistics import WordCounts, encode_statistics
from schemas.records import Summary

Answer = Callable[[str], bytes | Iterator[bytes]]
"""Returns the body of an answer to a path, or raises LookupError: 404."""


class Good:
    """A gateway with one Broker; a hit scores by its place."""

    def __init__(self, name: str, summaries: Sequence[Summary]) -> None:
        self.name, self.summaries = name, summaries
        self.asked = 0
        """Number of searches."""

    def __call__(self, path: str) -> bytes | Iterator[bytes]:
        """Answer a path."""
        if path == "/api/brokers":
            return self.listed()
        if path == f"/api/brokers/{self.name}/statistics":
            return self.statistics()
        if path.startswith(f"/api/brokers/{self.name}/search?q="):
            self.asked += 1
            return self.search(path.partition("q=")[2].partition("&")[0].replace("+", " "))
        raise LookupError(path)

    def listed(self) -> bytes | Iterator[bytes]:
        """Return the list of Brokers."""
        return json.dumps({"brokers": [{"name": self.name, "title": "", "summaries": len(self.summaries)}]}).encode()

    def statistics(self) -> bytes | Iterator[bytes]:
        """Return the statistics of the Broker."""
        counts = WordCounts(DEFAULT)
        for each in self.summaries:
            counts.add(each)
        return encode_statistics(counts.statistics())

    def search(self, text: str) -> bytes | Iterator[bytes]:
        """Return the hits of a query."""
        accepts = predicate(parse(text))
        hits = [self.hit(each, 1.0 / (at + 1)) for at, each in enumerate(filter(accepts, self.summaries))]
        return json.dumps({"total": len(hits), "hits": hits}).encode()

    def hit(self, each: Summary, score: float) -> dict[str, Any]:
        """Return a hit as the API states it."""
        title = str(each.attributes["title"][0])
        known = {"oid": each.oid, "url": each.url, "title": title, "type": each.type, "digest": each.md5}
        return known | {"score": score, "snippet": title, "marks": [(0, 3)]}


@contextmanager
def served(answer: Answer) -> Iterator[str]:
    """Serve on a free port of the loopback; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                body = answer(self.path)
            except LookupError:
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            try:
                for piece in [body] if isinstance(body, bytes) else body:
                    self.wfile.write(piece)
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
