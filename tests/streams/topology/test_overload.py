"""A server that asks for fewer requests, in the simulator: its host is held, and every page is reached in the end."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import pytest

from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.state import HostState
from schemas.records import CrawlEvent, FetchRequest, Record
from streams.fetch.answers import Answers, FetchError
from streams.simulator import Simulator
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.conftest import fetcher, plain_essence
from tests.streams.topology.worlds import SITE, Seeded, check, gather, oracle

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World


def overloaded(world: World, rng: random.Random, times: int) -> Callable[[FetchRequest, int], list[Record]]:
    """The fetch edge over a world whose site answers a number of requests for pages with 503 or 429."""
    answer, busy, fine = fetcher(world), set[int](), set[int]()

    def fetch(request: FetchRequest, now: int) -> list[Record]:
        # A repeated request has the same answer: otherwise the object of its first answer could be lost.
        if request.kind == "object" and request.version not in busy | fine:
            (busy if len(busy) < times and rng.random() < 0.5 else fine).add(request.version)
        if request.version in busy:
            status, wait = rng.choice([(503, 0), (429, 0), (503, 30_000)])
            return Answers(request, now).failed(FetchError("busy", retryable=True, wait=wait, status=status))
        records = answer(request, now)
        latency = rng.choice([10, 2_000])
        return [msgspec.structs.replace(r, latency=latency) if isinstance(r, CrawlEvent) else r for r in records]

    return fetch


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_overloaded_site_is_gathered_whole(seed: int, partitions: int, world: World, seeded: Seeded) -> None:
    """Whatever is redelivered or lost, all pages of a site that is overloaded for a while are gathered."""
    rng = random.Random(seed)
    urls = [SITE, *(f"{SITE}p{n}" for n in range(12))]
    for url in urls:
        world.pages[url] = (f"page {url}", tuple(rng.sample(urls, 3)))
    settings = FrontierSettings(tries=100, backoff=0, pause=rng.choice([0, 1_000, 20_000]), part=3)
    decided = topology(TopologySettings(frontier=settings))
    simulator = Simulator(decided, partitions, rng.randrange, overloaded(world, rng, 8), plain_essence)
    for run in range(6):
        # A run does not wait for a host at the longest pause; the next one goes on.
        gather(simulator, f"r{run}", seeded, roots=(SITE,), crashes=2)
        simulator.now += 120_000
    gather(simulator, "r9", seeded, roots=(SITE,))
    check(simulator, oracle(world))
    sites = [site for rows in simulator.rows("frontier") for _, site in Table(rows).hosts() if site != HostState()]
    assert all(site.flying == () for site in sites)
