"""The administration of the gateway: its actions on a data folder are those of the commands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.codec import encode
from schemas.records import Rejected
from sinks.gateway.admin.ports import AdministrationError, AdminRoot, AdminView, Task
from streams.cli import administration as administering
from streams.cli.administration import LATEST, SettingsAdministration
from streams.config.settings import load
from streams.store import Store
from tests.streams.cli.definitions import define

DEFINED = {"pages": "query = 'type:HTML'\nttl = 3600\n", "registry": "query = ' type:Server '\n"}


@pytest.fixture
def lines() -> list[str]:
    """Lines of the log."""
    return []


@pytest.fixture
def administration(harvest: Any, lines: list[str]) -> Iterator[SettingsAdministration]:
    """The administration of the test's data folder, with three Brokers."""
    for name, text in DEFINED.items():
        define(name, text, harvest.folder / "elsewhere")
    found = load({"data": harvest.folder / "harvest-data", "brokers": harvest.folder / "elsewhere" / "brokers"}, None, {})
    made = SettingsAdministration(found, None, lines.append)
    yield made
    made.close()


def reject(harvest: Any, *letters: Rejected) -> None:
    """Append dead letters to the data folder."""
    with Store(harvest.folder / "harvest-data") as store, store.transaction() as tx:
        for one in letters:
            tx.append("rejected", 0, one.url.encode(), encode(one), one.time)


def letter(number: int, reason: str, value: bytes | None = b"x") -> Rejected:
    """Return a dead letter of an object of its own."""
    url = f"file:///lost/{number}"
    return Rejected(stage="essence", reason=reason, time=number, url=url, version=1, topic="objects", value=value)


def ended(administration: SettingsAdministration) -> Task:
    """Wait until the command in the background has ended, and return it."""
    while (task := administration.task()) is None or task.state == "running":
        time.sleep(0.05)
    return task


def test_roots_are_those_of_the_command(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """A root that is added, paused, resumed and removed here is so for the command, and the next run reads it."""
    url = f"{tree.as_uri()}/"
    assert administration.roots() == ([], [])
    said = administration.add_root(str(tree), 3, None)
    assert said == f"{tree} is added: harvest run, or the next harvest gather, visits it"
    assert administration.roots() == ([AdminRoot(url, False, "depth 3")], [])
    harvest("gather", "--quiet")
    assert len(harvest.lines("search", "Ishmael")) == 1
    assert "its limits were depth 3, and are 7 URLs now" in administration.add_root(url, None, 7)
    assert administration.pause_root(url) == f"{url} is paused"
    assert [root["state"] for root in harvest.lines("roots", "list")] == ["paused"]
    administration.resume_root(url)
    assert administration.remove_root(url).startswith(f"{url} is removed: ")
    harvest("gather")
    assert administration.roots() == ([], [])
    assert harvest.lines("search", "Ishmael") == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tree", "neither a URL nor an absolute path"), ("/nowhere/at/all", "No such file"), ("nix://x/", "nix"),
        ("http://", "http://"), ("file:///srv/a?b", "neither query nor fragment"),
    ],
)  # fmt: skip
def test_wrong_root_is_a_mistake_of_the_user(administration: SettingsAdministration, name: str, reason: str) -> None:
    """One line says why it is none; nothing is created."""
    with pytest.raises(AdministrationError, match=reason) as caught:
        administration.add_root(name, None, None)
    assert caught.value.status == 422
    assert "\n" not in str(caught.value)
    assert administration.roots() == ([], [])


def test_unknown_names_are_mistakes_of_the_user(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """A root, a rejection, a reason and a Broker that are not there."""
    harvest("gather", tree, "--quiet")
    for act, name in (
        (administration.pause_root, "http://other.example/"),
        (administration.remove_root, "/nowhere"),
        (administration.retry, "http://other.example/"),
        (administration.retry_reason, "no reason"),
        (administration.rebuild, "nix"),
    ):
        with pytest.raises(AdministrationError, match=name):
            act(name)
    assert administration.task() is None


def test_limit_above_any_is_a_mistake(administration: SettingsAdministration, tree: Path) -> None:
    """It is refused in the words of the command."""
    with pytest.raises(AdministrationError, match="a limit is at most"):
        administration.add_root(str(tree), 10**15, None)


def test_pause_beside_a_run_is_refused(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """While a run has the data folder, 409 names its process; a root can be added and removed, and the run does it."""
    harvest("gather", tree, "--quiet")
    url = f"{tree.as_uri()}/"
    with Store(harvest.folder / "harvest-data", runner=True):
        with pytest.raises(AdministrationError, match="in use by another run") as caught:
            administration.pause_root(url)
        assert caught.value.status == 409
        assert administration.remove_root(url).endswith("the active run removes its objects")
    assert administration.roots() == ([], [])


def test_brokers_have_definition_number_and_problem(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """The Brokers of the settings are listed; of one whose index is not there yet it is said so."""
    harvest("gather", tree, "--quiet")
    main, pages, _ = administration.brokers()
    assert (main.name, main.query, main.summaries, main.problems) == ("main", "", 3, [])
    assert (pages.name, pages.query, pages.ttl, pages.summaries) == ("pages", "type:HTML", 3_600, None)
    assert len(pages.problems) == 1


def test_rebuild_runs_in_the_background(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """The command is started, one at a time, and its last line is what the page shows."""
    harvest("gather", tree, "--quiet")
    administration.rebuild("main")
    with pytest.raises(AdministrationError, match="one such command runs at a time") as caught:
        administration.rebuild("main")
    assert caught.value.status == 409
    done = ended(administration)
    assert (done.name, done.state, done.detail) == ("harvest index rebuild", "done", "3 summaries indexed")
    administration.rebuild("pages")
    failed = ended(administration)
    assert (failed.name, failed.state) == ("harvest index rebuild --broker pages", "failed")
    assert failed.detail.startswith("summaries.pages") or "pages" in failed.detail


def test_rebuild_ends_with_the_gateway(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """Closing ends the command, whatever it was doing, and the index is as it was."""
    harvest("gather", tree, "--quiet")
    administration.rebuild("main")
    administration.close()
    task = administration.task()
    assert task is not None
    assert task.state != "running"
    assert len(harvest.lines("search", "Ishmael")) == 1


def test_rejections_are_listed_by_reason(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """The most frequent reason first, the latest records of each, all of it printable; none without a data folder."""
    assert administration.rejections()[0] == ()
    harvest("gather", tree, "--quiet")
    odd = "odd\u202e\nreason"
    reject(harvest, *(letter(at, "damaged") for at in range(LATEST + 2)), letter(99, odd))
    (damaged, other), notes = administration.rejections()
    assert (damaged.reason, damaged.total, len(damaged.latest)) == ("damaged", LATEST + 2, LATEST)
    assert damaged.latest[0].name == f"file:///lost/{LATEST + 1}"
    assert (other.reason, other.total, notes) == ("odd  reason", 1, [])
    assert administration.retry_reason(other.reason).startswith("1 record put back: ")


def test_rejections_are_retried(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """One by its name, and all of a reason; of what has nothing to be put back it is said so."""
    harvest("gather", tree, "--quiet")
    reject(harvest, letter(1, "damaged"), letter(2, "damaged"), letter(3, "damaged"), letter(4, "lost", None))
    assert administration.retry("file:///lost/1").startswith(
        "1 record put back: harvest run, or the next harvest gather, reads them"
    )
    assert administration.retry_reason("damaged").startswith("2 records put back: ")
    assert "nothing is left of 1 to put back" in administration.retry_reason("lost")
    assert [group.reason for group in administration.rejections()[0]] == ["lost"]


def test_many_rejections_are_retried_in_parts(
    harvest: Any, tree: Path, administration: SettingsAdministration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request puts back a bounded number, and says how many are left."""
    harvest("gather", tree, "--quiet")
    monkeypatch.setattr(administering, "MOST_RETRIED", 2)
    reject(harvest, *(letter(at, "damaged") for at in range(3)))
    said = administration.retry_reason("damaged")
    assert said.startswith("2 records put back: ")
    assert said.endswith("; left of this reason: 1 (retry again)")
    assert administration.retry_reason("damaged").startswith("1 record put back: ")


def test_registry_without_servers_is_empty(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """A Broker whose query is type:Server is the registry; without its index the reason is a note, without such a Broker too."""
    harvest("gather", tree, "--quiet")
    listed, notes = administration.registrations()
    assert (listed, len(notes)) == ([], 1)
    assert notes[0].startswith("registry: ")
    other = SettingsAdministration(load({"data": harvest.folder / "harvest-data"}, None, {}), None, print)
    assert other.registrations() == ((), ["there is no registry here: a Broker whose query is type:Server"])


def test_sizes_are_those_of_the_data_folder(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """Each part has its size in bytes."""
    harvest("gather", tree, "--quiet")
    sizes = {each.name: each.size for each in administration.sizes()}
    assert sizes["store.sqlite"] == (harvest.folder / "harvest-data" / "store.sqlite").stat().st_size
    index = harvest.folder / "harvest-data" / "index"
    assert sizes["index"] == sum(path.stat().st_size for path in index.rglob("*") if path.is_file())


def test_views_are_those_of_the_command(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """A view that the command creates is listed with its Broker and its query."""
    harvest("gather", tree, "--quiet")
    harvest("view", "create", "main", "sea", "whale")
    harvest("view", "create", "main", "sea/old", "Ishmael")
    assert list(administration.views()) == [AdminView("main", "sea", "whale"), AdminView("main", "sea/old", "Ishmael")]


def test_view_is_saved_as_by_the_command(harvest: Any, tree: Path, administration: SettingsAdministration) -> None:
    """A saved view is searched at once, and tagged by the next run."""
    harvest("gather", tree, "--quiet")
    said = administration.save_view("main", "The sea", "whale type:HTML")
    assert said == "The sea is a view of main: harvest run, or the next harvest gather, tags its summaries"
    assert list(administration.views()) == [AdminView("main", "The sea", "whale type:HTML")]
    found = harvest("search", 'view:"the sea"', "--count").stdout
    assert found == harvest("search", "whale type:HTML", "--count").stdout
    harvest("gather", "--quiet")
    assert harvest("search", 'view:"the sea"', "--facets", "view", "--limit", 0).stdout.split()[1:2] == [found.strip()]


@pytest.mark.parametrize(
    ("broker", "path", "query", "problem"),
    [
        ("main", "SEA", "krill", "sea: is there already, with the query whale"),
        ("main", "see/x", "krill", "see: no such view, so that see/x would hold nothing (did you mean sea?)"),
        ("main", "a<b", "krill", "a<b: a name is letters, digits, blanks and - _ + . & ' ,"),
        ("main", "x", "krill AND (", "query: "),
        ("mian", "x", "krill", "mian: "),
    ],
)
def test_mistake_in_a_view_changes_nothing(
    harvest: Any, tree: Path, administration: SettingsAdministration, broker: str, path: str, query: str, problem: str
) -> None:
    """A path that is taken or cannot be, a query that is none, and an unknown Broker are one line each."""
    harvest("gather", tree, "--quiet")
    harvest("view", "create", "main", "sea", "whale")
    with pytest.raises(AdministrationError) as caught:
        administration.save_view(broker, path, query)
    assert str(caught.value).startswith(problem)
    assert str(caught.value).isprintable()
    assert list(administration.views()) == [AdminView("main", "sea", "whale")]


def test_no_data_folder_is_no_error(administration: SettingsAdministration) -> None:
    """Before the first run everything is empty, and nothing is created by looking."""
    assert administration.sizes() == []
    assert administration.roots() == ([], [])
    assert administration.views() == ()


def test_lines_go_to_the_log(administration: SettingsAdministration, lines: list[str]) -> None:
    """What the page logs is a line of the command's log."""
    administration.log("who asked for what")
    assert lines == ["who asked for what"]
