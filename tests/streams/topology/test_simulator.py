"""The whole topology in the simulator, from many seeds, against an oracle that is a plain walk of the world."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processors.frontier.requests import FORBIDDEN
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
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
    """Despite moves, crashes and repeats, database and Broker end as a plain walk of the world, run after run."""
    rng = random.Random(seed)
    simulator = make_simulator(world, partitions, rng)
    furnish(world, rng, 14)
    for run in ("r1", "r2", "r3"):
        move(world, rng)
        gather(simulator, run, seeded, crashes=20)
        check_circles(world, simulator)
        # A last run without a crash: the world did not change, so repeated fetches returned its present state.
        check(simulator, reachable_only(world, oracle(world), simulator))
        disturb(world, rng)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", [*range(60), 700855, 701113])  # the last: a crash between two writes about one page
def test_moving_pages_reach_final_state(seed: int, partitions: int, world: World, seeded: Seeded) -> None:
    """Pages on two hosts that move to one another, with one or two requests at a time, all end in a final state."""
    rng = random.Random(seed)
    urls = [SITE, *(f"http://{rng.choice('ab')}.test/p{number}" for number in range(8))]
    for url in urls:
        world.pages[url] = (f"page {url}", tuple(rng.sample(urls, 4)))
    decided = topology(TopologySettings(frontier=FrontierSettings(credit=1 + seed % 2, part=1 + seed % 5)))
    simulator = Simulator(decided, partitions, rng.randrange, fetcher(world), plain_essence)
    for run in ("r1", "r2"):
        world.moves = {url: rng.choice([other for other in urls if other != url]) for url in urls[1:] if rng.random() < 0.6}
        gather(simulator, run, seeded, roots=(SITE,), crashes=10, anywhere=True)
        states = {url: known.state for url, known in frontier(simulator).items()}
        assert set(states.values()) <= {"ok", "gone", "failed"}
        check_circles(world, simulator)
        # A failed page, one in a circle, keeps its summary.
        found = {each.url for each in summaries(simulator) if states[each.url] != "failed"}
        assert found == set(reachable_only(world, oracle(world, anywhere=True), simulator))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_final_state_with_every_choice_drawn(
    data: st.DataObject, make_world: Callable[[], World], make_simulator: Make, seeded: Seeded
) -> None:
    """The same with every choice drawn by hypothesis, which finds the smallest run that fails."""
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
def test_publish_counters_rise_without_crash(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
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


def test_removed_root_takes_only_its_own_urls(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """URLs that only a removed root asked for are removed; those that another root asks for stay."""
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
def test_urls_of_remaining_root_stay(seed: int, moves: bool, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """When one of two roots ends, URLs reachable from the other stay, by a shared page or by one that moves."""
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
def test_root_removed_during_run_leaves_nothing(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A root removed during its run leaves nothing behind, despite crashes."""
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
    """A failing URL is rejected after its tries; its summary stays until its time-to-live ends, and is then removed."""
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


def test_depth_and_url_limits_hold(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """Depth and URL limits hold; each refused URL is an event with the rule, and a run with wider limits gathers it."""
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


def test_annotations_survive_new_summaries(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """An annotation is joined without a fetch, kept apart, and survives every new summary."""
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
    """A thousand equal files cost a few answers each; one is canonical, with the first hundred copies listed."""
    simulator = make_simulator(world, 1, random.Random(6))
    for i in range(1000):
        world.write(f"f{i:04}", b"licence")
    gather(simulator, "r1", seeded, roots=(TOP,))
    check(simulator, oracle(world))
    assert len(simulator.records("copies.main")) < 4000
    del world.files["f0000"]
    gather(simulator, "r2", seeded, roots=(TOP,))
    check(simulator, oracle(world))


def test_missing_file_leaves_removed_record(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A missing file leaves a Removed record with its reason in the database and in the Broker."""
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


def test_endless_crawl_delay_does_not_delay_run(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A robots.txt with an endless delay does not delay a run."""
    simulator = make_simulator(world, 1, random.Random(8))
    world.pages[SITE] = ("home", (SITE + "a",))
    world.pages[SITE + "a"] = ("a", ())
    world.robots[SITE.rstrip("/")] = b"User-agent: *\nCrawl-delay: 1e30\n"
    gather(simulator, "r1", seeded, roots=(SITE,))
    check(simulator, oracle(world))
    assert rejections(simulator) == []


@pytest.mark.parametrize("wait", [0, 86_400_000])
def test_unresolvable_host_is_given_up_until_next_run(wait: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A host that cannot be resolved is given up for the run; the first run after the wait that it asks for asks it again."""
    simulator = make_simulator(world, 1, random.Random(9))
    world.pages[SITE] = ("home", ())
    world.away[SITE.rstrip("/")] = wait
    gather(simulator, "r1", seeded, roots=(SITE,))
    assert [r.url for r in rejections(simulator)] == [SITE]
    world.away.clear()
    simulator.now += wait
    gather(simulator, "r2", seeded, roots=(SITE,))
    check(simulator, oracle(world))


@pytest.mark.parametrize("seed", range(8))
def test_forbidden_urls_of_failing_host_are_no_dead_letters(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """While a host fails, URLs that its robots.txt forbids become no dead letters, whatever their place in the queue."""
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
def test_inner_root_keeps_its_urls_when_outer_root_ends(seed: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """When the outer of two nested roots ends, the URLs of the inner one stay, whoever found them, despite crashes."""
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


def test_root_left_out_of_listing_stays(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A root that the listing of its folder leaves out stays: no listing ends it."""
    simulator = make_simulator(world, 1, random.Random(10))
    world.write("a", b"1")
    world.write("hidden/b", b"2")
    world.hidden.add("hidden")
    for run in ("r1", "r2", "r3"):
        gather(simulator, run, seeded, roots=(TOP, TOP + "hidden/"))
        check(simulator, oracle(world))
    del world.files["hidden/b"]
    gather(simulator, "r4", seeded, roots=(TOP, TOP + "hidden/"), accept=1 << 60)
    check(simulator, oracle(world))


def test_refused_url_is_gathered_once_there_is_room(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """A URL refused by a root's limit is gathered by a later run, once there is room."""
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


def test_no_url_or_host_is_pending_after_run(world: World, make_simulator: Make, seeded: Seeded) -> None:
    """After a run with crashes no URL is queued or requested, and no host is being resolved."""
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


@pytest.mark.parametrize("crashes", [0, 20])
def test_forbidden_urls_are_refused_in_parts(world: World, make_simulator: Make, seeded: Seeded, crashes: int) -> None:
    """Many URLs that robots.txt forbids are refused by several events, so that no event takes long; none is forgotten."""
    links = tuple(f"{SITE}private/{number}" for number in range(300))
    world.pages = {SITE: ("start", (*links, f"{SITE}last"))} | {f"{SITE}last": ("last", ())}
    world.robots[SITE.rstrip("/")] = b"User-agent: *\nDisallow: /private/\n"
    simulator = make_simulator(world, 1, random.Random(11))
    gather(simulator, "r1", seeded, roots=(SITE,), crashes=crashes)
    check(simulator, oracle(world))
    events = [event for _, event in simulator.records("crawl") if isinstance(event, CrawlEvent) and event.reason == "robots.txt"]
    assert {link.url for event in events for link in event.links} == set(links)
    assert max(len(event.links) for event in events) <= FORBIDDEN
