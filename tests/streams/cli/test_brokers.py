"""Brokers of the settings: each has its own topics, rows and index, and commands select one by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processors.broker.definition import Broker
from processors.broker.register import register
from streams.config.settings import SettingsError, load
from streams.config.topology import broker_named, brokers_of, topology_of

PAGES = "[brokers.pages]\nquery = 'type:HTML'\nttl = 60\n"


@pytest.fixture
def gathered(harvest: Any, tree: Path) -> Any:
    """A data folder with two Brokers, one of which indexes HTML pages only."""
    Path("harvest.toml").write_text(PAGES)
    harvest("gather", tree, "--quiet")
    return harvest


def test_broker_indexes_what_its_query_accepts(gathered: Any) -> None:
    """A search in a Broker finds what its query accepts; `main` indexes everything."""
    found = {hit["url"].rpartition("/")[2] for hit in gathered.lines("search", "*", "--broker", "pages")}
    assert found == {"page.html"}
    assert {hit["type"] for hit in gathered.lines("search", "*")} == {"HTML", "RawText"}


def test_commands_take_a_broker(gathered: Any, tree: Path) -> None:
    """`show`, `index rebuild`, `replay` and `doctor` work on the Broker given with --broker."""
    assert "time-to-live{2}:\t60\n" in gathered("show", tree / "page.html", "--broker", "pages").stdout
    assert "time-to-live{8}:\t14515200\n" in gathered("show", tree / "page.html").stdout
    assert "no summary of it" in gathered("show", tree / "notes" / "a.txt", "--broker", "pages", code=1).stderr
    assert "1 summary indexed" in gathered("index", "rebuild", "--broker", "pages").stderr
    told = gathered("replay", "--broker", "pages", "--to", "spare").stderr
    assert "1 summary held" in told
    assert "harvest search --data spare --broker pages QUERY" in told
    assert len(gathered.lines("search", "*", "--broker", "pages", "--data", "spare")) == 1
    assert [one["ok"] for one in gathered.lines("doctor") if one["check"] == "data folder, Broker pages"] == [True]
    assert "index.pages" in gathered("describe").stdout


def test_summary_that_no_longer_matches_leaves_the_broker(harvest: Any, tree: Path) -> None:
    """A page that loses the word of a Broker's query is removed from that Broker, with the reason."""
    Path("harvest.toml").write_text("[brokers.whales]\nquery = 'whale'\n")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "whales")) == 1
    (tree / "page.html").write_text("<title>Squid</title>Only squid.")
    harvest("gather", "--quiet")
    assert harvest.lines("search", "*", "--broker", "whales") == []
    assert "removed: filtered" in harvest("why", tree / "page.html").stdout


def test_invalid_broker_definition_is_an_error_of_one_line(harvest: Any, tree: Path) -> None:
    """An unknown Broker, a malformed query, a name invalid for a topic and an unknown key are errors of one line, exit code 2."""
    for text, line in (
        ("[brokers.pages]\nquery = '(whale'\n", "harvest: brokers.pages.query: this parenthesis is never closed: ^(whale"),
        ("[brokers.'Pages!']\n", "harvest: harvest.toml: brokers.Pages!"),
        ("[brokers.pages]\nqery = 'x'\n", "harvest: harvest.toml: brokers.pages.qery: no such setting"),
        (PAGES, "harvest: library: no such Broker (there are main, pages; the settings brokers.NAME define others)"),
    ):
        Path("harvest.toml").write_text(text)
        told = harvest("search", "x", "--broker", "library", code=2).stderr
        assert told.startswith(line), told
        assert told.count("\n") == 1


def test_environment_defines_brokers() -> None:
    """Brokers are also read from the environment, with underscores for hyphens; `main` always exists and is the first."""
    found = load({}, None, {"HARVEST_BROKERS_TECH_REPORTS_QUERY": "type:PDF", "HARVEST_BROKERS_MAIN_TTL": "60"})
    assert brokers_of(found) == (Broker(ttl=60), Broker("tech-reports", "type:PDF"))
    assert broker_named(found, "tech-reports") == "tech-reports"
    assert topology_of(found) is topology_of(
        load({}, None, {"HARVEST_BROKERS_TECH_REPORTS_QUERY": "type:PDF", "HARVEST_BROKERS_MAIN_TTL": "60"})
    )
    with pytest.raises(SettingsError, match="no such Broker"):
        broker_named(found, "pages")


def test_register_is_wired_to_the_definition() -> None:
    """The register stage of a Broker gets its filter and its time-to-live; that of a Broker without a query gets neither."""
    found = topology_of(load({}, None, {"HARVEST_BROKERS_PAGES_QUERY": "type:HTML"}))
    processes: Any = [found.stage(name).process for name in ("register.main", "register.pages")]  # type: ignore[union-attr]
    assert [process.func for process in processes] == [register, register]
    assert processes[0].keywords == {"accepts": None, "ttl": None}
    assert processes[1].keywords["accepts"] is not None
