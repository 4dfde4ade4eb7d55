"""The page over all Brokers shows nothing that a browser would obey, whatever summaries and gateways say."""

from __future__ import annotations

from collections.abc import Callable

from starlette.testclient import TestClient

from processors.query.routing.statistics import decode_statistics


def test_page_over_all_brokers_is_inert(client: Callable[..., TestClient]) -> None:
    """Titles, names, snippets and reasons of a hostile gateway are shown as text."""
    shown = client().get("/brokers", params={"q": "hostile OR whale"}).text
    assert "At least" in shown
    assert "<script>alert" not in shown
    assert 'href="javascript' not in shown
    assert "\u202e" not in shown


def test_statistics_of_the_api_are_those_of_the_index(client: Callable[..., TestClient]) -> None:
    """The API sends statistics as bytes that `decode_statistics` reads."""
    answer = client().get("/api/brokers/main/statistics")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert decode_statistics(answer.content).frequency(["krill"]) == 2


def test_brokers_are_read_with_the_token_alone(client: Callable[..., TestClient]) -> None:
    """Where a token is set, list, statistics, search and page need it."""
    closed = client(token="a-token-of-16-chars")
    for path in ("/api/brokers", "/api/brokers/main/statistics", "/api/brokers/main/search?q=whale", "/brokers?q=whale"):
        assert closed.get(path).status_code == 401, path
