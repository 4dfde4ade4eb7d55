"""A gateway over a real OpenSearch, and over one that hangs or is gone."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from schemas.ports import BrokerIndex
from sinks.index.opensearch.index import OpenSearchIndex
from tests.sinks.gateway.doubles import SUMMARIES

Client = Callable[..., TestClient]
ASKED: Sequence[Mapping[str, str | Sequence[str]]] = (
    {"q": "whale OR krill"},
    {"q": "krill", "not-type": "PDF"},
    {"type": ["HTML", "PDF"], "sort": "newest"},
    {"q": "leviathan", "copies": "true"},
    {"q": "whale", "from": "1851", "to": "1999"},
    {"in": "bundle.zip"},
    {"q": "hostile"},
)


@pytest.fixture
def open_index(opensearch: str, search_client: Any) -> Iterator[Callable[[], BrokerIndex]]:
    """Opens an index of SUMMARIES on the server."""
    name = f"t{uuid.uuid4().hex[:10]}-main"
    with closing(OpenSearchIndex(opensearch, name)) as index:
        index.apply(SUMMARIES, {})
    yield lambda: OpenSearchIndex(opensearch, name, writable=False, timeout=10)
    search_client.indices.delete(index=f"{name}*", ignore_unavailable=True)


@pytest.mark.slow
def test_both_engines_give_the_same_answers(client: Client, open_index: Callable[[], BrokerIndex]) -> None:
    """Hits, totals, facets and exports do not depend on the engine."""
    here, there = client(), client(open_index)
    for asked in ASKED:
        first, second = (ask.get("/api/search", params=asked).json() for ask in (here, there))
        for found in (first, second):
            for hit in found["hits"]:
                # An index of a few summaries counts its own state as a document in one engine.
                del hit["score"]
        assert first == second, asked
    assert here.get("/api/export").text == there.get("/api/export").text


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    held.append(listener.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        for each in held:
            each.close()


def test_server_that_hangs_is_503(client: Client, silent: str) -> None:
    """A search ends with the time-out, and says why."""
    answer = client(lambda: OpenSearchIndex(silent, "x-main", writable=False, timeout=0.2)).get("/api/search", params={"q": "x"})
    assert answer.status_code == 503
    assert "the index cannot be read now" in answer.json()["error"]
