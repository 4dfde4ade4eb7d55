"""The page over all Brokers shows nothing that a browser would obey, and delays nobody, whatever summaries and gateways say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from processors.query.routing.in_views import InViews
from processors.query.routing.merging import Routed, RoutedHit
from processors.query.routing.statistics import decode_statistics
from schemas.ports import Hit
from schemas.query import Query
from tests.sinks.gateway.doubles import BrokersDouble


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


def test_search_here_waits_for_no_other_gateway(client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    """While searches that were routed wait for gateways that hang, the Broker's own search has its turn."""
    begun, end = threading.Event(), threading.Event()

    def hang(brokers: BrokersDouble, query: Query, limit: int, scope: InViews | None) -> Routed:
        begun.set()
        end.wait()
        return Routed([], 0, 0, [])

    monkeypatch.setattr(BrokersDouble, "routed", hang)
    ask = client(searches=1, timeout=1.0)
    with ThreadPoolExecutor(1) as threads:
        routed = threads.submit(ask.get, "/brokers", params={"q": "whale"})
        begun.wait()
        try:
            assert ask.get("/api/search", params={"q": "whale"}).status_code == 200
        finally:
            end.set()
        assert routed.result().status_code == 200


def test_words_are_counted_beside_the_reports(client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    """While words are counted, further counts wait, or are 503 with a time; statistics that are there, and reports, are sent."""
    counting, end, count = threading.Semaphore(0), threading.Event(), BrokersDouble.statistics

    def wait(brokers: BrokersDouble, name: str) -> bytes:
        counting.release()
        end.wait()
        return count(brokers, name)

    monkeypatch.setattr(BrokersDouble, "statistics", wait)
    ask = client(timeout=1.0)
    path = "/api/brokers/main/statistics"
    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(ask.get, path)
        counting.acquire()
        try:
            others = list(threads.map(ask.get, [path] * 4))
            assert [(each.status_code, each.headers.get("retry-after")) for each in others] == [(503, "2")] * 4
            assert not counting.acquire(blocking=False)
            assert ask.get("/api/status").status_code == 200
            assert ask.get("/api/brokers/none/statistics").status_code == 404
            monkeypatch.setattr(BrokersDouble, "counted", lambda *_: b"there")
            assert ask.get(path).content == b"there"
        finally:
            end.set()
        assert first.result().status_code == 200


@pytest.mark.parametrize(
    ("answer", "heading"),
    [
        (Routed([], 4, 4, ["a", "b"], {}, 2), "4 summaries"),
        (Routed([], 4, 7, ["a", "b"], {}, 2), "4 to 7 summaries"),
        (Routed([], 1, 1, ["a", "b"], {"b": "late"}, 2), "At least 1 summary"),
        (Routed([], 0, 0, [], {"http://h/": "refused"}, 0), "No Broker could be asked"),
    ],
)
def test_page_states_the_number_of_matches(
    client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch, answer: Routed, heading: str
) -> None:
    """The heading is exact, a range where Brokers overlap, a least number where some are silent, and none if nobody was asked."""
    monkeypatch.setattr(BrokersDouble, "routed", lambda *_: answer)
    shown = client().get("/brokers", params={"q": "whale"}).text
    assert f"<h1>{heading}</h1>" in shown
    assert all(f"{name}: {reason}" in shown for name, reason in answer.silent.items())


def test_views_are_those_of_each_broker(client: Callable[..., TestClient]) -> None:
    """The list tells which Brokers have the views that are named; a search in a Broker knows its views, and no others."""
    ask = client()
    for query, has in (("", True), ("?view=sea", True), ("?view=/SEA/", True), ("?view=sea&view=land", False)):
        assert [each["has_views"] for each in ask.get(f"/api/brokers{query}").json()["brokers"]] == [has], query
    found = ask.get("/api/brokers/main/search", params={"q": "view:sea"}).json()["total"]
    assert found == ask.get("/api/brokers/main/search", params={"q": "whale"}).json()["total"] > 0
    assert ask.get("/api/brokers/main/search", params={"q": "view:land"}).status_code == 400
    assert ask.get("/api/brokers/none/search", params={"q": "view:sea"}).status_code == 404


def test_page_names_the_brokers_without_the_view(client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of the page over all Brokers is handed on with the views that it names; who has them not is shown."""
    scopes: list[InViews | None] = []

    def route(brokers: BrokersDouble, query: Query, limit: int, scope: InViews | None) -> Routed:
        scopes.append(scope)
        return Routed([], 0, 0, [], without=["notes", "http://h/brokers/<b>"])

    monkeypatch.setattr(BrokersDouble, "routed", route)
    shown = client().get("/brokers", params={"q": "view:Sea whale"}).text
    assert "not asked: notes, http://h/brokers/&lt;b&gt;." in shown
    client().get("/brokers", params={"q": "whale"})
    assert scopes == [InViews("view:Sea whale", ("sea",)), None]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("main", "Broker: main, sea at h.example:8380"),
        ("http://h.example:8380/brokers/cs", "Broker: cs at h.example:8380, sea at h.example:8380"),
        ("https://h.example/search/brokers/cs", "Broker: cs at h.example/search, sea at h.example:8380"),
    ],
)
def test_broker_of_a_hit_is_no_address(
    client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch, label: str, shown: str
) -> None:
    """A Broker of another gateway is shown by its name and host, not as a URL, which would look like a link."""
    hit = RoutedHit(label, Hit("a" * 64, "http://x.example/", "A page", "HTML", 1.0, ""), ("http://h.example:8380/brokers/sea",))
    monkeypatch.setattr(BrokersDouble, "routed", lambda *_: Routed([hit], 1, 1, [label], {}, 1))
    assert f"<li>{shown}</li>" in client().get("/brokers", params={"q": "whale"}).text
