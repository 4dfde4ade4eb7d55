"""`harvest search --routed` over the Brokers of a data folder, and its page and API in the gateway."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from processors.broker.definition import Broker
from processors.query import parse
from processors.query.routing.statistics import decode_statistics
from schemas.ports import Log
from sinks.gateway.app import application
from sinks.gateway.options import GatewayOptions
from streams.cli.collection import collection_of
from streams.cli.gateway import index_opener
from streams.cli.routed import gateway_brokers
from streams.config.settings import load
from streams.routing import local
from streams.routing.counting import Counted, count_words
from tests.streams.cli.definitions import define


@pytest.fixture
def gathered(harvest: Any, tree: Path) -> Any:
    """A data folder with three Brokers."""
    define("pages", "query = 'type:HTML'")
    define("notes", "query = 'type:RawText'")
    (tree / "narwhal.html").write_text("<title>A grey narwhal</title>It swims in the sea.")
    harvest("gather", tree, "--quiet")
    return harvest


@pytest.fixture
def client(gathered: Any) -> Iterator[TestClient]:
    """A client of the gateway of `main`."""
    found = load({}, None)
    brokers, collection = gateway_brokers(found, "main"), collection_of(found, "main")
    app = application(GatewayOptions(rate=0.0), index_opener(found, "main"), collection, brokers)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000), raise_server_exceptions=False) as made:
        yield made
    brokers.close()
    collection.close()


def test_routed_search_asks_the_brokers_that_have_the_words(gathered: Any) -> None:
    """Hits are marked with their Brokers; a summary that two have is shown once, and a Broker without the words is not asked."""
    (hit,) = gathered.lines("search", "--routed", '"grey narwhal"')
    assert ({hit["broker"], *hit["also_in"]}, hit["url"].rpartition("/")[2]) == ({"main", "pages"}, "narwhal.html")
    assert "1 found; asked 2 of 3 Brokers" in gathered("search", "--routed", '"grey narwhal"').stderr
    assert gathered("search", "--routed", "--count", "unheard-of").stdout == "0\n"


def test_words_are_counted_again_when_much_has_changed(gathered: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are counted once, kept in the data folder, and counted again once 5 per cent of the records have changed."""
    counted: list[str] = []

    def count(log: Log, broker: Broker) -> Counted:
        counted.append(broker.name)
        return count_words(log, broker)

    monkeypatch.setattr(local, "count_words", count)
    gathered("search", "--routed", "narwhal")
    gathered("search", "--routed", "narwhal")
    assert sorted(counted) == ["main", "notes", "pages"]
    (tree / "narwhal.html").write_text("<title>A black narwhal</title>It dives.")
    gathered("gather", tree, "--quiet")
    assert gathered.lines("search", "--routed", '"black narwhal"')
    assert gathered("search", "--routed", "--count", '"grey narwhal"').stdout == "0\n"
    assert sorted(counted) == ["main", "main", "notes", "pages", "pages"]


@pytest.mark.parametrize("kept", [b"", b"\x93", b"damaged" * 1_000])
def test_damaged_statistics_of_the_data_folder_are_counted_again(gathered: Any, kept: bytes) -> None:
    """A file of statistics that cannot be read is replaced."""
    gathered("search", "--routed", "narwhal")
    for path in Path("harvest-data", "statistics").iterdir():
        path.write_bytes(kept)
    assert gathered.lines("search", "--routed", '"grey narwhal"')


def test_options_that_do_not_go_with_routing_are_refused(gathered: Any) -> None:
    """`--routed` takes no Broker, order, facets or copies."""
    for option in (["--broker", "pages"], ["--sort", "newest"], ["--copies"], ["--facets", "type"], ["--offset", "3"]):
        assert "--routed goes with" in gathered("search", "--routed", *option, "narwhal", code=2).stderr


def test_routed_search_without_any_broker_fails_in_one_line(harvest: Any) -> None:
    """Without a data folder and gateways there is nobody to ask."""
    assert "no Broker to ask" in harvest("search", "--routed", "narwhal", code=1).stderr


def test_refused_gateway_alone_is_named_with_the_settings(harvest: Any) -> None:
    """Where the only gateway is refused, its URL, the reason, and the settings of both are said, not that there is none."""
    Path("harvest.toml").write_text("[routing]\nservers = ['http://127.0.0.1:9/']\n", "utf-8")
    stderr = harvest("search", "--routed", "narwhal", "--config", "harvest.toml", code=1).stderr
    assert "http://127.0.0.1:9/: 127.0.0.1 is loopback; " in stderr
    assert "(fetch.allow)" in stderr
    assert "no gateway of routing.servers has answered" in stderr
    assert "gather something first" not in stderr


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings name an OpenSearch that accepts connections and never answers, and searches here wait a day for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for name, value in {"INDEX_URL": f"http://127.0.0.1:{listener.getsockname()[1]}", "SERVE_TIMEOUT": "86400"}.items():
            monkeypatch.setenv(f"HARVEST_{name}", value)
        monkeypatch.setenv("HARVEST_ROUTING_DEADLINE", "0.5")
        yield


def test_index_that_hangs_is_named_within_the_deadline(gathered: Any, hanging: None) -> None:
    """Local Brokers whose server does not answer are named as silent, in the command and on the page, which ends."""
    stderr = gathered("search", "--routed", '"grey narwhal"', code=1).stderr
    assert "main: " in stderr
    assert "no Broker has answered" in stderr
    with closing(gateway_brokers(load({}, None), "main")) as brokers:
        assert sorted(brokers.routed(parse('"grey narwhal"'), 10).silent) == ["main", "pages"]
        assert brokers.facts() == []


def test_overlap_of_brokers_is_no_exact_number(gathered: Any, tree: Path) -> None:
    """What two Brokers have counts once where it is seen, and the number is a range where it is not."""
    for at in range(3):
        (tree / f"n{at}.html").write_text(f"<title>Narwhal {at}</title>It swims in the sea.")
    gathered("gather", tree, "--quiet")
    assert gathered("search", "--routed", "--count", "narwhal").stdout == "4\n"
    (counted,) = gathered.lines("search", "--routed", "--count", "narwhal")
    assert (counted["total"], counted["at_least"], counted["at_most"]) == (4, False, 4)
    assert "4 to 7 found, 1 shown" in gathered("search", "--routed", "--limit", "1", "narwhal").stderr


def test_gateway_lists_its_brokers_and_their_words(client: TestClient) -> None:
    """The API has each Broker with its number of summaries, statistics of its words, and a search in it."""
    listed = {each["name"]: each["summaries"] for each in client.get("/api/brokers").json()["brokers"]}
    assert set(listed) == {"main", "notes", "pages"}
    known = decode_statistics(client.get("/api/brokers/pages/statistics").content)
    assert (known.summaries, known.frequency(["narwhal"]) > 0) == (listed["pages"], True)
    (hit,) = client.get("/api/brokers/pages/search", params={"q": '"grey narwhal"'}).json()["hits"]
    assert (hit["title"], len(hit["digest"])) == ("A grey narwhal", 32)


def test_gateway_refuses_what_is_no_broker_or_no_query(client: TestClient) -> None:
    """An unknown Broker is 404, a mistake in a query 400 with its place, a query beyond the budget 400."""
    assert client.get("/api/brokers/none/statistics").status_code == 404
    assert client.get("/api/brokers/none/search").status_code == 404
    assert client.get("/api/brokers/main/search", params={"q": "narwhal OR"}).json()["position"] == 10
    costly = " OR ".join(f"*a{at}x*" for at in range(60))
    assert client.get("/api/brokers/main/search", params={"q": costly}).status_code == 400


def test_page_over_all_brokers_routes_its_search(client: TestClient) -> None:
    """`/brokers` lists the Brokers; with a query it shows hits with their Brokers, and a mistake as a notice."""
    assert '<th scope="row">notes</th>' in client.get("/brokers").text
    found = client.get("/brokers", params={"q": '"grey narwhal"'}).text
    assert "2 of 3 Brokers asked" in found
    assert "A grey narwhal" in found
    assert "never closed" in client.get("/brokers", params={"q": "(whale"}).text


def test_gateway_of_a_filtered_broker_has_no_other(gathered: Any) -> None:
    """Whoever serves a Broker with a query of its own, or one over other Brokers, does not open the others."""
    define("above", "from = ['broker:pages']")
    gathered("gather", "--quiet")
    for name in ("pages", "above"):
        brokers = gateway_brokers(load({}, None), name)
        assert [each.name for each in brokers.facts()] == [name]
        brokers.close()


@pytest.fixture
def with_fallback(gathered: Any) -> Any:
    """The Broker `notes` is completed by `main` where it has no hit."""
    define("notes", "query = 'type:RawText'\n[fallback]\nbroker = 'main'\nbelow = 1\n")
    return gathered


def test_few_hits_are_completed_by_the_fallback(with_fallback: Any) -> None:
    """Hits of the fallback stand behind a Broker's own and are marked; where there are enough, it is not seen."""
    (hit,) = with_fallback.lines("search", "--broker", "notes", '"grey narwhal"')
    assert hit["broker"] == "main"
    assert "0 found, and 1 of the fallback main" in with_fallback("search", "--broker", "notes", '"grey narwhal"').stderr
    assert not [hit for hit in with_fallback.lines("search", "--broker", "notes", "*") if "broker" in hit]


def test_page_of_a_broker_shows_the_fallback(with_fallback: Any) -> None:
    """The search page completes few hits in a section of its own, and shows none where there are enough."""
    found = load({}, None)
    brokers, collection = gateway_brokers(found, "notes"), collection_of(found, "notes")
    app = application(GatewayOptions(rate=0.0), index_opener(found, "notes"), collection, brokers)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client:
        shown = client.get("/", params={"q": '"grey narwhal"'}).text
        assert "Also found in main" in shown
        assert "narwhal.html" in shown
        assert "Also found in" not in client.get("/", params={"q": "*"}).text
    brokers.close()
    collection.close()


def test_view_in_a_routed_search_is_that_of_each_broker(gathered: Any) -> None:
    """Each Broker writes a view out by its own; one without it is left out and named, not asked by the view of main."""
    assert "no Broker has the view sea" in gathered("search", "--routed", "view:sea", code=2).stderr
    gathered("view", "create", "main", "Sea", "narwhal")
    gathered("view", "create", "notes", "sea", "Ishmael")
    found = {hit["url"].rpartition("/")[2]: hit["broker"] for hit in gathered.lines("search", "--routed", "view:sea")}
    assert found["narwhal.html"] == "main"
    assert found["a.txt"] == "notes"
    told = gathered("search", "--routed", "view:Sea").stderr
    assert "without the view sea, and not asked: pages" in told
    assert "asked 2 of 2 Brokers" in told
    (hit,) = gathered.lines("search", "--routed", "view:sea grey")
    assert (hit["broker"], "also_in" in hit) == ("main", False)
    assert "no Broker has the views sea, land" in gathered("search", "--routed", "view:sea view:land", code=2).stderr


def test_views_of_another_gateway_are_its_own(gathered: Any, client: TestClient) -> None:
    """The API searches a Broker by its own views, and the page names the Brokers that have not the view."""
    gathered("view", "create", "pages", "sea", "narwhal")
    listed = {each["name"]: each["has_views"] for each in client.get("/api/brokers", params={"view": "sea"}).json()["brokers"]}
    assert listed == {"main": False, "notes": False, "pages": True}
    assert client.get("/api/brokers/pages/search", params={"q": "view:sea"}).json()["total"] == 1
    assert client.get("/api/brokers/main/search", params={"q": "view:sea"}).status_code == 400
    shown = client.get("/brokers", params={"q": "view:sea"}).text
    assert "not asked: main, notes." in shown
    assert "A grey narwhal" in shown
