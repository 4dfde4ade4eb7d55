"""Errors where no index answers: no server, a gateway, another server, or an invalid address. No server is needed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest

from sinks.index.errors import IndexMissing, IndexUnreachable
from sinks.index.opensearch import aliases, search
from sinks.index.opensearch import node as opensearch_node
from sinks.index.opensearch.index import OpenSearchIndex
from tests.servers.process import free_port


def test_unreachable_server_is_reported_without_password() -> None:
    """An unreachable server is reported, without the password."""
    port = free_port()
    with pytest.raises(IndexUnreachable, match=f"cannot be reached: http://127.0.0.1:{port}$") as caught:
        OpenSearchIndex(f"http://me:secret@127.0.0.1:{port}", "any")
    assert "secret" not in str(caught.value)


def pages(answers: Sequence[tuple[int, str, bytes]]) -> ThreadingHTTPServer:
    """Return a gateway that answers requests with the given pages, one after the other."""
    left = iter(answers)

    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or "0"))
            status, kind, page = next(left)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        do_GET = do_POST  # noqa: N815 - the name that the server calls

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Gateway)


STRANGE = (
    (200, "text/html", b"<html>sign in, please"),
    (503, "text/html", b"<html>no\nupstream"),
    (404, "text/html", b"<html>\nno such page"),
    (200, "application/json", b'{"errors":fal'),
    (200, "application/json", b""),
    (200, "application/json", b"[]"),
    (200, "application/json", b'{"message":"hello"}'),
    (200, "application/json", b'{"items":["x","y"],"hits":0}'),
    (200, "application/json", b'{"items":[{"index":{"_index":"a-0","status":200}}]}'),
    (200, "application/json", b'{"items":[{"index":{"status":400}},{"index":{"status":400}}]}'),
)


def test_foreign_answers_are_reported_as_unreachable() -> None:
    """Gateway pages, truncated answers and answers of other servers are reported in one line as an unreachable server."""
    with pages([*(page for page in STRANGE for _ in range(2)), STRANGE[5], (200, "application/json", b"{}")]) as gateway:
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        node = opensearch_node.Node(f"http://u:secret@127.0.0.1:{gateway.server_port}")
        for status, _, page in STRANGE:
            with pytest.raises(IndexUnreachable) as told:
                node.bulk("a", [b"{}\n{}\n"] * 2)
            assert ("not from OpenSearch" in str(told.value)) == (status in (200, 404))
            assert "\n" not in str(told.value)
            assert "secret" not in str(told.value)
            answered = b"items" in page
            with pytest.raises(IndexUnreachable) if not answered else nullcontext():
                assert node.ask("POST", "/a/_search", {})["hits" if not answered else "items"]
        for _ in range(2):
            with pytest.raises(IndexUnreachable, match="not from OpenSearch"):
                aliases.served_by(node, "a")
        node.close()
        gateway.shutdown()


def test_total_without_hits_is_rejected() -> None:
    """An answer with a total but no hits, truncated by a proxy, is rejected."""
    empty = b'{"hits":{"total":{"value":3},"hits":[]}}'
    with pages([(200, "application/json", empty)]) as gateway:
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        node = opensearch_node.Node(f"http://127.0.0.1:{gateway.server_port}")
        with pytest.raises(IndexUnreachable, match="returned no hits"):
            search.by_score(node, "a", {"match_all": {}}, 0, 10)
        node.close()
        gateway.shutdown()


REFUSALS = (
    (400, "text/html", b"<html>bad request"),
    (413, "text/html", b"<html>too large"),
    (451, "application/json", b'"no"'),
    (503, "application/json", b"[]"),
    (503, "application/json", b'"come back later"'),
)


@pytest.mark.parametrize("page", REFUSALS)
def test_gateway_refusal_is_retryable(page: tuple[int, str, bytes]) -> None:
    """A refusal by a gateway may be retried: it is not an error of the query, and does not stop a writer."""
    with pages([page]) as gateway:
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        node = opensearch_node.Node(f"http://127.0.0.1:{gateway.server_port}")
        with pytest.raises(IndexUnreachable, match=r"the index is unavailable|the server's answer is not from OpenSearch"):
            aliases.served_by(node, "a")
        node.close()
        gateway.shutdown()


def test_time_out_of_a_reader_is_its_own() -> None:
    """A server that accepts and does not answer is reported with the time-out that the node was made with."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = opensearch_node.Node(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.25)
        with pytest.raises(IndexUnreachable, match=r"the index has not answered for 0\.25 s"):
            node.ask("GET", "/_alias")
        node.close()


@pytest.mark.parametrize("url", ["http://[::1", "http://[::1]]:9200", "http://127.0.0.1:99999", "https://[x]/"])
def test_invalid_url_is_reported(url: str) -> None:
    """An invalid URL is reported as such, whichever component fails on it first."""
    with pytest.raises(IndexUnreachable, match="is not a valid index URL"):
        opensearch_node.Node(url)


class Swapping:
    """Aliases of a simulated server; the existing rebuild swaps as soon as the age of its index is requested."""

    name = "here"

    def __init__(self) -> None:
        self.behind = {"a": {"a-0"}, "a.rebuild": {"a-1"}}
        self.gone: list[str] = []

    def ask(self, method: str, path: str, body: Any = None, **_: str) -> dict[str, Any]:
        name = path.strip("/").removeprefix("_alias/").partition("/")[0]
        if method == "PUT":
            self.behind["a.rebuild"].add(name)
        elif method == "DELETE":
            self.gone.append(name)
        elif path == "/_aliases":
            for action in (each["remove"] for each in body["actions"]):
                if action["index"] not in self.behind[action["alias"]]:
                    raise IndexMissing("aliases missing")
                self.behind[action["alias"]].remove(action["index"])
        else:
            found = sorted(self.behind[name])
            if "/_settings/" in path:
                self.behind = {"a": {"a-1"}, "a.rebuild": {"a-2"}}
            return {index: {"settings": {"index": {"creation_date": index[2:]}}} for index in found}
        return {}


def test_rebuild_leaves_serving_index_untouched() -> None:
    """A rebuild begun during another one's swap leaves the index now serving untouched, and uses its own."""
    server = Swapping()
    assert aliases.begin_rebuild(cast("opensearch_node.Node", server), "a", "2") == "a.rebuild"
    assert (server.behind, server.gone) == ({"a": {"a-1"}, "a.rebuild": {"a-2"}}, [])


def endless(piece: bytes, pause: float) -> ThreadingHTTPServer:
    """Return a server whose answers have no end: a piece after each pause."""

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(pause)

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Endless)


@pytest.mark.parametrize(("piece", "pause"), [(b" ", 0.01), (b" " * 65_536, 0.0)])
def test_answer_without_end_is_ended(monkeypatch: pytest.MonkeyPatch, piece: bytes, pause: float) -> None:
    """A server that drips, or sends for ever, holds nobody: the time-out is one for the whole answer, and its size is bounded."""
    monkeypatch.setattr("sinks.index.opensearch.connection.MAX_ANSWER", 1 << 20)
    with endless(piece, pause) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(IndexUnreachable, match=r"has not answered for 0\.3 s|cannot be reached"):
            OpenSearchIndex(f"http://127.0.0.1:{server.server_address[1]}", "x", writable=False, timeout=0.3)
        server.shutdown()
