"""Roots with plans in the simulator: scope, rewriting, local mapping and hours, with crashes and from many seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from processors.frontier.plans.options import RootOptions
from processors.identity import frontier_key
from schemas.plan import NOT_LOCAL
from schemas.records import FetchRequest, LocalMap, Plan, Record, Root
from streams.operations.roots import seeded
from streams.simulator import Simulator
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.conftest import World, event, fetcher, plain_essence
from tests.streams.topology.worlds import SITE, frontier, summaries

if TYPE_CHECKING:
    from collections.abc import Iterable

HOUR = 3_600_000
PLAN = Plan(
    hosts=("a.test", "b.test", "*.c.test"),
    deny=("/secret",),
    rewrite=("session.1", "tracking.1"),
    map=(LocalMap(url=f"{SITE}docs/", folder="file:///srv/"),),
    missing="fetch",
)
BASES = [SITE, "http://b.test/", "http://x.c.test/", "http://d.test/"]


def variant(url: str, rng: random.Random) -> str:
    """A spelling of a URL that the rules of PLAN rewrite to it."""
    return url + rng.choice(["", ";jsessionid=1", ";jsessionid=2", "?utm_source=x", "?gclid=7"])


def furnish(world: World, rng: random.Random, size: int) -> None:
    """Fill a world with pages that link to spellings of one another, some of which only answer under one with a session."""
    names = [f"{rng.choice(BASES)}{rng.choice(['', 'docs/', 'secret/'])}p{number}" for number in range(size)]
    world.pages.clear()
    world.moves.clear()
    for url in (SITE, *names):
        world.pages[url] = (f"page {url} {rng.random()}", tuple(variant(each, rng) for each in rng.sample(names, 4)))
    for url in rng.sample(names, size // 5):
        if "/docs/" not in url:
            world.moves[url] = f"{url};jsessionid=9"
            world.pages[f"{url};jsessionid=9"] = world.pages.pop(url)


def walk(world: World, plan: Plan) -> set[str]:
    """The URLs of the pages that a root with a plan reaches."""
    options, root = RootOptions(plan), Root(url=SITE, run="", host=SITE.rstrip("/"))
    found: set[str] = set()
    todo = [SITE]
    while todo:
        url = todo.pop()
        url = world.moves.get(url, url)
        if url in found or url not in world.pages:
            continue
        found.add(url)
        links = (options.rewriting.rewritten(link) for link in world.pages[url][1])
        todo += [link for link in links if not options.scope.refusal(link, frontier_key(link), 1, root)]
    return found


class Edge:
    """The fetch edge over a world: mapped files are there unless their name is odd; keeps the requests that it answered."""

    def __init__(self, world: World) -> None:
        self.answer: Callable[[FetchRequest, int], Iterable[Record]] = fetcher(world)
        self.requests: list[FetchRequest] = []

    def __call__(self, request: FetchRequest, now: int) -> list[Record]:
        self.requests.append(request)
        if request.local and self.is_missing(request.url):
            return [event(request, now, "gone", reason=NOT_LOCAL)]
        return list(self.answer(request, now))

    @staticmethod
    def is_missing(url: str) -> bool:
        """Whether the mapped folder does not have the file of a URL."""
        return int(url.rpartition("p")[2] or 0) % 2 == 1


def begin(simulator: Simulator, run: str, plan: Plan | None) -> None:
    """Begin a run of the site."""
    root = Root(url=SITE, run=run, host=SITE.rstrip("/"))
    for partition, each in seeded(root, simulator.partitions, simulator.now, plan):
        simulator.send("crawl", each, partition)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_final_state_is_what_the_plan_reaches(seed: int, partitions: int, world: World) -> None:
    """Despite crashes and redelivered events, a root gathers exactly what its plan reaches, run after run, under one URL each."""
    rng = random.Random(seed)
    edge = Edge(world)
    simulator = Simulator(topology(TopologySettings()), partitions, rng.randrange, edge, plain_essence)
    furnish(world, rng, 16)
    for run, plan in (("1", PLAN), ("2", None), ("3", PLAN)):
        begin(simulator, run, plan)
        simulator.run(crashes=simulator.crashes + 12)
        assert {each.url for each in summaries(simulator)} == walk(world, PLAN)
        assert {known.state for known in frontier(simulator).values()} <= {"ok", "gone"}
    asked = [each for each in edge.requests if each.kind == "object"]
    assert not [each.url for each in asked if "/secret" in each.url or "d.test" in each.url]
    mapped = [each for each in asked if each.url.startswith(f"{SITE}docs/")]
    assert not [each.url for each in mapped if not each.local and not edge.is_missing(each.url)]
    assert {each.local for each in asked if each not in mapped} == {""}


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_narrowed_scope_ends_requests(seed: int, partitions: int, world: World) -> None:
    """Once the scope is narrower, no page outside of it is requested; once it is wider again, all are gathered as before."""
    rng = random.Random(seed)
    edge = Edge(world)
    simulator = Simulator(topology(TopologySettings()), partitions, rng.randrange, edge, plain_essence)
    furnish(world, rng, 16)
    narrow = replace(PLAN, deny=("/secret", "/p[0-4]", "b.test"))
    scope, root = RootOptions(narrow).scope, Root(url=SITE, run="", host=SITE.rstrip("/"))
    for run, plan in (("1", PLAN), ("2", narrow), ("3", PLAN)):
        edge.requests.clear()
        begin(simulator, run, plan)
        simulator.run(crashes=simulator.crashes + 12)
        if plan is narrow:
            asked = {each.url: each.host for each in edge.requests if each.kind == "object"}
            assert not [url for url, host in asked.items() if scope.refusal(url, host, int(url != SITE), root)]
    assert {each.url for each in summaries(simulator)} == walk(world, PLAN)


@pytest.mark.parametrize("seed", range(6))
def test_hosts_are_asked_in_their_hours_only(seed: int, world: World) -> None:
    """Runs that begin outside of the hours end without a request; the start of the window wakes the hosts, after crashes too."""
    rng = random.Random(seed)
    edge = Edge(world)
    simulator = Simulator(topology(TopologySettings()), 1 + seed % 3, rng.randrange, edge, plain_essence)
    furnish(world, rng, 10)
    simulator.now = 72 * HOUR + rng.randrange(19) * HOUR
    plan = Plan(hours="20:00-22:00 +01:00", hosts=PLAN.hosts, rewrite=PLAN.rewrite)
    begin(simulator, "1", plan)
    simulator.run(crashes=6)
    assert not edge.requests
    simulator.now = 72 * HOUR + 19 * HOUR - 1
    simulator.run(crashes=simulator.crashes + 6)
    assert {each.url for each in summaries(simulator)} == walk(world, plan)
    assert all(19 <= each.time // HOUR % 24 < 21 for each in edge.requests)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_formerly_mapped_urls_are_paced(seed: int, partitions: int, world: World) -> None:
    """While its plan changes, under crashes, a page that robots.txt forbids is read from its folder, never requested."""
    rng = random.Random(seed)
    edge = Edge(world)
    simulator = Simulator(topology(TopologySettings()), partitions, rng.randrange, edge, plain_essence)
    furnish(world, rng, 16)
    world.robots[SITE.rstrip("/")] = b"User-agent: *\nDisallow: /docs/\n"
    mapped = replace(PLAN, missing="")
    for run in range(6):
        begin(simulator, str(run), replace(mapped, map=()) if run % 2 else mapped)
        simulator.step(rng.randrange(120), crashes=simulator.crashes + 12)
    begin(simulator, "6", mapped)
    simulator.run(crashes=simulator.crashes + 12)
    asked = [each for each in edge.requests if each.kind == "object" and not each.local]
    assert not [each for each in asked if each.url.startswith(f"{SITE}docs/") or not each.address]
    assert all(known.state in ("ok", "gone", "refused") for known in frontier(simulator).values())
