"""The limit of URLs of a root over all partitions, in the simulator."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processors.frontier.budget import FULL
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import Output
from processors.frontier.stage import frontier as decide
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Root
from streams.operations.roots import seeded as run_events
from streams.operations.roots import unseeded as end_events
from streams.simulator import MemoryRows, Simulator
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.conftest import World, fetcher, plain_essence
from tests.streams.topology.worlds import SITE, TOP, frontier, summaries

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = [1, 4, 12]
HOSTS = 20


def simulate(world: World, partitions: int, choose: Callable[[int], int]) -> Simulator:
    """A simulator over a world."""
    return Simulator(topology(TopologySettings()), partitions, choose, fetcher(world), plain_essence)


def folders(world: World, count: int) -> int:
    """Fill a world with folders of three files each; return the number of URLs, the top folder included."""
    for number in range(count):
        for name in "abc":
            world.write(f"d{number}/{name}", f"{number} {name}".encode())
    return 1 + 4 * count


def hosts(world: World, count: int) -> int:
    """Fill a world with hosts of three pages each, all linked from one page; return the number of URLs."""
    world.pages[SITE] = ("top", tuple(f"http://h{number}.test/" for number in range(count)))
    for number in range(count):
        pages = [f"http://h{number}.test/{name}" for name in ("", "a", "b")]
        world.pages |= {page: (page, tuple(pages)) for page in pages}
    return 1 + 3 * count


def begin(simulator: Simulator, run: str, url: str, urls: int) -> None:
    """Begin a run of a root with a limit of URLs."""
    root = Root(url=url, run=run, depth=-1, urls=urls)
    for partition, event in run_events(root, simulator.partitions, simulator.now):
        simulator.send("crawl", event, partition)


def gather(simulator: Simulator, run: str, url: str, urls: int, crashes: int = 0) -> None:
    """Run a root with a limit of URLs to the end."""
    begin(simulator, run, url, urls)
    simulator.run(crashes=simulator.crashes + crashes, steps=400_000)


def end(simulator: Simulator, run: str, url: str) -> None:
    """End a root."""
    for partition, event in end_events(Root(url=url, run=run), simulator.partitions, simulator.now):
        simulator.send("crawl", event, partition)
    simulator.run()


def counted(simulator: Simulator, url: str) -> int:
    """URLs that a root counts, over all partitions."""
    counts = sum(Table(rows).counted(url) for rows in simulator.rows("frontier"))
    assert counts == sum(known.counts for known in frontier(simulator).values() if url in known.roots)
    return counts


def refused(simulator: Simulator) -> set[str]:
    """URLs refused by the limit."""
    events = [event for _, event in simulator.records("crawl") if isinstance(event, CrawlEvent)]
    return {link.url for event in events if event.reason == FULL and event.kind == "refused" for link in event.links}


WORLDS = [(folders, TOP, HOSTS), (hosts, SITE, HOSTS)]


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize(("fill", "url", "size"), WORLDS)
@pytest.mark.parametrize("seed", range(6))
def test_limit_holds_over_all_partitions(
    fill: Callable[[World, int], int], url: str, size: int, partitions: int, seed: int, world: World
) -> None:
    """A root of many folders or hosts counts exactly its limit of URLs, or all that it has, despite crashes; so does a refresh."""
    total = fill(world, size)
    for limit in (7, total // 2, total - 1, total, total + 1):
        simulator = simulate(world, partitions, random.Random(seed).randrange)
        gather(simulator, "r1", url, limit, crashes=15 * (seed % 3))
        assert counted(simulator, url) == min(limit, total), limit
        known = set(frontier(simulator))
        assert len(known) + len(refused(simulator) - known) <= total
        assert bool(refused(simulator)) == (limit < total)
        gather(simulator, "r2", url, limit, crashes=15 * (seed % 3))
        assert counted(simulator, url) == min(limit, total)
        assert {known.state for known in frontier(simulator).values()} == {"ok"}
        assert known == set(frontier(simulator))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_limit_holds_with_every_choice_drawn(data: st.DataObject) -> None:
    """The same with every choice drawn by hypothesis, which finds the smallest run that fails."""
    world = World()
    total = folders(world, 4)
    drawn = lambda n: data.draw(st.integers(0, n - 1)) if n > 1 else 0  # noqa: E731
    simulator = simulate(world, 3, drawn)
    limit = data.draw(st.integers(1, total + 1))
    for run in ("r1", "r2"):
        gather(simulator, run, TOP, limit, crashes=4)
        assert counted(simulator, TOP) == min(limit, total)


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("seed", range(6))
def test_room_is_used_by_any_partition(partitions: int, seed: int, world: World) -> None:
    """URLs that vanish leave room for those refused before, in whatever partition they are."""
    total = folders(world, HOSTS)
    simulator = simulate(world, partitions, random.Random(seed).randrange)
    gather(simulator, "r1", TOP, total // 2)
    held = sorted(each.url.removeprefix(TOP) for each in summaries(simulator))
    gone = random.Random(seed).sample(held, len(held) // 4)
    for name in gone:
        del world.files[name]
    left = total - len(gone) - sum(not world.listing(f"d{number}/") for number in range(HOSTS))
    for run in ("r2", "r3", "r4"):
        gather(simulator, run, TOP, total // 2, crashes=5)
        assert counted(simulator, TOP) <= total // 2
    assert counted(simulator, TOP) == min(total // 2, left)


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("seed", range(6))
def test_limit_changes(partitions: int, seed: int, world: World) -> None:
    """A raised limit admits more; a lowered one removes and admits nothing; none admits all; a new one counts what is known."""
    total = folders(world, HOSTS)
    simulator = simulate(world, partitions, random.Random(seed).randrange)
    for number, (limit, more, expected) in enumerate(
        (
            (20, 0, 20),
            (40, 0, 40),
            (30, 0, 40),
            (0, 0, total),
            (total + 6, 4, total + 6),
            (0, 0, total + 16),
            (total, 2, total + 16),
        )
    ):
        folders(world, HOSTS + more + (4 if expected > total else 0) * (more == 0))
        gather(simulator, f"r{number}", TOP, limit, crashes=4)
        assert counted(simulator, TOP) == expected, number


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_ended_root_leaves_no_budget(partitions: int, world: World) -> None:
    """A root that is ended and added again has its whole limit."""
    total = folders(world, HOSTS)
    simulator = simulate(world, partitions, random.Random(partitions).randrange)
    gather(simulator, "r1", TOP, 30, crashes=3)
    end(simulator, "r2", TOP)
    assert not [key for rows in simulator.rows("frontier") for key in rows.rows if key[:2] in (b"b|", b"i|", b"r|")]
    gather(simulator, "r3", TOP, 50, crashes=3)
    assert counted(simulator, TOP) == min(50, total)


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_joined_urls_count_for_both_roots(partitions: int, world: World) -> None:
    """URLs known by another root count towards the limit of a root that finds them too."""
    total = folders(world, HOSTS)
    simulator = simulate(world, partitions, random.Random(partitions).randrange)
    gather(simulator, "r1", TOP, 0)
    for name in "abcdefgh":
        world.write(f"d0/x/{name}", name.encode())
    gather(simulator, "r2", TOP + "d0/", 6, crashes=3)
    assert counted(simulator, TOP + "d0/") == 6
    assert counted(simulator, TOP) >= total


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_low_depth_comes_first(partitions: int, world: World) -> None:
    """A limited root has all URLs of one depth before the first of the depth below, but for those that home alone found."""
    for number in range(HOSTS):
        for name in "ab":
            world.write(f"d{number}/e/{name}", b"x" + name.encode())
    simulator = simulate(world, partitions, random.Random(3).randrange)
    gather(simulator, "r1", TOP, 1 + HOSTS)
    depths = [known.depth for known in frontier(simulator).values()]
    assert sorted(depths) == [0] + [1] * HOSTS


@pytest.mark.parametrize("partitions", [4, 12])
@pytest.mark.parametrize(("fill", "url", "size"), WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_limit_is_never_exceeded(
    fill: Callable[[World, int], int], url: str, size: int, partitions: int, seed: int, world: World
) -> None:
    """At no time does a root count more than its limit, while objects vanish and appear between its runs and within them."""
    fill(world, size)
    rng = random.Random(seed)
    simulator = simulate(world, partitions, rng.randrange)
    for run in range(4):
        limit = 30 + 5 * run
        begin(simulator, f"r{run}", url, limit)
        crashes = simulator.crashes + 10
        while not simulator.step(40, crashes):
            assert counted(simulator, url) <= limit
            for found in (world.files, world.pages):
                name = rng.choice(sorted(found)) if found else SITE
                if name != SITE and rng.random() < 0.1:
                    del found[name]
        fill(world, size)
    gather(simulator, "r8", url, 45)
    gather(simulator, "r9", url, 45)
    assert counted(simulator, url) == 45


def test_repeated_claims_change_nothing() -> None:
    """Home answers a repeated claim as before, ignores an earlier one, and grants no more than its limit."""
    root, rows, offsets = Root(url=TOP, run="1", depth=-1, urls=10), MemoryRows(), iter(range(100))

    def give(event: CrawlEvent) -> list[int]:
        outputs = decide(rows, event, Origin("crawl", 0, next(offsets)), FrontierSettings())
        return [each.credits for each in outputs if isinstance(each, CrawlEvent) and each.kind == "granted"]

    def claim(version: int, partition: int, used: int, total: int) -> CrawlEvent:
        asker, place = f"{TOP}{partition}/", dict[str, Any](partition=partition, used=used, credits=total)
        return CrawlEvent(kind="claimed", host="file:///", time=2, version=version, root=root, asker=asker, **place)

    ((_, begun),) = run_events(root, 1, 1)
    assert isinstance(begun, CrawlEvent)
    assert give(begun) == []
    assert give(claim(5, 1, 0, 4)) == [4]
    assert give(claim(5, 1, 0, 4)) == [4]
    assert give(claim(5, 2, 0, 8)) == [5]  # the root itself is counted
    assert give(claim(4, 1, 0, 9)) == []
    assert give(claim(5, 1, 0, 4)) == [4]
    assert give(claim(6, 1, 1, 1)) == [1]
    assert give(claim(5, 2, 0, 8)) == [5]
    assert give(claim(6, 2, 5, 8)) == [8]


def test_root_on_one_host_needs_no_claims(world: World) -> None:
    """A root on one host costs no events beyond those of an unlimited one."""
    for number in range(30):
        world.pages[f"{SITE}{number}" if number else SITE] = (str(number), (f"{SITE}{number + 1}",))
    simulator = simulate(world, 4, random.Random(1).randrange)
    for run in ("r1", "r2"):
        gather(simulator, run, SITE, 20)
    assert counted(simulator, SITE) == 20
    assert not [e for _, e in simulator.records("crawl") if isinstance(e, CrawlEvent) and e.kind in ("claimed", "granted")]


def test_home_answers_its_own_claim() -> None:
    """A run that an earlier version began, without a budget, gets the URLs that home finds: they do not wait for the next run."""
    root, rows, offsets = Root(url=TOP, run="1", depth=-1, urls=10), MemoryRows(), iter(range(100))

    def give(event: CrawlEvent) -> list[Output]:
        return list(decide(rows, event, Origin("crawl", 0, next(offsets)), FrontierSettings()))

    ((_, begun),) = run_events(root, 1, 1)
    assert isinstance(begun, CrawlEvent)
    give(begun)
    rows.delete(b"b|" + TOP.encode())
    links = (Link(url=f"{TOP}d/a", kind="file"),)
    (claim,) = give(CrawlEvent(kind="discovered", host=f"{TOP}d/", time=2, url=f"{TOP}d/", root=root, links=links))
    assert isinstance(claim, CrawlEvent)
    assert (claim.kind, claim.host) == ("claimed", begun.host)
    (grant,) = give(claim)
    assert isinstance(grant, CrawlEvent)
    assert [each.url for each in give(grant) if isinstance(each, FetchRequest)] == [links[0].url]
