"""All deciding stages together on a real Kafka end in the state of the simulator, with ticks and kills."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from processors.identity import frontier_key
from schemas.records import CrawlEvent, Link, Record, Root, Summary, Tick, View
from streams.simulator import Simulator
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import TopologySettings, topology
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import HEADERS, JUNK, STAGES, Flow, edges, final, newest
from tests.streams.kafka.standing import TOPOLOGY, inputs
from tests.streams.topology.conftest import World, fetcher, plain_essence
from tests.streams.topology.worlds import SITE, TOP, disturb, furnish

JUNKED = [topic.name for name in STAGES for topic in inputs(TOPOLOGY.stage(name))]
CUTS = {"r1": "rows:2", "r2": "outputs:3"}
"""Where the workers of each run are killed."""
VIEWS = {
    "r1": (View(path="licences", query=f"in:{TOP}licences/", time=1), View(path="licences/few", query="type:RawText", time=2)),
    "r2": (View(path="licences/few", query=f'url:"{TOP}licences/2"', time=3), View(path="all", query="type:RawText", time=4)),
}
"""Views that each run begins with: some are made, and one is changed."""
PARTITIONS = 4


@pytest.fixture
def world() -> World:
    """Files, copies, archives and pages; one family is so large that its answers wait for a tick."""
    world = World()
    furnish(world, random.Random(3), 12)
    for number in range(12):
        world.write(f"licences/{number}", b"the same licence")
    return world


@pytest.fixture
def flow(broker: Broker, root: Path, tmp_path: Path, world: World) -> Iterator[Flow]:
    """The topics, and edges over the world."""
    flow = Flow(broker, root, tmp_path, PARTITIONS, edges(fetcher(world), plain_essence))
    yield flow
    flow.close()


def seeds(run: str, now: int) -> Iterator[tuple[int, Record]]:
    """The records that start a run, with their partitions."""
    for url in (TOP, SITE):
        root = Root(url=url, run=run, host="" if url.startswith("file:") else url.rstrip("/"))
        kind, host = "folder" if url == TOP else "page", frontier_key(url)
        for p in range(PARTITIONS):
            links = (Link(url=url, kind=kind),) if p == partition_of(host.encode(), PARTITIONS) else ()  # type: ignore[arg-type]
            yield p, CrawlEvent(kind="seeded", host=host, time=now, url=url, root=root, links=links)


@pytest.mark.slow(60)
@pytest.mark.timeout(900)  # a minute on two idle cores
def test_stages_end_in_state_of_simulator(flow: Flow, world: World) -> None:
    """Killed in each of two runs, with views, and given undecodable records, stages end as in the simulator, and reject only those.

    The kills of one run are before the outputs are durable, those of the other behind them.
    """
    simulator = Simulator(topology(TopologySettings()), PARTITIONS, random.Random(5).randrange, fetcher(world), plain_essence)
    for run, cut in CUTS.items():
        before = flow.killed.total()
        for stage in STAGES:
            if stage in flow.workers:
                flow.workers[stage].kill()
                flow.workers[stage].wait()
            flow.start(stage, cut)
        for topic in JUNKED:
            flow.junk(topic, PARTITIONS - 1)
        for partition, event in seeds(run, simulator.now):
            flow.send("crawl", event, partition)
            simulator.send("crawl", event, partition)
        for partition, view in product(range(PARTITIONS), VIEWS[run]):
            flow.send("views.main", view, partition)
            simulator.send("views.main", view, partition)
        simulator.run()
        flow.rest()
        for topic in ("summaries", "broker.main"):
            assert final(flow.records[topic]) == final(simulator.records(topic)), topic
        tagged = {path for one in newest(flow.records["broker.main"]).values() if isinstance(one, Summary) for path in one.views}
        assert tagged >= {view.path for view in VIEWS[run]}
        assert flow.killed.total() > before
        disturb(world, random.Random(7))
    stages = [TOPOLOGY.stage(name) for name in STAGES]
    places = {(topic.name, stage.name) for stage in stages for topic in inputs(stage)}
    assert flow.letters() == {(topic, PARTITIONS - 1, stage, JUNK, tuple(HEADERS)) for topic, stage in places}
    assert all(flow.killed[stage] or flow.ended[stage] for stage in STAGES), (flow.killed, flow.ended)
    ticks = [record for _, record in flow.records["dedup.main.ticks"]]
    assert any(isinstance(tick, Tick) and tick.ends["holders.main"] for tick in ticks)
