"""Brokers of the settings: each has its own topics, rows and index, and commands select one by its name."""

from __future__ import annotations

import shutil
from functools import partial
from operator import contains
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from processors.broker.definition import Broker
from processors.broker.register import register
from schemas.ports import Origin
from schemas.records import Summary
from streams.config.settings import SettingsError, load
from streams.config.topology import broker_named, brokers_of, topology_of
from streams.simulator import MemoryRows
from streams.store.data_folder import index_folder

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


def test_broker_added_to_a_folder_with_more_partitions(harvest: Any, tree: Path) -> None:
    """The topics of a Broker that the settings add later have as many partitions as those that the data folder has."""
    harvest("gather", tree, "--quiet", "--partitions", "3")
    Path("harvest.toml").write_text(PAGES)
    harvest("roots", "add", tree / "notes")
    harvest("gather", "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "pages")) == 1
    assert {one["partitions"] for one in harvest.lines("topics", "list")} == {3}


def test_filtered_summary_is_removed_again_on_redelivery() -> None:
    """A worker killed between its rows and its outputs repeats the removal by a filter; a later refused version says nothing."""
    rows, accepts = MemoryRows(), partial(contains, ["whale"])
    summary = Summary(oid="1", url="file:///a", object_url="file:///a", gatherer="g", version=1, time=1, type="whale", md5="0" * 32)

    def run(version: int, type_name: str, offset: int) -> list[str]:
        record = replace(summary, version=version, type=type_name)
        found = register(rows, record, Origin("summaries", 0, offset, 0), accepts=lambda one: accepts(one.type))
        return [type(one).__name__ for one in found]

    assert run(1, "whale", 0) == ["Summary"]
    assert run(2, "squid", 1) == ["Removed"]
    assert run(2, "squid", 1) == ["Removed"]
    assert run(3, "squid", 2) == []
    assert run(1, "whale", 0) == []


def test_replay_of_summaries_applies_the_filter(gathered: Any) -> None:
    """An index made from the Gatherer's database for a Broker holds what the Broker accepts, with the Broker's time-to-live."""
    assert "1 summary held" in gathered("replay", "--topic", "summaries", "--broker", "pages", "--to", "spare").stderr
    assert len(gathered.lines("search", "*", "--broker", "pages", "--data", "spare")) == 1


def test_topic_of_a_broker_selects_the_broker(gathered: Any) -> None:
    """`replay --topic broker.NAME` means that Broker; several Brokers may have indexes in one folder."""
    assert "1 summary held" in gathered("replay", "--topic", "broker.pages", "--to", "spare").stderr
    assert "3 summaries held" in gathered("replay", "--to", "spare").stderr
    assert len(gathered.lines("search", "*", "--broker", "pages", "--data", "spare")) == 1


def test_broker_without_topics_is_an_error_of_one_line(harvest: Any, tree: Path) -> None:
    """Before the first run of a new Broker, and after its removal from the settings, commands say what is missing."""
    harvest("gather", tree, "--quiet")
    Path("harvest.toml").write_text(PAGES)
    for command in (("index", "rebuild"), ("replay",), ("replay", "--since", "0")):
        said = harvest(*command, "--broker", "pages", code=1).stderr
        assert said == "harvest: broker.pages: no such topic (harvest run, or the next harvest gather, makes it)\n"
    harvest("gather", "--quiet")
    Path("harvest.toml").unlink()
    said = harvest("export", "broker.pages", "out.avro", code=1).stderr
    assert said == "harvest: broker.pages: not a topic of these settings (those of a Broker need its brokers.NAME)\n"
    assert not list(Path().glob("out*"))


def test_missing_index_of_a_broker_names_the_command(gathered: Any) -> None:
    """The hint to rebuild an index names its Broker, and rebuilding it helps."""
    shutil.rmtree(index_folder(Path("harvest-data"), "pages"))
    assert "harvest index rebuild --broker pages" in gathered("search", "*", "--broker", "pages", code=1).stderr
    gathered("index", "rebuild", "--broker", "pages", "--quiet")
    assert len(gathered.lines("search", "*", "--broker", "pages")) == 1


def test_annotation_of_what_main_filters_out_is_known(harvest: Any, tree: Path) -> None:
    """`annotate` asks the Gatherer's database whether it knows a URL, whatever `main` accepts."""
    Path("harvest.toml").write_text("[brokers.main]\nquery = 'type:HTML'\n[brokers.all]\n")
    harvest("gather", tree, "--quiet")
    assert "unknown" not in harvest("annotate", tree / "notes" / "a.txt", "note=checked").stderr
    assert len(harvest.lines("search", "note:checked", "--broker", "all")) == 1


def test_invalid_broker_definition_is_an_error_of_one_line(harvest: Any, tree: Path) -> None:
    """An unknown Broker, a malformed query, a name invalid for a topic and an unknown key are errors of one line, exit code 2."""
    for text, line in (
        (
            "[brokers.pages]\nquery = '(whale'\n",
            "harvest: brokers.pages.query: this parenthesis is never closed (did you mean (whale)?): ^(whale",
        ),
        ("[brokers.'Pages!']\n", "harvest: harvest.toml: brokers.Pages!"),
        ("[brokers.pages]\nqery = 'x'\n", "harvest: harvest.toml: brokers.pages.qery: no such setting"),
        ("[brokers.main-0]\n", "harvest: brokers.main-0: a name may not end in -0, as the indexes of a server do"),
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
    with pytest.raises(SettingsError, match=r"^HARVEST_BROKERS_TECH_REPORTS_TTL: "):
        load({}, None, {"HARVEST_BROKERS_TECH_REPORTS_TTL": "x"})
    with pytest.raises(SettingsError, match="no such Broker"):
        broker_named(found, "pages")


def test_register_is_wired_to_the_definition() -> None:
    """The register stage of a Broker gets its filter and its time-to-live; that of a Broker without a query gets neither."""
    found = topology_of(load({}, None, {"HARVEST_BROKERS_PAGES_QUERY": "type:HTML"}))
    processes: Any = [found.stage(name).process for name in ("register.main", "register.pages")]  # type: ignore[union-attr]
    assert [process.func for process in processes] == [register, register]
    plans = [process.keywords["plan"] for process in processes]
    assert [(plan.accepts is None, plan.ttl) for plan in plans] == [(True, None), (False, None)]


def test_new_broker_is_made_by_the_next_run(harvest: Any, tree: Path) -> None:
    """A search in a Broker that no run has made yet says that the next one makes it."""
    harvest("gather", tree, "--quiet")
    Path("harvest.toml").write_text("[brokers.fresh]\n")
    assert "the next harvest gather, makes it" in harvest("search", "*", "--broker", "fresh", code=1).stderr
