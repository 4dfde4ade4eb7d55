"""What the definition of the Broker that is served changes: its facets, and its views in queries."""

from __future__ import annotations

import json
from collections.abc import Callable

from starlette.testclient import TestClient

from processors.query.facets import FACETS
from tests.sinks.gateway.doubles import CollectionDouble

Client = Callable[..., TestClient]


def test_facets_are_those_of_the_broker_in_its_order(client: Client) -> None:
    """Page and API show the facets of the options in their order; a choice in another one can be taken back on the page."""
    ask = client(facets=("year", "type"))
    assert list(ask.get("/api/search", params={"q": "whale"}).json()["facets"]) == ["year", "type"]
    page = ask.get("/facets", params={"q": "whale"}).text
    assert -1 < page.index(">Year<") < page.index(">Type<")
    assert "<h2>Author" not in page
    assert "<h2>Author" in ask.get("/facets", params={"q": "whale", "author": "Herman Melville"}).text
    assert tuple(client().get("/api/search", params={"q": "whale"}).json()["facets"]) == FACETS


def test_view_in_a_query_is_written_out(client: Client) -> None:
    """`view:PATH` finds what the queries of its path find, on the page, in the API, the export and the feed."""
    ask = client()
    found = ask.get("/api/search", params={"q": "view:sea/dated ship"}).json()
    assert found["total"] == ask.get("/api/search", params={"q": "whale type:HTML ship"}).json()["total"] == 2
    assert "view:" not in found["query"]
    page = ask.get("/", params={"q": "view:Sea"}).text
    assert "whale.html" in page
    lines = ask.get("/api/export", params={"q": "view:sea/dated"}).text.splitlines()
    assert {json.loads(line)["url"] for line in lines} == {
        "http://example.org/whale.html",
        "http://example.org/ship.html",
    }
    assert "whale.html" in ask.get("/feed", params={"q": "view:sea/dated"}).text


def test_unknown_view_is_a_mistake_with_the_nearest(client: Client) -> None:
    """A view that is not there is an error of the API with the nearest one, and a message of the page."""
    ask = client()
    refused = ask.get("/api/search", params={"q": "view:sae"})
    assert (refused.status_code, "did you mean view:sea" in refused.json()["error"]) == (400, True)
    assert "there is no such view" in ask.get("/", params={"q": "view:sae"}).text


def test_views_are_read_for_queries_that_may_name_one(client: Client, collection: CollectionDouble) -> None:
    """A query without the word view reads no definitions."""
    ask = client()
    ask.get("/api/search", params={"q": "whale"})
    assert collection.views_read == 0
    ask.get("/api/search", params={"q": "VIEW:sea"})
    assert collection.views_read == 1
