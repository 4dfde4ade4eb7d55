"""`harvest index rebuild` on a real Kafka and a real OpenSearch, during writes and searches."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from processors.broker.definition import MAIN
from processors.query import parse
from schemas.query import Every
from sinks.index.opensearch import aliases
from sinks.index.opensearch import search as opensearch_search
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from streams.cli.app import app
from streams.kafka.client.log import KafkaLog
from streams.kafka.sink import buffer
from streams.operations import rebuild
from streams.operations.selection import Selection
from streams.store.data_folder import index_folder
from streams.topology.flow import TopologySettings, topology
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.test_index_sink import PARTITIONS, World, answers, removal, stream, summary
from tests.streams.kafka.threads import beside

if TYPE_CHECKING:
    from pathlib import Path

    from opensearchpy import OpenSearch


@pytest.fixture
def world(broker: Broker, opensearch: str, index: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Topics and an index, with small batches and short waits; the program is configured for them."""
    return a_world(broker, opensearch, index, monkeypatch)


def a_world(broker: Broker, opensearch: str, index: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world of the fixture of that name."""
    monkeypatch.setattr(buffer, "BATCH", 30)
    monkeypatch.setattr(rebuild, "BATCH", 40)
    monkeypatch.setattr(rebuild, "LOOK", 0.1)
    made = World(broker, opensearch, f"{index}-main")
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", broker.address)
    monkeypatch.setenv("HARVEST_KAFKA_PREFIX", made.cluster.prefix)
    monkeypatch.setenv("HARVEST_GATHERER", "g")
    monkeypatch.setenv("HARVEST_INDEX_URL", opensearch)
    monkeypatch.setenv("HARVEST_INDEX_NAME", index)
    return made


def harvest(*words: str, code: int = 0) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def expected(world: World, folder: Path) -> Mapping[str, object]:
    """The answers of an embedded index filled from the current topic."""
    folder.mkdir()
    harvest_from = CliRunner(env={"HARVEST_INDEX_URL": "", "HARVEST_DATA": str(folder)})
    result = harvest_from.invoke(app, ["index", "rebuild"])
    assert result.exit_code == 0, (result.output, result.exception)
    with closing(TantivyIndex(index_folder(folder, MAIN), writable=False)) as index:
        return answers(index)


def meanwhile(work: Callable[[int], None]) -> AbstractContextManager[None]:
    """Call `work` with rising numbers in a thread until the block ends; its error is raised."""

    def repeat(stop: threading.Event) -> None:
        # Not at full speed: the machine is shared with the code under test.
        for number in itertools.takewhile(lambda _: not stop.wait(0.05), itertools.count()):
            work(number)

    return beside(repeat)


def served(client: OpenSearch, world: World) -> str:
    """The index behind the alias; fails if there is another one."""
    assert list(client.indices.get_alias(name=world.alias)) == list(client.indices.get(index=f"{world.alias}*"))
    return str(*client.indices.get_alias(name=world.alias))


def test_rebuild_during_writes_and_searches_loses_nothing(world: World, search_client: OpenSearch, tmp_path: Path) -> None:
    """During two rebuilds with concurrent writes and searches, no search fails or misses a result, and no write is lost."""
    lasting = [summary(number) for number in range(1_000, 1_150)]
    world.send([*stream(), *lasting])
    urls = {one.url for one in lasting}

    def write(number: int) -> None:
        world.send([summary(number % 90, 10 + number), removal(number * 7 % 90, 11 + number)])

    reader = world.open()

    def missed() -> set[str]:
        return urls - {hit.url for hit in reader.search(parse("url:* type:text"), limit=1_000, copies=True).hits}

    def search(number: int) -> None:
        assert not missed()

    with world.sink():
        world.until_read()
        world.until(lambda: not missed())
        first = served(search_client, world)
        with meanwhile(write), meanwhile(search):
            harvest("index", "rebuild")
            second = served(search_client, world)
            harvest("index", "rebuild")
        world.until_read()
        world.until(lambda: sum(reader.offsets().values()) == world.broker.lag("nobody", world.topic, PARTITIONS))
    reader.refresh()
    assert answers(reader) == expected(world, tmp_path / "data")
    assert len({first, second, served(search_client, world)}) == 3
    reader.close()


def test_one_of_concurrent_rebuilds_succeeds(world: World, search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several concurrent rebuilds one succeeds; the others fail with a message of one line, and leave no index behind."""
    barrier, begin = threading.Barrier(3), aliases.begin_rebuild

    def together(*args: Any) -> str:
        try:
            return begin(*args)
        finally:
            barrier.wait(60)

    monkeypatch.setattr(rebuild, "begin_rebuild", together)
    world.send(stream())
    with closing(world.open()):
        for first in (100, 200, 300, 400):
            with ThreadPoolExecutor(3) as pool:
                done = list(pool.map(rebuilt, itertools.repeat(world, 3), itertools.count(first)))
            told = [line for line in done if line]
            assert len(told) == 2, done
            assert set(told) == {f"another rebuild of {world.alias} has begun at {world.url}"}
            served(search_client, world)


def test_search_completes_across_two_swaps(world: World, search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search begun before a rebuild completes although another rebuild begins meanwhile; then its index is dropped."""
    world.send(stream())
    monkeypatch.setattr(opensearch_search, "SCROLL", 50)
    harvest("index", "rebuild")
    with closing(world.open()) as index:
        wanted = list(index.scroll(Every()))
        going = index.scroll(Every())
        found = [next(going)]
        monkeypatch.setattr(rebuild, "LOOKS", 0)
        with monkeypatch.context() as killed:
            killed.setattr(rebuild, "drop", lambda *_: None)
            harvest("index", "rebuild")
        harvest("index", "rebuild")
        assert [*found, *going] == wanted
    harvest("index", "rebuild")
    served(search_client, world)


def rebuilt(world: World, number: int) -> str:
    """Rebuild the index; returns the error message, or ""."""
    with KafkaLog(world.cluster, topology(TopologySettings())) as log:
        try:
            rebuild.on_server(log, Selection("broker.main"), world.url, world.alias, f"20260101t000000{number}")
        except OSError as error:
            return str(error)
    return ""


def test_sink_completes_prematurely_swapped_index(world: World, search_client: OpenSearch, tmp_path: Path) -> None:
    """A rebuild that swaps in an incomplete index loses nothing: the sink goes on from the offsets of the new index."""
    world.send(stream())
    with world.sink():
        world.until_read()
        with closing(world.open()) as index:
            building = aliases.begin_rebuild(index.node, world.alias, "20260101t000000")
            with closing(OpenSearchIndex(world.url, building)) as new:
                new.apply([], {})
            aliases.swap(index.node, world.alias, "20260101t000000")
            world.send([summary(1, 50)])
            world.until(lambda: sum(index.offsets().values()) == len(stream()) + 1)
            index.refresh()
            assert answers(index) == expected(world, tmp_path / "data")


def test_two_rebuilds_give_equal_indexes(world: World, search_client: OpenSearch) -> None:
    """Two rebuilds from one topic give equal indexes, without a sink too; the remains of a killed rebuild are dropped."""
    world.send(stream())
    with closing(world.open()) as index:
        aliases.make(index.node, f"{world.alias}-20260101t000000")
        harvest("index", "rebuild")
        first = answers(index)
        served(search_client, world)
        harvest("index", "rebuild")
        assert answers(index) == first
        assert sum(index.offsets().values()) == len(stream())


def test_index_with_wrong_count_is_dropped(world: World, search_client: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new index whose number of summaries differs from its topic's is dropped; the old one stays in service."""
    world.send(stream())
    before = world.open()
    counting = OpenSearchIndex.count
    monkeypatch.setattr(OpenSearchIndex, "count", lambda index, query: counting(index, query) + 1)
    said = harvest("index", "rebuild", code=1).stderr
    assert said.splitlines()[-1] == "harvest: the new index has 264 summaries, its topic 263: the old one stays"
    assert served(search_client, world) == f"{world.alias}-0"
    before.close()


def test_search_and_show_agree_on_server_and_folder(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`search` and `show` give the same output for an index on a server as for one in the folder, made from one topic."""
    world.send(stream())
    harvest("index", "rebuild")

    def said() -> list[Any]:
        lines = [json.loads(line) for line in harvest("search", "whale OR squid", "--limit", "500", "--json").stdout.splitlines()]
        return [{**line, "score": 0} for line in lines]

    on_server = said()
    summaries = harvest("show", "http://a/2", "--json").stdout
    assert harvest("show", summary(2).oid, "--json").stdout == summaries
    assert "was removed" in harvest("show", "http://a/4", code=1).stderr
    assert "no summary of it" in harvest("show", "http://a/9999", code=1).stderr
    monkeypatch.setenv("HARVEST_INDEX_URL", "")
    monkeypatch.setenv("HARVEST_DATA", str(tmp_path))
    harvest("index", "rebuild")
    in_folder = said()
    assert len(on_server) > 200
    assert sorted(map(str, in_folder)) == sorted(map(str, on_server))


def test_missing_index_is_reported_with_remedy(world: World) -> None:
    """Without an index the commands say so in one line, with the commands that make one on a cluster."""
    for command in ("search", "whale"), ("show", "http://a/1"):
        said = harvest(*command, code=1).stderr
        assert said.startswith("harvest: there is no such index at http://127.0.0.1")
        assert said.endswith("; harvest worker index.main fills it, or rebuild it: harvest index rebuild\n")
