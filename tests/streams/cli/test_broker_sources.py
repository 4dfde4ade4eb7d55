"""URLs among the sources of Brokers: they are collected, and end when no Broker names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from processors.collector import listing_of
from streams.cli.routed import gateway_brokers
from streams.config.settings import load
from tests.streams.cli.test_collect import gateway

OPTIONS = ("--data", "collector", "--gatherer", "us", "--allow", "127.0.0.0/8", "--pause", "0", "--quiet")


@pytest.fixture
def source(harvest: Any, tree: Path) -> Iterator[str]:
    """The gateway of a data folder with the Brokers `main`, and `pages`, which has a stream."""
    define("source", "pages", "query = 'type:HTML OR type:RawText'\nstream = true\n")
    harvest("gather", tree, "--data", "source", "--gatherer", "source", "--quiet")
    with gateway(harvest, "source") as url:
        yield url.rstrip("/")


def define(data: str, name: str, text: str) -> None:
    """Write the definition of a Broker."""
    folder = Path(data, "brokers")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


def held(harvest: Any, data: str, broker: str) -> dict[str, str]:
    """Return type by URL of what a Broker has, by the archive; the index must agree."""
    live: dict[str, dict[str, Any]] = {}
    for line in harvest.lines("cat", f"broker.{broker}", "--data", data):
        live.pop(line["key"], None)
        if line["value"] is not None and not line["value"].get("removed"):
            live[line["key"]] = line["value"]
    found = {one.get("location") or one["url"]: one["type"] for one in live.values()}
    hits = {hit["oid"] for hit in harvest.lines("search", "*", "--broker", broker, "--data", data, "--limit", "100")}
    assert hits == {oid for oid, one in live.items() if not one.get("copy_of")}
    return found


def roots(harvest: Any) -> list[str]:
    """Return the roots of the collector."""
    return [one["url"] for one in harvest.lines("roots", "list", "--data", "collector")]


def test_brokers_from_another_gateway(harvest: Any, tree: Path, source: str) -> None:
    """Of two Brokers over one stream each has what its URL means; a change there is a change here; the original is not asked."""
    (tree / "old.html").write_text("<title>Old</title>")
    stream = f"{source}/brokers/pages/soif"
    define("collector", "all", f"from = ['{stream}']\n")
    define("collector", "pages", f"from = ['{stream}?q=type:HTML']\n")
    harvest("gather", *OPTIONS)
    assert roots(harvest) == sorted(filter(None, map(listing_of, (stream, f"{stream}?q=type:HTML"))))
    assert held(harvest, "collector", "all") == held(harvest, "source", "pages")
    assert held(harvest, "collector", "pages") == {(tree / "page.html").as_uri(): "HTML"}
    (tree / "page.html").write_text("<title>Another</title>")
    harvest("gather", "--data", "source", "--quiet")
    harvest("gather", *OPTIONS)
    assert held(harvest, "collector", "all") == held(harvest, "source", "pages")
    assert len(held(harvest, "collector", "pages")) == 2
    (tree / "page.html").unlink()
    harvest("gather", "--data", "source", "--quiet")
    harvest("gather", *OPTIONS)
    assert held(harvest, "collector", "pages") == {(tree / "old.html").as_uri(): "HTML"}
    assert held(harvest, "collector", "all") == held(harvest, "source", "pages")
    assert not harvest.lines("rejected", "list", "--data", "collector")


def test_source_that_is_named_no_more(harvest: Any, source: str) -> None:
    """A root that only a Broker named goes with what came from it; one that was collected by hand stays; a mistake ends none."""
    stream, whole = f"{source}/brokers/pages", f"{source}/gatherer/soif/"
    define("collector", "all", f"from = ['{stream}', '{source}']\n")
    said = harvest("gather", *OPTIONS[:-1]).stderr
    assert f"{listing_of(stream)}: collected from now on, a source of the Broker all" in said
    assert roots(harvest) == sorted([str(listing_of(stream)), whole])
    harvest("collect", source, *OPTIONS)
    define("collector", "all", "from = 'x'\n")
    harvest("gather", *OPTIONS, code=2)
    assert len(roots(harvest)) == 2
    define("collector", "all", "from = ['summaries']\n")
    harvest("gather", *OPTIONS)
    assert roots(harvest) == [whole]
    assert held(harvest, "collector", "all") == held(harvest, "source", "main")


def test_source_that_is_not_sent(harvest: Any, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line on a stream that is not there, has a query with a mistake, or is on a gateway with a token, says so."""
    stream, wrong = str(listing_of(f"{source}/brokers/nowhere")), str(listing_of(f"{source}/brokers/pages?q=(whale"))
    define("collector", "all", f"from = ['{stream}', '{wrong}']\n")
    said = harvest("gather", *OPTIONS, code=1).stderr
    assert f"harvest: {wrong}: status 400 (the gateway finds a mistake in the query of this URL)\n" in said
    assert f"harvest: {stream}: status 404 (no such Broker there, or it has no stream (stream = true))\n" in said
    monkeypatch.setenv("HARVEST_SERVE_TOKEN", "x" * 16)
    with gateway(harvest, "source") as url:
        said = harvest("collect", url, *OPTIONS, code=1).stderr
        assert f"harvest: {url}gatherer/soif/: status 401 (a gateway with a token cannot be collected)\n" in said


def test_source_that_is_removed_as_a_root(harvest: Any, source: str) -> None:
    """To remove a root that a Broker is made from says that it comes back, and it does."""
    stream = str(listing_of(f"{source}/brokers/pages"))
    define("collector", "all", f"from = ['{stream}']\n")
    harvest("gather", *OPTIONS)
    said = harvest("roots", "remove", stream, "--data", "collector").stderr
    assert f"harvest: {stream}: a source of a Broker: the next run collects it again if a definition names it\n" in said
    assert not roots(harvest)
    harvest("gather", *OPTIONS)
    assert roots(harvest) == [stream]


def test_gateway_of_a_broker_of_some_summaries(harvest: Any, tree: Path) -> None:
    """The gateway of a Broker with a query of its own sends the stream of that Broker, and none that has more."""
    define("harvest-data", "main", "stream = true\n")
    define("harvest-data", "pages", "title = 'Pages'\nquery = 'type:HTML'\nstream = true\n")
    define("harvest-data", "rest", "query = 'NOT type:HTML'\n")
    harvest("gather", tree, "--quiet")
    found = load({"data": Path("harvest-data")})
    for served, streams in (("main", {"main": 3, "pages": 1}), ("pages", {"pages": 1})):
        with closing(gateway_brokers(found, served)) as brokers:
            for name in ("main", "pages", "rest", "other"):
                if name not in streams:
                    with pytest.raises(KeyError):
                        brokers.stream(name)
                    continue
                with closing(brokers.stream(name).open()) as reader:
                    assert reader.state().summaries == streams[name]
