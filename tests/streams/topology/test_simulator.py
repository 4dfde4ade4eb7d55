"""The whole topology in the simulator, from many seeds, against an oracle that walks the world plainly."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processors.frontier.rows import Table
from processors.frontier.stage import FrontierSettings
from schemas.records import Annotation, CrawlEvent, FetchRequest, Removed, Root, Summary
from streams.simulator import Simulator, rejections
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.conftest import fetcher, plain_essence
from tests.streams.topology.worlds import (
    SITE,
    TOP,
    Make,
    Seeded,
    archived,
    check,
    check_circles,
    disturb,
    frontier,
    furnish,
    gather,
    move,
    oracle,
    reachable_only,
    summaries,
)

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", range(16))
def test_final_state_is_a_function_of_the_world(
    seed: int, partitions: int, world: World, make_simulator: Make, seeded: Seeded
) -> None:
    """Whatever moves, crashes or comes twice, database and Broker end as a plain walk of the world says, run after run."""
    rng = random.Random(seed)
    simulator = make_simulator(world, partitions, rng)
    furnish(world, rng, 14)
    for run in ("r1", "r2", "r3"):
        move(world, rng)
        gather(simulator, run, seeded, crashes=20)
        check_circles(world, simulator)
        # A last run without a crash: what a repeated fetch met while the world stood still is the world.
        check(simulator, reachable_only(world, oracle(world), simulator))
        disturb(world, rng)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", [*range(60), 700855, 701113])  # the last: a crash between two writes about one page
def test_pages_that_move(seed: int, partitions: int, world: World, seeded: Seeded) -> None:
    """Pages on two hosts that move to one another, asked for one or two at a time: all are held, and none stays on its way."""
    rng = random.Random(seed)
    urls = [SITE, *(f"http://{rng.choice('ab')}.test/p{number}" for number in range(8))]
    for url in urls:
        world.pages[url] = (f"page {url}", tuple(rng.sample(urls, 4)))
    decided = topology(TopologySettings(frontier=FrontierSettings(credit=1 + seed % 2)))
    simulator = Simulator(decided, partitions, rng.randrange, fetcher(world), plain_essence)
    for run in ("r1", "r2"):
        world.moves = {url: rng.choice([other for other in urls if other != url]) for url in urls[1:] if rng.random() < 0.6}
        gather(simulator, run, seeded, roots=(SITE,), crashes=10, anywhere=True)
        states = {url: known.state for url, known in frontier(simulator).items()}
        assert set(states.values()) <= {"ok", "gone", "failed"}
        check_circles(world, simulator)
        # What has failed, in a circle, keeps the summary that it had.
        found = {each.url for each in summaries(simulator) if states[each.url] != "failed"}
        assert found == set(reachable_only(world, oracle(world, anywhere=True), simulator))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_choice_drawn(data: st.DataObject, make_world: Callable[[], World], make_simulator: Make, seeded: Seeded) -> None:
    """The same, every choice drawn by hypothesis, which finds the smallest run that breaks it."""
    world = make_world()
    world.write("a", b"same")
    world.write("d/b", b"same")
    world.write("c.tar", {"m": b"same", "n": b"other"})
    drawn = random.Random(0)
    drawn.randrange = lambda n: data.draw(st.integers(0, n - 1)) if n > 1 else 0  # type: ignore[method-assign,assignment,misc]
    simulator = make_simulator(world, 2, drawn)
    gather(simulator, "r1", seeded, roots=(TOP,), crashes=4)
    check(simulator, oracle(world))
    world.write("c.tar", {"n": b"other"})
    del world.files["a"]
    gather(simulator, "r2", seeded, roots=(TOP,), crashes=4)
    check(simulator, oracle(world))


@pytest.mark.parametrize("seed", range(4))
def test_versions_rise(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """Without a crash, the publish counter of every OID rises from record to record."""
    rng = random.Random(seed)
    simulator = make_simulator(world, 4, rng)
    furnish(world, rng, 14)
    for run in ("r1", "r2"):
        gather(simulator, run, seeded)
        disturb(world, rng)
    last: dict[str, int] = defaultdict(int)
    for record in archived(simulator):
        assert record.published > last[record.oid]
        last[record.oid] = record.published


def test_unchanged_run_summarizes_nothing(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A second run over an unchanged world makes no summary and no removal."""
    simulator = make_simulator(world, 4, random.Random(1))
    furnish(world, random.Random(1), 20)
    gather(simulator, "r1", seeded)
    before = len(simulator.records("made"))
    last = max(r.version for _, r in simulator.records("fetches") if isinstance(r, FetchRequest))
    gather(simulator, "r2", seeded)
    assert len(simulator.records("made")) == before
    again = [r.url for _, r in simulator.records("fetches") if isinstance(r, FetchRequest) and r.version > last]
    assert len(set(again)) == len(again)
    check(simulator, oracle(world))


def test_root_removed(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """What a removed root alone asked for goes; what another root asks for stays."""
    simulator = make_simulator(world, 4, random.Random(2))
    furnish(world, random.Random(2), 20)
    gather(simulator, "r1", seeded, roots=(TOP, TOP + "d2/", SITE))
    root = Root(url=TOP, run="r2")
    simulator.broadcast("crawl", lambda _: seeded(root, simulator.now, owner=False, kind="unseeded"))
    simulator.run()
    check(simulator, oracle(world, top="d2/"))
    gather(simulator, "r3", seeded, roots=(TOP + "d2/",))
    check(simulator, oracle(world, top="d2/"))
    gather(simulator, "r4", seeded, roots=(TOP,))
    check(simulator, oracle(world))


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_one_of_two_roots_removed(seed: int, moves: bool, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """What both roots lead to, by a page that they share or by one that moves, stays when either of them goes."""
    simulator = make_simulator(world, 2, random.Random(seed))
    shared, end, two = SITE + "shared", SITE + "end", SITE + "two"
    world.pages |= {SITE: ("home", (shared,)), two: ("two", (shared,)), end: ("end", ())}
    if moves:
        world.moves[shared] = end
    else:
        world.pages[shared] = ("shared", (end,))
    gather(simulator, "r1", seeded, roots=(SITE, two), crashes=4, anywhere=True)
    ended, left = (two, SITE) if seed % 2 else (SITE, two)
    root = Root(url=ended, run="r2")
    simulator.broadcast("crawl", lambda _: seeded(root, simulator.now, owner=False, kind="unseeded"))
    simulator.run(crashes=simulator.crashes + 4)
    assert {each.url for each in summaries(simulator)} == {left, end} | ({shared} - world.moves.keys())


@pytest.mark.parametrize("seed", range(8))
def test_root_removed_while_it_is_gathered(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """What is on its way when its root is removed leaves nothing behind, whatever crashes."""
    rng = random.Random(seed)
    simulator = make_simulator(world, 4, rng)
    furnish(world, rng, 14)
    for url in (TOP, SITE):
        root = Root(url=url, run="r1", host="" if url == TOP else url.rstrip("/"))
        owner = simulator.owner("crawl", seeded(root, 0, owner=True))
        events = [seeded(root, simulator.now, owner=p == owner) for p in range(4)]
        simulator.broadcast("crawl", events.__getitem__)
    simulator.step(300, crashes=4)
    for url in (TOP, SITE):
        ended = Root(url=url, run="r1")
        simulator.broadcast("crawl", lambda _, root=ended: seeded(root, simulator.now, owner=False, kind="unseeded"))  # type: ignore[misc]
    simulator.run(crashes=12)
    check(simulator, {})
    gather(simulator, "r2", seeded, crashes=8)
    check(simulator, oracle(world))


def test_transient_failure_removes_nothing(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A URL that fails is rejected after its tries, keeps its summary before its time-to-live has passed, and goes after it."""
    simulator = make_simulator(world, 1, random.Random(3))
    world.pages[SITE] = ("home", (SITE + "a",))
    world.pages[SITE + "a"] = ("a", ())
    gather(simulator, "r1", seeded)
    world.failing.add(SITE + "a")
    gather(simulator, "r2", seeded)
    check(simulator, oracle(world))
    assert [r.url for r in rejections(simulator)] == [SITE + "a"]
    simulator.now += Root(url="", run="").ttl * 1000 + 1
    gather(simulator, "r3", seeded)
    del world.pages[SITE + "a"]
    check(simulator, oracle(world))


def test_limits(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """Depth and URL limits hold, what they refuse is an event with its rule, and a run with wider limits takes it."""
    simulator = make_simulator(world, 1, random.Random(4))
    for i in range(6):
        world.pages[SITE + str(i) if i else SITE] = (f"page {i}", (SITE + str(i + 1),))
    gather(simulator, "r1", seeded, roots=(SITE,), depth=2)
    urls = {s.url for s in summaries(simulator)}
    assert urls == {SITE, SITE + "1", SITE + "2"}
    refused = [
        (e.reason, e.links[0].url) for _, e in simulator.records("crawl") if isinstance(e, CrawlEvent) and e.kind == "refused"
    ]
    assert refused == [("depth limit of the root", SITE + "3")]
    gather(simulator, "r2", seeded, roots=(SITE,), depth=10, urls=5)
    assert len(simulator.compacted("summaries")) == 5
    gather(simulator, "r3", seeded, roots=(SITE,), depth=10, urls=0)
    check(simulator, oracle(world))


def test_annotations_survive(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A manual attribute is joined without fetching, kept apart, and survives every re-summarizing."""
    simulator = make_simulator(world, 4, random.Random(5))
    world.write("a.tar", {"m": b"one"})
    gather(simulator, "r1", seeded, roots=(TOP,))
    url = TOP + "a.tar#m"
    simulator.send("annotations", Annotation(url=url, object_url=TOP + "a.tar", time=1, attributes={"subject": ("x",)}))
    objects = len(simulator.records("objects"))
    simulator.run()
    assert len(simulator.records("objects")) == objects
    world.write("a.tar", {"m": b"two"})
    gather(simulator, "r2", seeded, roots=(TOP,))
    held = {r.url: r for r in simulator.compacted("broker.main").values() if isinstance(r, Summary)}
    assert held[url].annotations == {"subject": ("x",)}
    assert held[url].attributes["text"] == (b"two".hex(),)
    assert held[TOP + "a.tar"].annotations == {}


def test_large_family_is_coalesced(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A thousand equal files cost a few answers each, and one is canonical with the first hundred listed."""
    simulator = make_simulator(world, 1, random.Random(6))
    for i in range(1000):
        world.write(f"f{i:04}", b"licence")
    gather(simulator, "r1", seeded, roots=(TOP,))
    check(simulator, oracle(world))
    assert len(simulator.records("copies.main")) < 4000
    del world.files["f0000"]
    gather(simulator, "r2", seeded, roots=(TOP,))
    check(simulator, oracle(world))


def test_removed_is_a_record(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A file that is gone leaves a Removed with its reason in the database and in the Broker."""
    simulator = make_simulator(world, 1, random.Random(7))
    world.write("a", b"x")
    world.write("b.tar", {"m": b"1", "n": b"2"})
    gather(simulator, "r1", seeded, roots=(TOP,))
    del world.files["a"]
    world.write("b.tar", {"n": b"2"})
    gather(simulator, "r2", seeded, roots=(TOP,))
    for topic in ("summaries", "broker.main"):
        removed = {r.url: r.reason for r in simulator.compacted(topic).values() if isinstance(r, Removed)}
        assert removed == {TOP + "a": "gone", TOP + "b.tar#m": "member_missing"}


def test_delay_without_end(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A robots.txt that asks for an endless delay holds up no run."""
    simulator = make_simulator(world, 1, random.Random(8))
    world.pages[SITE] = ("home", (SITE + "a",))
    world.pages[SITE + "a"] = ("a", ())
    world.robots[SITE.rstrip("/")] = b"User-agent: *\nCrawl-delay: 1e30\n"
    gather(simulator, "r1", seeded, roots=(SITE,))
    check(simulator, oracle(world))
    assert rejections(simulator) == []


@pytest.mark.parametrize("wait", [0, 86_400_000])
def test_host_that_is_not_there(wait: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A host that cannot be looked up is given up for the run, however long it asks to wait, and asked again by the next."""
    simulator = make_simulator(world, 1, random.Random(9))
    world.pages[SITE] = ("home", ())
    world.away[SITE.rstrip("/")] = wait
    gather(simulator, "r1", seeded, roots=(SITE,))
    assert [r.url for r in rejections(simulator)] == [SITE]
    world.away.clear()
    gather(simulator, "r2", seeded, roots=(SITE,))
    check(simulator, oracle(world))


@pytest.mark.parametrize("seed", range(8))
def test_host_that_goes_away_in_the_middle(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """What robots.txt forbids is no dead letter while its host fails, whenever its turn would have come."""
    simulator = make_simulator(world, 1, random.Random(seed))
    pages = [f"{SITE}{'private/' if number % 2 else ''}{number}" for number in range(60)]
    world.pages |= {SITE: ("home", tuple(pages)), **{url: (url, ()) for url in pages}}
    world.robots[SITE.rstrip("/")] = b"User-agent: *\nDisallow: /private/\n"
    gather(simulator, "r1", seeded, roots=(SITE,))
    world.failing |= {SITE, *pages}
    world.away[SITE.rstrip("/")] = 0
    gather(simulator, "r2", seeded, roots=(SITE,), crashes=4)
    assert {r.url for r in rejections(simulator)} == {url for url in (SITE, *pages) if "/private/" not in url}


@pytest.mark.parametrize("seed", range(60))
def test_root_in_a_root(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """When the outer one of two roots goes, what the inner one asks for stays, whoever found it, whatever crashes."""
    rng = random.Random(seed)
    simulator = make_simulator(world, 4, rng)
    world.write("a", b"1")
    world.write("d/b", b"2")
    both = (TOP, TOP + "d/")
    gather(simulator, "r1", seeded, roots=both, crashes=4)
    world.write("d/new", b"3")
    world.write("d/e/deep", b"4")
    gather(simulator, "r2", seeded, roots=both, crashes=4)
    ended = Root(url=TOP, run="r3")
    simulator.broadcast("crawl", lambda _: seeded(ended, simulator.now, owner=False, kind="unseeded"))
    simulator.run(crashes=simulator.crashes + 4)
    check(simulator, oracle(world, top="d/"))


def test_root_that_a_listing_hides(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A root that the listing of its folder does not select stays: no listing ends it."""
    simulator = make_simulator(world, 1, random.Random(10))
    world.write("a", b"1")
    world.write("hidden/b", b"2")
    world.hidden.add("hidden")
    for run in ("r1", "r2", "r3"):
        gather(simulator, run, seeded, roots=(TOP, TOP + "hidden/"))
        check(simulator, oracle(world))
    del world.files["hidden/b"]
    gather(simulator, "r4", seeded, roots=(TOP, TOP + "hidden/"))
    check(simulator, oracle(world))


def test_limit_with_room_again(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """What a root's limit of URLs refused is taken by a later run, once there is room."""
    simulator = make_simulator(world, 1, random.Random(11))
    for name in "abcdef":
        world.write(name, name.encode())
    gather(simulator, "r1", seeded, roots=(TOP,), urls=5)
    held = {s.url.removeprefix(TOP) for s in summaries(simulator)}
    assert len(held) == 4  # the folder counts too
    for name in sorted(held)[:3]:
        del world.files[name]
    gather(simulator, "r2", seeded, roots=(TOP,), urls=5)
    gather(simulator, "r3", seeded, roots=(TOP,), urls=5)
    check(simulator, oracle(world))


def test_at_rest_nothing_waits_for_ever(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """After a run with crashes no URL is queued or asked for, and no host is being looked up."""
    for seed in range(8):
        rng = random.Random(seed)
        simulator = make_simulator(world, 2, rng)
        furnish(world, rng, 10)
        gather(simulator, "r1", seeded, crashes=20)
        for rows in simulator.rows("frontier"):
            table = Table(rows)
            assert {known.state for _, _, known in table.all()} <= {"ok", "gone", "refused", "failed"}
            assert not table.busy(simulator.now + 10**9)
            assert not [h for h in map(table.host, {host for host, _, _ in table.all()}) if h.asking or h.flying]
        world.files.clear()
        world.pages.clear()
