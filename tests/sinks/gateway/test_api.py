"""The API: search, completion, summaries, status, history, and what becomes of mistakes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from processors.identity import oid
from schemas.ports import BrokerIndex
from sinks.gateway.rendering import template_problems
from sinks.index.errors import IndexMissing, IndexUnreachable
from tests.sinks.gateway.doubles import Made, summary

Client = Callable[..., TestClient]
WHALE = oid("tests", "http://example.org/whale.html")


def test_search_returns_hits_with_marks_and_facets(client: Client) -> None:
    """A hit has what a program shows of it; marks enclose the words that matched."""
    found = client().get("/api/search", params={"q": "ishmael"}).json()
    assert found["total"] == 1
    (hit,) = found["hits"]
    assert (hit["oid"], hit["title"], hit["type"], hit["date"]) == (WHALE, "The white whale", "HTML", "1851-10-18")
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["Ishmael"]
    assert found["facets"]["type"] == [{"value": "HTML", "total": 1}]


def test_counts_of_facets_are_what_a_choice_gives(client: Client) -> None:
    """Each count is the total of the search with this value chosen."""
    ask = client()
    found = ask.get("/api/search", params={"q": "whale OR krill"}).json()
    counts = [(name, each["value"], each["total"]) for name, values in found["facets"].items() for each in values]
    assert len(counts) > 5
    for name, value, total in counts:
        assert ask.get("/api/search", params={"q": "whale OR krill", name: value}).json()["total"] == total, (name, value)


def test_choices_add_up_and_exclusions_take_away(client: Client) -> None:
    """Two values of a facet are an OR; an excluded value is a NOT."""
    ask = client()

    def total(**asked: str | list[str]) -> int:
        return int(ask.get("/api/search", params={**asked, "size": 0}).json()["total"])

    assert total(type=["HTML", "PDF"]) == total(type="HTML") + total(type="PDF") == 3
    assert total(**{"not-type": "HTML"}) == total() - total(type="HTML")
    assert total(**{"from": "1851", "to": "1999-05"}) == 2
    assert total(**{"in": "file:///srv/docs/bundle.zip"}) == 1


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"q": "whale AND"}, 400, "AND"),
        ({"q": "a:"}, 400, ""),
        ({"q": "x", "from": "yesterday"}, 400, "yesterday"),
        ({"q": "x", "year": "soon"}, 400, "soon"),
        ({"q": "x", "typ": "HTML"}, 422, "typ"),
        ({"q": "x" * 5_000}, 422, "q"),
        ({"q": "x", "size": 1_000}, 422, "size"),
        ({"q": " ".join(f"leviathan{at}~3" for at in range(20))}, 400, "too long"),
        ({"q": "x", "like": "0" * 64}, 404, "no summary"),
    ],
)
def test_mistakes_are_errors_with_a_reason(client: Client, asked: dict[str, str | int], status: int, said: str) -> None:
    """A program hears of a mistake instead of getting other hits than it asked for."""
    answer = client().get("/api/search", params=asked)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_position_of_a_mistake_is_in_code_points(client: Client) -> None:
    """A program can show where the mistake is."""
    answer = client().get("/api/search", params={"q": "Größe (whale"}).json()
    assert answer["position"] == len("Größe ")


def test_last_word_is_completed(client: Client) -> None:
    """The most frequent words come first; browsers get the whole query."""
    ask = client()
    assert ask.get("/api/complete", params={"q": "white lev"}).json() == {"words": [{"word": "leviathan", "total": 2}]}
    assert ask.get("/suggestions", params={"q": "white lev"}).json() == ["white lev", ["white leviathan"]]
    assert ask.get("/api/complete", params={"q": ""}).json() == {"words": []}


def test_summary_is_the_whole_record(client: Client) -> None:
    """A summary is returned as JSON and as SOIF; what is not there is 404."""
    ask = client()
    found = ask.get(f"/api/summary/{WHALE}").json()
    assert found["attributes"]["author"] == ["Herman Melville"]
    assert "@FILE { http://example.org/whale.html" in ask.get(f"/api/summary/{WHALE}/soif").text
    assert ask.get(f"/api/summary/{'0' * 64}").status_code == 404
    assert ask.get("/api/summary/no-oid").status_code == 422


def test_status_and_history_come_from_the_collection(client: Client) -> None:
    """Programs read what the status page shows."""
    ask = client()
    status = ask.get("/api/status").json()
    assert status["stages"][1] == {"name": "index.main", "lag": 7}
    assert status["rejections"] == [{"reason": "damaged", "total": 2, "url": "file:///srv/docs/bad.pdf"}]
    assert ask.get("/api/why", params={"url": "file:///srv/docs/x"}).json()["events"][0]["event"] == "discovered"
    assert ask.get("/api/why", params={"url": "http://unknown/"}).status_code == 404


@pytest.mark.parametrize("error", [IndexMissing("/srv/secret"), IndexUnreachable("http://secret:9200 is silent")])
def test_index_that_is_away_is_503(client: Client, error: Exception) -> None:
    """A search says that the index is away, readiness too; the gateway stays alive."""

    def fail() -> object:
        raise error

    ask = client(fail)
    answer = ask.get("/api/search", params={"q": "whale"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    said = answer.json()["error"]
    assert ("there is no index yet" if isinstance(error, IndexMissing) else "its server does not answer") in said
    assert "secret" not in said + ask.get("/readyz").text
    assert ask.get("/readyz").status_code == 503
    assert ask.get("/livez").status_code == 200


def test_readiness_follows_the_index(client: Client, made: Made) -> None:
    """An index that is gone is noticed though it was open, and its return too."""
    away = made.folder.with_name("away")
    ask = client()
    assert ask.get("/readyz").text == "ok\n"
    made.folder.rename(away)
    try:
        assert ask.get("/api/search", params={"q": "whale"}).status_code == 503
        _until(ask, 503)
    finally:
        away.rename(made.folder)
    _until(ask, 200)
    assert ask.get("/api/search", params={"q": "whale"}).json()["total"] == 3


def _until(ask: TestClient, status: int) -> None:
    """Wait until the readiness has a status: an answer is returned again for a second."""
    until = time.monotonic() + 30
    while ask.get("/readyz").status_code != status:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_unknown_summary_costs_no_open_index(client: Client, made: Made) -> None:
    """What is not found says nothing about the index: it stays open for the next request."""
    opened = 0

    def open_index() -> BrokerIndex:
        nonlocal opened
        opened += 1
        return made.open()

    ask = client(open_index)
    for _ in range(5):
        assert ask.get(f"/api/summary/{'0' * 64}").status_code == 404
        assert ask.get("/api/search", params={"q": "whale AND"}).status_code == 400
    assert opened == 1


def test_head_is_the_answer_to_get_without_its_body(client: Client) -> None:
    """Whatever is read by GET may be asked for by HEAD."""
    ask = client()
    for path in ("/livez", "/api/search?q=whale", "/feed?q=whale", "/opensearch.xml"):
        assert (answer := ask.head(path)).status_code == 200, path
        assert answer.headers["content-type"] == ask.get(path).headers["content-type"]


def test_page_beyond_the_last_one_that_is_shown_is_refused(client: Client) -> None:
    """A program that reads page after page comes to an end instead of reading the last one again and again."""
    ask = client()
    assert ask.get("/api/search", params={"q": "whale", "page": 1_000}).json()["hits"] == []
    answer = ask.get("/api/search", params={"q": "whale", "page": 1_001})
    assert (answer.status_code, "export" in answer.json()["error"]) == (422, True)


def test_openapi_describes_each_route(client: Client) -> None:
    """The description has the routes of the API, and no page."""
    paths = client().get("/openapi.json").json()["paths"]
    assert set(paths) == {
        *(
            "/api/search",
            "/api/views",
            "/api/complete",
            "/api/summary/{oid}",
            "/api/summary/{oid}/soif",
            "/api/export",
            "/api/status",
            "/api/why",
            "/api/brokers",
            "/api/brokers/{name}/search",
            "/api/brokers/{name}/statistics",
            "/brokers/{name}",
            "/brokers/{name}/soif",
            "/brokers/{name}/soif/",
            "/brokers/{name}/soif/{part}",
            "/gatherer",
            "/gatherer/soif",
            "/gatherer/soif/",
            "/gatherer/soif/{part}",
        ),
    }


def test_metrics_count_requests_by_route(client: Client) -> None:
    """Routes are patterns, so that a client cannot make labels."""
    ask = client()
    ask.get("/api/search", params={"q": "whale"})
    ask.get("/no/such/page")
    text = ask.get("/metrics").text
    assert 'harvest_gateway_requests_total{route="/api/search",status="200"} 1.0' in text
    assert "/no/such/page" not in text


def test_page_helps_where_nothing_is_found(client: Client) -> None:
    """A pasted address becomes its query, an unknown attribute is named, and a mistyped word is proposed with an error allowed."""
    ask = client()
    assert "url:http://example.org/whale.html" in ask.get("/", params={"q": "http://example.org/whale.html"}).text
    assert "No summary has the attribute <code>tilte</code>" in ask.get("/", params={"q": "tilte:whale"}).text
    assert "<code>interst~</code>" in ask.get("/", params={"q": "interst"}).text


def test_page_of_a_copy_does_not_need_its_canonical_summary(made: Made, client: Client) -> None:
    """A copy whose canonical summary was just removed is shown all the same."""
    copy = summary("http://example.org/copy.html", title="A copy", more={"copy_of": "0" * 64})
    made.known[copy.oid] = copy
    try:
        answer = client().get(f"/summary/{copy.oid}")
    finally:
        del made.known[copy.oid]
    assert answer.status_code == 200
    assert "A copy" in answer.text


def test_templates_of_a_folder_are_checked(tmp_path: Path) -> None:
    """Mistakes in templates, and names that replace nothing, are known before anything is served."""
    (tmp_path / "help.html").write_text("{% if %}", "utf-8")
    (tmp_path / "helf.html").write_text("", "utf-8")
    (tmp_path / "login.html").write_text("{{ path('/') }}", "utf-8")
    found = template_problems(tmp_path)
    assert [problem.partition(":")[0] for problem in found] == ["helf.html", "help.html, line 1"]


def test_templates_of_a_folder_replace_ours(tmp_path: Path, client: Client) -> None:
    """A folder has the pages that an operator wants to look different, and no others."""
    (tmp_path / "help.html").write_text("Ask {{ path('/') }}", "utf-8")
    ask = client(templates=tmp_path)
    assert ask.get("/help").text == "Ask /"
    assert "The white whale" in ask.get("/", params={"q": "ishmael"}).text.replace("<mark>", "").replace("</mark>", "")
