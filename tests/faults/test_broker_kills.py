"""Kills of a data folder with several Brokers, while definitions change and views come and go."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from processors.broker.views import queries, tags, tree
from processors.query.forms import DEFAULT_LANGUAGES
from schemas.query import Every
from schemas.records import Summary, View
from sinks.feed.reader import FeedReader
from sinks.index.tantivy.index import TantivyIndex
from streams.brokers import read_definitions
from streams.logs import StoreLog
from streams.operations.feed import feed_file
from streams.operations.views import defined
from streams.store import Store
from streams.store.data_folder import index_folder
from tests.faults.check import VARYING, latest, same
from tests.faults.corpus import Corpus
from tests.faults.harness import Command, Run, gather, gather_here, harvest_here
from tests.sinks.feed.conftest import Stream
from tests.streams.cli.definitions import define

PARTITIONS = 2
DEFINED: tuple[Mapping[str, str], ...] = (
    {
        "texts": 'query = "type:RawText"',
        "words": 'query = "badan OR kefel OR lohin"\nttl = "520w"',
        "over": 'from = ["broker:texts", "broker:words"]\nstream = true',
    },
    {"texts": 'query = "type:RawText OR type:HTML"'},
    {"words": 'query = "badan OR mikus"\nttl = "520w"'},
)
"""Definitions that each round begins with."""
KILLS = (
    ("turn.begin:2", "turn.register.texts:2", "feed.apply:1"),
    ("turn.dedup.texts:2", "turn.register.over:3", "feed.applied:1"),
    ("log.commit:6", "index.apply:1", "index.applied:2"),
)
"""Points at which the runs of each round are killed, and at which time; in the second and third round definitions have changed."""
VIEWS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("views.defined:1", "create main fel kefel"), ("turn.register.over:1", "create over dan badan")),
    (("views.defined:2", "create main fel/dan badan"), ("turn.register.main:2", "create main fel tafel")),
    (("log.committed:2", "remove main fel/dan"),),
)
"""Changes of views in each round, and where the command is killed that makes each."""


def write(folders: Mapping[str, Path], definitions: Mapping[str, str]) -> None:
    """Write definitions into data folders."""
    for folder in folders.values():
        for name, text in definitions.items():
            define(name, text, folder)


class Held:
    """What the Brokers of a data folder hold, with the definitions; each of its parts agrees with the others."""

    def __init__(self, folder: Path) -> None:
        with Store(folder, readonly=True) as store:
            self.summaries = latest(store, "summaries", "version")
            brokers = read_definitions(folder / "brokers", DEFAULT_LANGUAGES).brokers
            self.archives = {one.name: latest(store, f"broker.{one.name}", "published") for one in brokers}
            self.views = {one.name: defined(StoreLog(store), one.name) for one in brokers}
            self.lag = {(g, t): n for g in store.groups() for (t, _), n in store.lag(g).items() if n and not g.startswith("index")}
        for one in brokers:
            accepts, wanted = one.filter(), dict(self.summaries)
            if one.local_sources:
                wanted = {url: found for name in one.local_sources for url, found in self.archives[name].items()}
            held = self.archives[one.name]
            assert set(held) == {url for url, found in wanted.items() if accepts is None or accepts(found)}, one.name
            self._views(folder, one.name, held, self.views[one.name])
        with closing(FeedReader(feed_file(folder, "over"))) as reader:
            reader.require_whole()
            assert {one.url for one in Stream(reader.complete()).live.values()} == set(self.archives["over"])

    def _views(self, folder: Path, broker: str, held: Mapping[str, Summary], views: Mapping[str, View]) -> None:
        """Assert that the tags are those of the present views, and that the index answers with the same."""
        rules = tree(views)
        assert {url: one.views for url, one in held.items()} == {url: tags(rules, one) for url, one in held.items()}
        with closing(TantivyIndex(index_folder(folder, broker), writable=False)) as index:
            assert list(index.scroll(Every())) == sorted(one.oid for one in held.values())
            for path, query in queries(views).items():
                assert list(index.scroll(query)) == sorted(one.oid for one in held.values() if views[path].path in one.views)


def alike(one: Held, other: Held) -> None:
    """Assert that two folders have the same Brokers with the same content and views."""
    for name, archive in one.archives.items():
        found = ({url: msgspec.structs.replace(s, **VARYING) for url, s in a.items()} for a in (archive, other.archives[name]))
        same(name, *found)
        assert [(v.path, v.query) for v in one.views[name].values()] == [(v.path, v.query) for v in other.views[name].values()]
    assert not one.lag


@pytest.mark.slow(60)
@pytest.mark.timeout(600)
def test_kills_leave_brokers_views_and_streams_as_without(tmp_path: Path) -> None:
    """A folder whose runs and commands are killed at each point has the Brokers, views and stream of an undisturbed one.

    The tree changes between the rounds, and definitions do; a command that was killed is repeated.
    """
    os.makedirs(tmp_path / "tree")
    corpus = Corpus(os.fsencode(tmp_path / "tree"), 3, 120)
    corpus.build()
    folders = {name: tmp_path / name for name in ("sound", "killed")}
    for definitions, kills, views in zip(DEFINED, KILLS, VIEWS, strict=True):
        write(folders, definitions)
        assert gather_here(folders["sound"], corpus.root, PARTITIONS).code == 0
        for kill in kills:
            ended = Run(folders["killed"], corpus.root, PARTITIONS, f"{kill}:kill").wait()
            assert ended.code == -signal.SIGKILL, (kill, ended)
        assert gather(folders["killed"], corpus.root, PARTITIONS).code == 0
        for kill, command in views:
            change_view(folders, kill, command.split())
        corpus.disturb()
    # A command that was killed behind the definition leaves it to the next run.
    assert gather_here(folders["sound"], corpus.root, PARTITIONS).code == 0
    assert gather(folders["killed"], corpus.root, PARTITIONS).code == 0
    alike(Held(folders["killed"]), Held(folders["sound"]))


def change_view(folders: Mapping[str, Path], kill: str, words: Sequence[str]) -> None:
    """Change a view in both folders; the command is killed in one of them, and repeated."""
    assert harvest_here("view", *words, "--data", folders["sound"]).code == 0
    command = ["view", *words, "--data", str(folders["killed"])]
    ended = Command(command, f"{kill}:kill").wait()
    assert ended.code == -signal.SIGKILL, (kill, ended)
    again = Command(command).wait()
    assert again.code in (0, 2), again  # 2: it is as it should be
