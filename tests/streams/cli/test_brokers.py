"""Brokers by their definitions: each has its own topics, rows and index, and commands select one by its name."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from functools import partial
from operator import contains
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from processors.broker.definition import Broker, Fallback
from processors.broker.register import Plan, register
from schemas.ports import Origin
from schemas.records import Summary
from sinks.gateway.ports import ObjectError
from streams.brokers import read_definitions
from streams.cli.collection import collection_of
from streams.config.settings import SettingsError, load
from streams.config.topology import broker_defined, broker_named, brokers_of, definitions_of, topology_of
from streams.operations.indexes import open_index, search_options
from streams.simulator import MemoryRows
from streams.store.data_folder import index_folder
from tests.streams.cli.definitions import define

PAGES = "query = 'type:HTML'\nttl = 60\n"


@pytest.fixture
def gathered(harvest: Any, tree: Path) -> Any:
    """A data folder with two Brokers, one of which indexes HTML pages only."""
    define("pages", PAGES)
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
    own, drawn = gathered("describe", "--broker", "pages").stdout, gathered("describe", "--broker", "pages", "--mermaid").stdout
    assert own.startswith("register.pages  views.pages, summaries, copies.pages -> broker.pages, holders.pages\n")
    assert not {"frontier", "main"} & set(own.replace(".", " ").split())
    assert "summaries([summaries]) -->|summaries| register_pages" in drawn
    assert "roots" not in drawn
    assert [line["topic"] for line in gathered.lines("cat", "--broker", "pages")] == ["broker.pages"]
    assert [line["topic"] for line in gathered.lines("cat", "holders", "--broker", "pages")] == ["holders.pages"]
    assert "crawl: no topic of a Broker" in gathered("cat", "crawl", "--broker", "pages", code=2).stderr
    assert "a TOPIC is missing" in gathered("cat", code=2).stderr
    for command in ("cat", "describe"):
        assert "no such Broker" in gathered(command, "--broker", "page", code=2).stderr


def test_summary_that_no_longer_matches_leaves_the_broker(harvest: Any, tree: Path) -> None:
    """A page that loses the word of a Broker's query is removed from that Broker, with the reason."""
    define("whales", "query = 'whale'\n")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "whales")) == 1
    (tree / "page.html").write_text("<title>Squid</title>Only squid.")
    harvest("gather", "--quiet")
    assert harvest.lines("search", "*", "--broker", "whales") == []
    assert "removed: filtered" in harvest("why", tree / "page.html").stdout


def test_broker_added_to_a_folder_with_more_partitions(harvest: Any, tree: Path) -> None:
    """The topics of a Broker that the settings add later have as many partitions as those that the data folder has."""
    harvest("gather", tree, "--quiet", "--partitions", "3")
    define("pages", PAGES)
    harvest("roots", "add", tree / "notes")
    harvest("gather", "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "pages")) == 1
    assert {one["partitions"] for one in harvest.lines("topics", "list")} == {3}


def test_filtered_summary_is_removed_again_on_redelivery() -> None:
    """A worker killed between its rows and its outputs repeats the removal by a filter; a later one says nothing then."""
    rows, accepts = MemoryRows(), partial(contains, ["whale"])
    summary = Summary(oid="1", url="file:///a", object_url="file:///a", gatherer="g", version=1, time=1, type="whale", md5="0" * 32)

    def run(version: int, type_name: str, offset: int, committed: int = 0) -> list[str]:
        record = replace(summary, version=version, type=type_name)
        found = register(rows, record, Origin("summaries", 0, offset, committed), Plan(accepts=lambda one: accepts(one.type)))
        return [type(one).__name__ for one in found]

    assert run(1, "whale", 0) == ["Summary"]
    assert run(2, "squid", 1) == ["Removed"]
    assert run(2, "squid", 1) == ["Removed"]
    assert run(3, "squid", 2, committed=2) == []
    assert run(1, "whale", 0, committed=2) == []


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
    """Before the first run of a new Broker, and after its definition is gone, commands say what is missing."""
    harvest("gather", tree, "--quiet")
    define("pages", PAGES)
    for command in (("index", "rebuild"), ("replay",), ("replay", "--since", "0")):
        said = harvest(*command, "--broker", "pages", code=1).stderr
        assert said == "harvest: broker.pages: no such topic (harvest run, or the next harvest gather, makes it)\n"
    harvest("gather", "--quiet")
    Path("harvest-data", "brokers", "pages.toml").unlink()
    said = harvest("export", "broker.pages", "out.avro", code=1).stderr
    assert (
        said
        == "harvest: broker.pages: not a topic of these settings (those of a Broker need its definition: harvest broker list)\n"
    )
    assert not list(Path().glob("out*"))


def test_missing_index_of_a_broker_names_the_command(gathered: Any) -> None:
    """The hint to rebuild an index names its Broker, and rebuilding it helps."""
    shutil.rmtree(index_folder(Path("harvest-data"), "pages"))
    assert "harvest index rebuild --broker pages" in gathered("search", "*", "--broker", "pages", code=1).stderr
    gathered("index", "rebuild", "--broker", "pages", "--quiet")
    assert len(gathered.lines("search", "*", "--broker", "pages")) == 1


def test_annotation_of_what_main_filters_out_is_known(harvest: Any, tree: Path) -> None:
    """`annotate` asks the Gatherer's database whether it knows a URL, whatever `main` accepts."""
    define("main", "query = 'type:HTML'\n")
    define("all")
    harvest("gather", tree, "--quiet")
    assert "unknown" not in harvest("annotate", tree / "notes" / "a.txt", "note=checked").stderr
    assert len(harvest.lines("search", "note:checked", "--broker", "all")) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("query = '(whale'", "query: this parenthesis is never closed (did you mean (whale)?): ^(whale"),
        ("qery = 'x'", "qery: no such key (did you mean query?)"),
        ("[rank]\ntitel = 1", "rank.titel: no such key (did you mean rank.title?)"),
        ("ttl = '8 years'", "ttl: a time is a number of seconds, or as 12h, 3d, 8w"),
        ("ttl = true", "ttl: a time is a number of seconds, or as 12h, 3d, 8w"),
        ("from = []", "from: tuple should have at least 1 item after validation, not 0, not []"),
        ("from = ['summary']", "from: no source: 'summary' (a source is summaries, broker:NAME or the URL of a stream)"),
        ("from = ['broker:page']", "from: broker:page: no such Broker (did you mean pages?)"),
        ("from = ['broker:pages']", "from: a circle: pages from pages"),
        ("from = ['summaries', 'summaries']", "from: summaries is named twice"),
        ("facets = ['colour']", "facets: no such facet: 'colour' (there are type, site, language, author, year, gatherer)"),
        ("languages = ['xx']", "languages: "),
        ("[fallback]\nbroker = 'pags'", "fallback.broker: pags: no such Broker (did you mean pages?)"),
        ("[fallback]\nbroker = 'pages'", "fallback.broker: a Broker cannot be its own fallback"),
        ("[fallback]\nbelow = 3", "fallback.broker: field required"),
        ("query = ", "not TOML: "),
        (b"title = '\xff'", "not TOML: "),
        ("x" * 70_000, "more than 65,536 bytes"),
    ],
)
def test_mistake_in_a_definition_is_one_line(tmp_path: Path, text: str | bytes, line: str) -> None:
    """Each mistake in a definition is one line that names the file and the key; the Brokers without one are known."""
    path = tmp_path / "pages.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found = read_definitions(tmp_path, ("en",))
    assert [broker.name for broker in found.brokers] == ["main"]
    (mistake,) = found.mistakes
    assert mistake.line.startswith(f"{path}: {line}"), mistake.line
    assert "\n" not in mistake.line


def test_all_mistakes_of_all_files_are_told(tmp_path: Path) -> None:
    """Names that no topic can have, names that differ by letter case, folders, pipes, and circles of several: a line for each."""
    for name in ("Pages", "pages", "main-0", "a b", "x" * 41):
        (tmp_path / f"{name}.toml").touch()
    for name, source in (("one", "two"), ("two", "three"), ("three", "one"), ("over", "one")):
        (tmp_path / f"{name}.toml").write_text(f"from = ['broker:{source}']")
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "nowhere.toml").symlink_to("none")
    (tmp_path / "two-keys.toml").write_text("titel = 'x'\nttl = -1")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "good.toml").touch()
    found = read_definitions(tmp_path, ("en",))
    assert [broker.name for broker in found.brokers] == ["main", "good", "over"]
    lines = "\n".join(mistake.line.removeprefix(f"{tmp_path}/") for mistake in found.mistakes)
    assert len(found.mistakes) == 14, lines
    for line in (
        "Pages.toml: two files of one name: pages.toml",
        "pages.toml: two files of one name: Pages.toml",
        "main-0.toml: a name may not end in -0, as the indexes of a server do",
        "a b.toml: a Broker's name has at most 40 small letters, digits and hyphens, and begins with no hyphen",
        "one.toml: from: a circle: one from two from three from one",
        "folder.toml: ",
        "pipe.toml: not a file",
        "nowhere.toml: no such file",
        "two-keys.toml: titel: no such key (did you mean title?)",
        "two-keys.toml: ttl: ",
    ):
        assert line in lines


def test_wrong_definition_ends_writers_and_warns_readers(gathered: Any, tree: Path) -> None:
    """With a wrong file `gather` ends with one line, exit code 2; a search in a good Broker goes on, with a warning."""
    wrong = define("wrong", "query = '('")
    line = f"harvest: {wrong}: query: "
    said = gathered("gather", "--quiet", code=2).stderr
    assert said.startswith(line)
    assert said.count("\n") == 1
    searched = gathered("search", "*", "--broker", "pages")
    assert f"harvest: warning: {wrong}: query: " in searched.stderr
    assert "page.html" in searched.stdout
    assert gathered("search", "*", "--broker", "wrong", code=2).stderr.startswith(line)
    said = gathered("search", "*", "--broker", "library", code=2).stderr
    assert said == "harvest: library: no such Broker (there are main, pages; harvest broker create defines others)\n"


def test_definitions_of_the_settings_say_what_to_do(harvest: Any) -> None:
    """A table of Brokers in the file of settings, or in the environment, is one line that says where they belong."""
    Path("harvest.toml").write_text("[brokers.pages]\nquery = 'x'\n")
    said = harvest("search", "x", code=2).stderr
    assert said.startswith("harvest: harvest.toml: brokers: Brokers are defined by files NAME.toml")
    assert said.count("\n") == 1
    with pytest.raises(SettingsError, match=r"^HARVEST_BROKERS_PAGES_QUERY: .*harvest broker create"):
        load({}, None, {"HARVEST_BROKERS_PAGES_QUERY": "x"})


def test_definitions_are_read_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    """HARVEST_BROKERS names the folder; `main` always exists and is the first; all keys are read."""
    folder = tmp_path / "defined"
    found = load({}, None, {"HARVEST_BROKERS": str(folder)})
    assert [mistake.line for mistake in definitions_of(found).mistakes] == [f"brokers: {folder}: no such folder"]
    folder.mkdir()
    (folder / "main.toml").write_text("ttl = '1m'")
    (folder / "tech-reports.toml").write_text(
        "title = 'Reports'\nquery = 'type:PDF'\nfrom = ['summaries', 'broker:main', 'https://h.example/brokers/cs/soif']\n"
        "ttl = '8w'\nlanguages = ['de']\nfacets = ['year', 'author']\nstream = true\n"
        "[rank]\ntitle = 2\n[fallback]\nbroker = 'main'\nbelow = 3\n"
    )
    sources = ("summaries", "broker:main", "https://h.example/brokers/cs/soif")
    reports = Broker(
        "tech-reports",
        "type:PDF",
        8 * 7 * 86_400,
        ("de",),
        "Reports",
        sources,
        ("year", "author"),
        (("title", 2.0),),
        Fallback("main", 3),
        True,
    )
    assert definitions_of(found).mistakes == ()
    assert brokers_of(found) == (Broker(ttl=60), reports)
    assert broker_named(found, "tech-reports") == "tech-reports"
    assert topology_of(found) is topology_of(load({}, None, {"HARVEST_BROKERS": str(folder)}))
    with pytest.raises(SettingsError, match="no such Broker"):
        broker_named(found, "pages")


def test_register_is_wired_to_the_definition(tmp_path: Path) -> None:
    """The register stage of a Broker gets its filter and its time-to-live; that of a Broker without a query gets neither."""
    (tmp_path / "pages.toml").write_text("query = 'type:HTML'")
    found = topology_of(load({}, None, {"HARVEST_BROKERS": str(tmp_path)}))
    processes: Any = [found.stage(name).process.__self__.register for name in ("register.main", "register.pages")]  # type: ignore[union-attr]
    assert [process.func for process in processes] == [register, register]
    plans = [process.keywords["plan"] for process in processes]
    assert [(plan.accepts is None, plan.ttl) for plan in plans] == [(True, None), (False, None)]


def test_new_broker_is_made_by_the_next_run(harvest: Any, tree: Path) -> None:
    """A search in a Broker that no run has made yet says that the next one makes it."""
    harvest("gather", tree, "--quiet")
    define("fresh")
    assert "the next harvest gather, makes it" in harvest("search", "*", "--broker", "fresh", code=1).stderr


def test_ranking_and_languages_are_those_of_the_broker(harvest: Any, tree: Path) -> None:
    """A search in a Broker has the weights of its definition, and its index is made for its languages."""
    define("german", "languages = ['de']\n[rank]\ntitle = 3\n")
    harvest("gather", tree, "--quiet")
    found = load({}, None, {})
    with closing(open_index(found, "german")) as index:
        assert index.languages == ("de",)
    assert search_options(found.search, dict(broker_defined(found, "german").rank)).title == 3.0
    assert "made for the languages" not in harvest("search", "whale", "--broker", "german").stderr


def test_wrong_definition_does_not_stop_what_needs_no_run(gathered: Any, tree: Path) -> None:
    """With another Broker's definition wrong, objects are served, and a description is stored for the next run with one line."""
    found = load({"serve": {"objects": True}}, None, {})
    define("wrong", "query = '('\n")
    with closing(collection_of(found, "pages")) as collection, pytest.raises(ObjectError) as caught:
        collection.body(
            Summary(oid="0" * 64, url="file:///a", object_url="file:///a", gatherer="here", version=1, time=1, type="x")
        )
    assert caught.value.status in (403, 404)
    (line,) = gathered("annotate", tree / "page.html", "reviewed=yes").stderr.splitlines()
    assert "the change is stored, and the next run applies it" in line
    assert "wrong.toml: query: " in line
    define("wrong")
    gathered("gather", "--quiet")
    assert len(gathered.lines("search", "reviewed:yes")) == 1


def test_facets_of_a_search_are_the_brokers_own(gathered: Any) -> None:
    """`--facets own` counts the facets of the Broker's definition in its order; without any there, all."""
    define("pages", f"{PAGES}facets = ['gatherer', 'type']\n")
    lines = gathered.lines("search", "*", "--broker", "pages", "--facets", "own")
    assert list(dict.fromkeys(line["facet"] for line in lines if "facet" in line)) == ["gatherer", "type"]
    every = gathered.lines("search", "*", "--facets", "own")
    assert every == gathered.lines("search", "*", "--facets", "all")


def test_views_of_a_broker_are_those_of_its_gateway(gathered: Any) -> None:
    """The gateway of a Broker reads its views from the data folder; without a data folder there are none."""
    define("pages", PAGES)
    gathered("view", "create", "pages", "sea", "whale")
    with closing(collection_of(load({}, None, {}), "pages")) as collection:
        assert set(collection.views()) == {"sea"}
    with closing(collection_of(load({}, None, {}), "main")) as collection:
        assert collection.views() == {}
    with closing(collection_of(load({"data": "nothing"}, None, {}), "main")) as collection:
        assert collection.views() == {}
