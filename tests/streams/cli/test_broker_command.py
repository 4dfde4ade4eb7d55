"""`harvest broker`: definitions are created, listed, shown, checked and removed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streams.brokers import definition_text, read_definitions, values_of
from streams.store import Store
from streams.store.locks import LockFile

FILE = Path("harvest-data", "brokers", "pages.toml")


def test_created_broker_is_filled_searched_listed_and_removed(harvest: Any, tree: Path) -> None:
    """A Broker that `create` defines is filled by the next run, is searched and listed, and is gone after `remove`."""
    told = harvest("broker", "create", "pages", "--query", "type:HTML", "--ttl", "8w", "--title", 'Web "pages"').stderr
    assert told == f"harvest: {FILE}: written; it holds from the next harvest gather or harvest run\n"
    assert [one["changed"] for one in harvest.lines("broker", "list")] == ["", ""]
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "pages")) == 1
    main, pages = harvest.lines("broker", "list")
    assert (main["name"], pages["name"], pages["title"], pages["summaries"], pages["lag"]) == (
        "main",
        "pages",
        'Web "pages"',
        1,
        0,
    )
    assert 'pages  Web "pages"  1 summary, 0 to be read, 2' in harvest("broker", "list").stdout
    assert "ttl = 4838400\n" in harvest("broker", "show", "pages").stdout
    harvest("broker", "create", "over", "--from", "broker:pages")
    assert "over is made from it" in harvest("broker", "remove", "pages", code=1).stderr
    harvest("broker", "remove", "over")
    assert f"{FILE}: removed" in harvest("broker", "remove", "pages").stderr
    assert "no such Broker" in harvest("search", "*", "--broker", "pages", code=2).stderr


def test_wrong_definition_is_not_created(harvest: Any) -> None:
    """A definition with a mistake is refused with the line of `check`, exit code 2, and leaves no file."""
    for options, line in (
        (("pages", "--query", "(whale"), f"{FILE}: query: this parenthesis"),
        (("pages", "--from", "broker:x"), f"{FILE}: from: broker:x: no such Broker"),
        (("pages", "--ttl", "soon"), f"{FILE}: ttl: a time is"),
        (("Pages",), "Pages: a Broker's name has at most"),
        (("pages", "--example", "none-such"), "--example none-such: no such example"),
    ):
        assert harvest("broker", "create", *options, code=2).stderr.startswith(f"harvest: {line}")
        assert not FILE.exists()
    harvest("broker", "create", "pages")
    assert "it is there already" in harvest("broker", "create", "pages", code=1).stderr


def test_check_prints_all_mistakes(harvest: Any) -> None:
    """`check` prints each mistake of each file, exit code 2; without one it says so, exit code 0."""
    assert "1 Broker, no mistakes" in harvest("broker", "check").stderr
    FILE.parent.mkdir(parents=True)
    FILE.write_text("titel = 1\nttl = 0\n")
    FILE.with_name("other.toml").write_text("query = '('\n")
    said = harvest("broker", "check", code=2).stdout.splitlines()
    assert len(said) == 3
    assert len([line for line in said if line.startswith(f"{FILE}: ")]) == 2


def test_runner_at_work_is_named(harvest: Any, tree: Path) -> None:
    """While a runner is at work, `create` says that the definition holds from its next start, and `remove` is refused."""
    harvest("gather", tree, "--quiet")
    lock = LockFile(Path("harvest-data", "runner.lock"))
    lock.claim()
    try:
        assert "the runner at work (process" in harvest("broker", "create", "pages").stderr
        assert "a runner is at work" in harvest("broker", "remove", "pages", code=1).stderr
    finally:
        lock.close()
    assert "main cannot be removed" in harvest("broker", "remove", "main", code=2).stderr


def test_file_of_main_is_removed(harvest: Any) -> None:
    """`remove main` removes a definition of main, also where another Broker is made from it: main stays, with its defaults."""
    harvest("broker", "create", "main", "--query", "whale")
    harvest("broker", "create", "over", "--from", "broker:main")
    assert "main.toml: removed" in harvest("broker", "remove", "main").stderr
    assert "query" not in harvest("broker", "show", "main").stdout


def test_shown_definition_is_a_definition(tmp_path: Path) -> None:
    """What `show` prints defines the same Broker again."""
    text = 'title = "a \\"b\\" \\u007f"\nfacets = ["year"]\nstream = true\n[rank]\nlinks = 0.5\n[fallback]\nbroker = "main"\n'
    (tmp_path / "one.toml").write_text(text)
    (one,) = [broker for broker in read_definitions(tmp_path, ("en",)).brokers if broker.name == "one"]
    (tmp_path / "one.toml").write_text(definition_text(values_of(one)))
    assert one in read_definitions(tmp_path, ("en",)).brokers


def test_forgotten_broker_leaves_nothing_and_can_be_made_again(harvest: Any, tree: Path) -> None:
    """`remove` says that all else stays; `--forget` deletes topics, rows, index and stream, and others find what they found."""
    harvest("gather", tree, "--quiet")
    before = holdings()
    FILE.parent.mkdir()
    FILE.write_text("query = 'type:HTML'\nstream = true\n")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "--routed", "whale")) == 1
    with_pages = holdings()
    assert "its topics, rows and index stay (--forget deletes them)" in harvest("broker", "remove", "pages").stderr
    assert holdings() == with_pages
    assert "6 topics (" in harvest("broker", "remove", "pages", "--forget").stdout
    assert holdings() == before
    assert "nothing is left" in harvest("broker", "remove", "pages", "--forget", code=2).stderr
    harvest("broker", "create", "pages", "--query", "type:RawText")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "pages")) == 1
    assert len(harvest.lines("search", "*")) == 2
    harvest("broker", "remove", "pages", "--forget")
    assert not FILE.exists()
    assert holdings() == before


def holdings() -> tuple[list[str], set[str], list[str], set[str]]:
    """Return the topics, stages with rows, groups and files of the data folder."""
    data = Path("harvest-data")
    files = {str(path.relative_to(data)) for place in ("index", "feed", "statistics") for path in data.glob(f"{place}/*")}
    with Store(data, readonly=True) as store:
        spaces = store._state.fetch("SELECT name FROM spaces")
        return list(store.topics()), {name for (name,) in spaces}, store.groups(), files - {"statistics/main"}


def test_forgetting_is_refused_for_main_and_beside_a_runner(harvest: Any, tree: Path) -> None:
    """Main cannot be forgotten, nor a Broker that another is made from, nor any while a runner is at work: nothing is deleted."""
    harvest("broker", "create", "pages")
    harvest("broker", "create", "over", "--from", "broker:pages")
    harvest("gather", tree, "--quiet")
    before = holdings()
    assert "main cannot be" in harvest("broker", "remove", "main", "--forget", code=2).stderr
    assert "over is made from it" in harvest("broker", "remove", "pages", "--forget", code=1).stderr
    with Store(Path("harvest-data"), runner=True):
        assert "at work" in harvest("broker", "remove", "over", "--forget", code=1).stderr
    assert holdings() == before
    assert "nothing is left" in harvest("broker", "remove", "none", "--forget", code=2).stderr
    assert "no definition" in harvest("broker", "remove", "../main", "--forget", code=2).stderr


def test_forgetting_is_refused_while_something_is_left_that_is_made_from_it(harvest: Any, tree: Path) -> None:
    """What a removed Broker has from another one would stay for ever if that one were forgotten and made again: it goes first."""
    harvest("broker", "create", "pages")
    harvest("broker", "create", "over", "--from", "broker:pages")
    harvest("gather", tree, "--quiet")
    harvest("broker", "remove", "over")
    before = holdings()
    assert "harvest broker remove over --forget, or" in harvest("broker", "remove", "pages", "--forget", code=1).stderr
    assert holdings() == before
    harvest("broker", "remove", "over", "--forget")
    harvest("broker", "remove", "pages", "--forget")
    harvest("broker", "create", "pages", "--query", "type:HTML")
    harvest("broker", "create", "over", "--from", "broker:pages")
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--broker", "over")) == 1


def test_missing_folder_of_definitions_is_no_broker(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`list` reports a named folder that is not there on standard error; its rows are of Brokers alone."""
    monkeypatch.setenv("HARVEST_BROKERS", "nowhere")
    assert [one["name"] for one in harvest.lines("broker", "list")] == ["main"]
    assert harvest("broker", "list").stderr == "harvest: brokers: nowhere: no such folder\n"


def test_run_that_fills_a_broker_has_changed_something(harvest: Any, tree: Path) -> None:
    """The report of a run counts what is new in a Broker, changed there, or removed from it; where that is nothing, it says so."""
    harvest("gather", tree, "--quiet")
    harvest("broker", "create", "pages", "--query", "type:HTML")
    said = harvest("gather", tree).stderr
    assert re.search(r"changed in Broker pages +1\n", said)
    assert "nothing changed" not in said
    assert "nothing changed" in harvest("gather", tree).stderr
    FILE.write_text("query = 'type:RawText'\n")
    (table,) = harvest.lines("gather", tree)
    assert (table["brokers"], table["nothing_changed"], table["summaries"]) == ({"pages": 3}, False, 0)


def test_index_that_cannot_be_read_is_a_problem_of_its_broker(harvest: Any, tree: Path) -> None:
    """`list` names what is wrong with an index beside its Broker; the other ones are as they are."""
    harvest("broker", "create", "pages", "--query", "type:HTML")
    harvest("gather", tree, "--quiet")
    Path("harvest-data", "index", "pages", "meta.json").write_text("{}")
    main, pages = harvest.lines("broker", "list")
    assert (main["summaries"], main["lag"], main["problems"]) == (3, 0, [])
    assert (pages["summaries"], pages["lag"]) == (0, 0)
    assert "the index cannot be read" in pages["problems"][0]
