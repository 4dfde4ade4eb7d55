"""`harvest replay` on a real Kafka and a real OpenSearch: into other indexes, and in place beside sinks and searches."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from processors.broker.definition import MAIN
from processors.identity import oid
from processors.query import parse
from schemas.query import Every
from schemas.records import Removed, Summary
from sinks.index.opensearch import aliases
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from streams.operations import replay
from streams.store.data_folder import index_folder
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.test_index_rebuild import a_world, expected, harvest, meanwhile, served
from tests.streams.kafka.test_index_sink import World, answers, removal, stream, summary

if TYPE_CHECKING:
    from pathlib import Path

    from opensearchpy import OpenSearch

PROGRAM = [sys.executable, "-c", "from streams.cli import main; main()"]


@pytest.fixture
def world(broker: Broker, opensearch: str, index: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Topics and an index, with small batches and short waits; the program is configured for them."""
    monkeypatch.setattr(replay, "BATCH", 40)
    return a_world(broker, opensearch, index, monkeypatch)


def says(world: World, alias: str = "") -> tuple[Mapping[str, object], Mapping[int, int]]:
    """Counts and hits of an index, and its offsets."""
    with closing(OpenSearchIndex(world.url, alias or world.alias, writable=False)) as index:
        offsets = index.offsets()
        return answers(index), offsets


def by(name: str, change: Summary | Removed) -> Any:
    """The same change by another Gatherer."""
    url = change.url.replace("http://a/", f"http://{name}/")
    more = {"gatherer": name} if isinstance(change, Summary) else {}
    return msgspec.structs.replace(change, oid=oid(name, url), url=url, object_url=url, **more)


def test_replays_into_two_indexes_and_folder_are_equal(
    world: World, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic replayed into two indexes and a folder gives three equal indexes; the one in service stays."""
    world.send(stream())
    harvest("index", "rebuild")
    with closing(world.open()) as serving:
        before, at = says(world)
        said = harvest("replay", "--to", f"{index}-b").stderr
        assert said.splitlines()[-1] == f"harvest: to search it: HARVEST_INDEX_NAME={index}-b harvest search QUERY"
        said = harvest("replay", "--to", f"{world.url}/{index}-c").stderr
        assert said.splitlines()[-2] == f"harvest: {len(stream())} records read, {len(stream())} applied, 263 summaries held"
        assert says(world, f"{index}-b-main") == says(world, f"{index}-c-main") == (before, at)
        assert served(serving.node._client, world) == str(*aliases.behind(serving.node, world.alias))
    harvest("replay", "--to", str(tmp_path / "folder"))
    with closing(TantivyIndex(index_folder(tmp_path / "folder", MAIN), writable=False)) as embedded:
        assert (answers(embedded), embedded.offsets()) == (before, at)
    monkeypatch.setenv("HARVEST_INDEX_NAME", f"{index}-b")
    assert harvest("search", "whale").stderr.endswith("10 shown\n")


def test_killed_replay_leaves_index_in_service(
    world: World, index: str, search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed replay leaves the index in service, and does not block the next replay under the same name."""
    world.send(stream())
    harvest("index", "rebuild")
    before = says(world)
    for point, *words in (("rebuild.swapped:1:kill",), ("rebuild.applied:3:kill", "--to", f"{index}-b")):
        alias = f"{index}-b-main" if words else world.alias
        monkeypatch.setenv("HARVEST_FAULT", point)
        killed = subprocess.run([*PROGRAM, "replay", *words], capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        monkeypatch.delenv("HARVEST_FAULT")
        assert says(world) == before
        assert len(search_client.indices.get(index=f"{alias}-*")) == 2 - bool(words)
        harvest("replay", *words)
        assert says(world, alias) == before
        assert len(search_client.indices.get(index=f"{alias}*")) == 1
    monkeypatch.setattr(replay, "fault", interrupted)
    harvest("replay", "--since", "1", code=130)
    assert says(world) == before


def interrupted(point: str) -> None:
    """Simulate Ctrl-C."""
    raise KeyboardInterrupt


def test_partial_replay_since_keeps_offsets_of_sink(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial replay in place keeps the offsets of a sink with lag, which goes on with all the rest; in a folder as well."""
    first = [summary(number) for number in range(100)]
    world.send(first)
    with world.sink():
        world.until_read()
    reader = world.open()
    before = reader.offsets()
    world.send([summary(number) for number in range(100, 150)])
    time.sleep(0.01)  # the broker's times are in ms, by the clock of the sender
    since = str(time.time_ns() // 1_000_000)
    time.sleep(0.01)
    last: list[Summary | Removed] = [
        *(summary(number, 2) for number in range(140, 160)),
        *(removal(number, 3) for number in range(5)),
    ]
    world.send(last)
    said = harvest("replay", "--since", since).stderr
    assert said.splitlines()[-1] == f"harvest: {len(last)} records read, {len(last)} applied, {100 + 20 - 5} summaries held"
    assert reader.offsets() == before
    assert reader.count(parse("number:*")) == 115
    with world.sink():
        world.until_read()
        world.until(lambda: sum(reader.offsets().values()) == len(first) + 50 + len(last))
    reader.refresh()
    assert answers(reader) == (whole := expected(world, tmp_path / "data"))
    reader.close()
    monkeypatch.setenv("HARVEST_INDEX_URL", "")
    monkeypatch.setenv("HARVEST_DATA", str(tmp_path / "data"))
    said = harvest("replay", "--since", since).stderr
    assert said.splitlines()[-1] == f"harvest: {len(last)} records read, {len(last)} applied, {160 - 5} summaries held"
    with closing(TantivyIndex(index_folder(tmp_path / "data", MAIN), writable=False)) as embedded:
        assert answers(embedded) == whole


def test_replay_of_one_gatherer_leaves_others_alone(world: World, index: str) -> None:
    """A replay of one Gatherer restores its lost summaries, applies its removals, and leaves those of others alone."""
    mine, others = stream(60), [by("h", change) for change in stream(60)]
    world.send([change for pair in zip(mine, others, strict=True) for change in pair])
    harvest("replay", "--to", f"{index}-b", "--gatherer", "g")
    wanted, none = says(world, f"{index}-b-main")
    with closing(world.open()) as index_behind:
        # The state before the removals.
        index_behind.apply([summary(4), by("h", summary(4))], {})
        harvest("replay", "--gatherer", "g")
        assert index_behind.count(parse("gatherer:h")) == 1
        index_behind.apply([by("h", removal(4, 4))], {})
        index_behind.refresh()
        assert says(world) == (wanted, none) == (wanted, {})
        harvest("replay", "--gatherer", "h")
        replayed, none = says(world)
    assert not none
    harvest("index", "rebuild")
    assert says(world)[0] == replayed


def test_replay_during_writes_and_searches_loses_nothing(world: World, index: str, tmp_path: Path) -> None:
    """Partial replays in place and whole ones elsewhere, during writes and searches: nothing is lost or comes back."""
    lasting = [summary(number) for number in range(1_000, 1_100)]
    world.send([*stream(), *lasting])
    urls = {one.url for one in lasting}
    reader = world.open()

    def write(number: int) -> None:
        world.send([summary(number % 90, 10 + number), removal(number * 7 % 90, 11 + number)])

    def search(number: int) -> None:
        page = reader.search(parse("url:* type:text"), limit=1_000, copies=True)
        assert urls <= {hit.url for hit in page.hits}

    with world.sink():
        world.until_read()
        world.until(lambda: reader.count(Every()) == 263 + len(lasting))
        with meanwhile(write), meanwhile(search):
            for words in (["--since", "1h"], ["--gatherer", "g"], ["--to", f"{index}-b"], ["--since", "1h", "--gatherer", "g"]):
                harvest("replay", *words, "--quiet")
        world.until_read()
        world.until(lambda: sum(reader.offsets().values()) == world.broker.lag("nobody", world.topic, 4))
    reader.refresh()
    assert answers(reader) == expected(world, tmp_path / "data")
    reader.close()
    harvest("replay", "--to", f"{index}-b")
    assert says(world, f"{index}-b-main") == says(world)


def test_partial_replay_reaches_index_rebuilt_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the index is rebuilt during a partial replay in place, the new index gets the part too."""
    world.send(stream())
    harvest("index", "rebuild")
    before = says(world)
    points: list[str] = []

    def swapped(point: str) -> None:
        points.append(point)
        if len(points) == 1:
            with closing(world.open()) as index:
                building = aliases.begin_rebuild(index.node, world.alias, "20260101t000000")
                with closing(OpenSearchIndex(world.url, building)) as new:
                    new.apply([], before[1])
                aliases.swap(index.node, world.alias, "20260101t000000")

    monkeypatch.setattr(replay, "fault", swapped)
    said = harvest("replay", "--since", "1").stderr
    assert says(world) == before
    assert said.splitlines()[-1] == f"harvest: {len(stream())} records read, 300 applied, 263 summaries held"


def test_foreign_alias_or_index_is_refused(world: World, index: str, search_client: OpenSearch) -> None:
    """A foreign alias or index of the wanted name is refused and stays; a partial replay does not create an index."""
    world.send(stream(8))
    search_client.indices.create(index=f"{index}-b-main")
    search_client.indices.create(index=f"{index}-their", body={"aliases": {f"{index}-c-main": {}}})
    for name in ("b", "c"):
        said = harvest("replay", "--to", f"{index}-{name}", code=1).stderr
        assert said == f"harvest: {index}-{name}-main is in use for something else at {world.url}\n"
    assert set(search_client.indices.get(index=f"{index}*")) == {f"{index}-b-main", f"{index}-their"}
    said = harvest("replay", "--since", "1h", code=1).stderr
    assert said.startswith("harvest: there is no such index at http://127.0.0.1")
    assert said.endswith("make it first: harvest index rebuild\n")
    assert set(search_client.indices.get(index=f"{index}*")) == {f"{index}-b-main", f"{index}-their"}
