"""Listings from the network in the simulator: children compared by their marks, from many seeds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from processors.essence.listings.listing_format import Coverage
from processors.frontier import listed
from processors.frontier.listed import PROBES
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier as decide
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Record, Root
from streams.simulator import MemoryRows, Simulator
from tests.streams.topology.listed_worlds import Site, check_rows
from tests.streams.topology.worlds import Found, Seeded, check, frontier, gather, summaries

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World

HOST = "http://a.test"
INDEX, MAP1, MAP2 = f"{HOST}/index", f"{HOST}/map1", f"{HOST}/map2"
OTHER = "http://b.test/page"
LIMITS: dict[str, Any] = {"urls": 0}


def furnish(site: Site, rng: random.Random, size: int = 12) -> None:
    """Fill a site: two listings that share some pages, and an index of both."""
    for number in range(size):
        site.page(f"{HOST}/p{number}")
    urls = sorted(site.versions)
    site.lists = {INDEX: [MAP1, MAP2], MAP1: rng.sample(urls, size * 2 // 3), MAP2: rng.sample(urls, size // 3)}
    site.write_lists()


def disturb(site: Site, rng: random.Random) -> None:
    """Change, remove and add pages; drop some from listings, though they still exist; add some."""
    for url in rng.sample(sorted(site.versions), len(site.versions) // 2):
        what = rng.randrange(4)
        if what == 0 and url in site.world.pages:
            site.page(url)
        elif what == 1:
            site.world.pages.pop(url, None)
            for children in site.lists.values():
                if url in children:
                    children.remove(url)
        elif what == 2:
            for children in (site.lists[MAP1], site.lists[MAP2]):
                if url in children and len(children) > 2:
                    children.remove(url)
        else:
            new = f"{HOST}/n{len(site.versions)}"
            site.page(new)
            site.lists[rng.choice((MAP1, MAP2))].append(new)
    site.write_lists()


def expected(site: Site, simulator: Simulator) -> Found:
    """Return what the database must hold: all that is listed and exists; of open listings, also what was gathered and exists."""
    listed = {url for children in site.lists.values() for url in children} | {INDEX}
    kept = {s.url for s in summaries(simulator)} if site.coverage == "open" else set()
    return {url: site.body(url) for url in site.world.pages if url in listed | kept}


@pytest.mark.parametrize("coverage", ["open", "complete"])
@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", [*range(5), 1089, 1122, 1134])  # the last: a crash before the request of a page that ends
def test_final_state_is_that_of_the_listings(seed: int, partitions: int, coverage: Coverage, world: World, seeded: Seeded) -> None:
    """Despite crashes and repeats, the database holds what listings and pages are, run after run; so do the derived rows."""
    rng = random.Random(seed)
    site = Site(world, coverage)
    furnish(site, rng)
    simulator = site.simulator(partitions, rng, doubt=False, credit=1 + seed % 3, lastmod=("auto", "trust")[seed % 2])
    for run in ("r1", "r2", "r3", "r4"):
        gather(simulator, run, seeded, roots=(INDEX,), crashes=10, anywhere=True, **LIMITS)
        check(simulator, expected(site, simulator))
        check_rows(simulator)
        disturb(site, rng)


@pytest.mark.parametrize("coverage", ["open", "complete", "rolling"])
@pytest.mark.parametrize("seed", range(4))
def test_second_run_requests_listings_alone(seed: int, coverage: Coverage, world: World, seeded: Seeded) -> None:
    """A run over what has not changed requests the root and listings without a mark; a changed page alone is requested then."""
    rng = random.Random(seed)
    site = Site(world, coverage)
    furnish(site, rng)
    simulator = site.simulator(2, rng, lastmod="trust")
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    pages = set(site.asked) - {f"{HOST}/robots.txt"}
    assert pages == {INDEX, MAP1, MAP2, *site.lists[MAP1], *site.lists[MAP2]}
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert set(site.asked) == {INDEX, MAP1, MAP2}
    changed = site.lists[MAP1][0]
    site.page(changed)
    site.write_lists()
    site.asked.clear()
    gather(simulator, "r3", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert set(site.asked) == {INDEX, MAP1, MAP2, changed}
    check_rows(simulator)


def test_lying_marks_are_found_out_within_two_runs(world: World, seeded: Seeded) -> None:
    """Where a sample had changed under an equal mark, all pages of the host are requested by the next run."""
    site = Site(world, lying=True)
    for number in range(10 * PROBES):
        site.page(f"{HOST}/p{number}")
    site.lists = {INDEX: sorted(site.versions)}
    site.write_lists()
    simulator = site.simulator(1, random.Random(1))
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    for number in range(0, 10 * PROBES, 2):
        site.page(f"{HOST}/p{number}")
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert 2 < site.asked.total() < 3 * PROBES
    gather(simulator, "r3", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    check(simulator, expected(site, simulator))


def test_sample_whose_change_is_stated_is_no_lie(world: World, seeded: Seeded) -> None:
    """Marks count still where all samples that had changed are of pages whose change the listing states, once it is read."""
    site = Site(world)
    for number in range(10 * PROBES):
        site.page(f"{HOST}/p{number}")
    site.lists = {INDEX: [MAP1], MAP1: sorted(site.versions)}
    site.write_lists()
    simulator = site.simulator(1, random.Random(1), credit=1_000)
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    changed = {f"{HOST}/p{number}" for number in range(0, 10 * PROBES, 2)}
    for url in changed:
        site.page(url)
    site.write_lists()
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert changed <= set(site.asked)
    check(simulator, expected(site, simulator))
    for run in ("r3", "r4"):
        site.asked.clear()
        gather(simulator, run, seeded, roots=(INDEX,), anywhere=True, **LIMITS)
        assert 2 < site.asked.total() < 3 * PROBES


def test_sample_that_is_gone_is_a_lie(world: World, seeded: Seeded) -> None:
    """Where a sample that is gone is still listed, all pages of the host are requested by the next run."""
    site = Site(world, lying=True)
    for number in range(10 * PROBES):
        site.page(f"{HOST}/p{number}")
    site.lists = {INDEX: sorted(site.versions)}
    site.write_lists()
    simulator = site.simulator(1, random.Random(1), doubt=False)
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    for number in range(0, 10 * PROBES, 2):
        del world.pages[f"{HOST}/p{number}"]
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert 2 < site.asked.total() < 3 * PROBES
    gather(simulator, "r3", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert {s.url for s in summaries(simulator)} == {INDEX, *world.pages}


def test_mark_stated_after_the_request_counts_from_the_next_one(world: World, seeded: Seeded) -> None:
    """Pages that links lead to, requested before their listing was read, are requested once more, and then left to their marks."""
    site = Site(world)
    for number in range(2 * PROBES):
        site.page(f"{HOST}/p{number}")
    world.pages[f"{HOST}/"] = ("start", tuple(sorted(site.versions)))
    world.robots[HOST] = f"Sitemap: {MAP1}\n".encode()
    simulator = site.simulator(1, random.Random(1), credit=1_000, lastmod="trust")
    gather(simulator, "r1", seeded, roots=(f"{HOST}/",), **LIMITS)
    site.lists = {MAP1: sorted(site.versions)}
    site.write_lists()
    for run, requested in (("r2", site.versions), ("r3", site.versions), ("r4", ()), ("r5", ())):
        site.asked.clear()
        gather(simulator, run, seeded, roots=(f"{HOST}/",), **LIMITS)
        assert set(site.asked) == {f"{HOST}/", MAP1, *requested}
    site.page(f"{HOST}/p0")
    site.write_lists()
    gather(simulator, "r6", seeded, roots=(f"{HOST}/",), **LIMITS)
    assert set(site.asked) == {f"{HOST}/", MAP1, f"{HOST}/p0"}


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_change_during_a_run_is_found_by_the_next(seed: int, partitions: int, world: World, seeded: Seeded) -> None:
    """Pages change at any time of a run, before or after a listing states it; the next run finds all, despite crashes."""
    rng = random.Random(seed)
    site = Site(world)
    furnish(site, rng, size=30)
    pages = sorted(site.versions)
    world.pages[f"{HOST}/"] = ("start", tuple(pages))
    world.robots[HOST] = f"Sitemap: {INDEX}\n".encode()
    simulator = site.simulator(partitions, rng, doubt=False, credit=1 + seed % 3 * 20, lastmod="trust")
    answer = simulator.fetch

    def restless(request: FetchRequest, now: int) -> Sequence[Record]:
        if rng.random() < 0.5:
            for url in rng.sample(pages, 5):
                site.page(url)
            site.write_lists()
        return answer(request, now)

    for run in range(0, 8, 2):
        simulator.fetch = restless
        gather(simulator, f"r{run}", seeded, roots=(f"{HOST}/",), crashes=5, **LIMITS)
        simulator.fetch = answer
        gather(simulator, f"r{run + 1}", seeded, roots=(f"{HOST}/",), crashes=5, **LIMITS)
        check(simulator, {url: site.body(url) for url in world.pages})
        check_rows(simulator)


def test_honest_marks_stay_trusted(world: World, seeded: Seeded) -> None:
    """Samples that have not changed leave the marks in force: each run requests about one page in 20."""
    sampled = honest_samples(world, seeded)
    assert all(0 < len(each) < 3 * PROBES for each in sampled)
    assert sampled[0] != sampled[1]


def test_samples_of_a_large_root_are_limited(world: World, seeded: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages a root has, about as many samples as the limit are requested."""
    monkeypatch.setattr(listed, "SAMPLES", 2)
    assert sum(map(len, honest_samples(world, seeded))) < 10


def honest_samples(world: World, seeded: Seeded) -> list[frozenset[str]]:
    """Return the samples of two runs over 200 pages that have not changed."""
    site = Site(world)
    for number in range(10 * PROBES):
        site.page(f"{HOST}/p{number}")
    site.lists = {INDEX: sorted(site.versions)}
    site.write_lists()
    simulator = site.simulator(1, random.Random(1))
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    sampled = []
    for run in ("r2", "r3"):
        site.asked.clear()
        gather(simulator, run, seeded, roots=(INDEX,), anywhere=True, **LIMITS)
        sampled.append(frozenset(site.asked) - {INDEX})
    return sampled


def test_ignored_marks_save_nothing(world: World, seeded: Seeded) -> None:
    """With `lastmod` ignore, a run requests every page."""
    site = Site(world)
    furnish(site, random.Random(1))
    simulator = site.simulator(1, random.Random(1), lastmod="ignore")
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    first = set(site.asked)
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert set(site.asked) == first - {f"{HOST}/robots.txt"}


def test_marks_of_another_host_do_not_count(world: World, seeded: Seeded) -> None:
    """A listing cannot keep pages of another host from being requested."""
    site = Site(world)
    site.page(OTHER)
    site.page(f"{HOST}/own")
    site.lists = {INDEX: [OTHER, f"{HOST}/own"]}
    site.write_lists()
    simulator = site.simulator(3, random.Random(1), lastmod="trust")
    for run in ("r1", "r2"):
        site.asked.clear()
        gather(simulator, run, seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert set(site.asked) == {INDEX, OTHER}


@pytest.mark.parametrize("coverage", ["open", "complete"])
def test_gone_listing_lists_nothing(coverage: Coverage, world: World, seeded: Seeded) -> None:
    """Where an inner listing is gone, its children are removed if it was complete, and requested if it was open."""
    site = Site(world, coverage)
    furnish(site, random.Random(2))
    simulator = site.simulator(2, random.Random(2), lastmod="trust", doubt=False)
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    alone = set(site.lists[MAP2]) - set(site.lists[MAP1])
    assert alone
    site.lists.pop(MAP2)
    del world.pages[MAP2]
    site.lists[INDEX].remove(MAP2)
    site.write_lists()
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    held = {s.url for s in summaries(simulator)}
    assert (alone <= set(site.asked), alone <= held) == ((True, True) if coverage == "open" else (False, False))
    assert MAP2 not in held
    check_rows(simulator)


def test_suspicious_shrinking_is_in_doubt(world: World, seeded: Seeded) -> None:
    """A complete listing that loses more than its share of the root holds its children until they return."""
    site = Site(world, "complete")
    furnish(site, random.Random(3), size=60)
    simulator = site.simulator(2, random.Random(3), lastmod="trust")
    gather(simulator, "r1", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    before = {s.url for s in summaries(simulator)}
    lists = {url: list(children) for url, children in site.lists.items()}
    site.lists[MAP1] = site.lists[MAP1][:1]
    site.write_lists()
    gather(simulator, "r2", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert {s.url for s in summaries(simulator)} == before
    assert any(known.held for known in frontier(simulator).values())
    site.lists = lists
    site.write_lists()
    gather(simulator, "r3", seeded, roots=(INDEX,), anywhere=True, **LIMITS)
    assert {s.url for s in summaries(simulator)} == before
    assert not any(known.held or known.missing for known in frontier(simulator).values())


def test_listings_that_name_each_other_end(world: World, seeded: Seeded) -> None:
    """Listings that name themselves and each other are requested once a run."""
    site = Site(world)
    site.page(f"{HOST}/p")
    site.lists = {INDEX: [INDEX, MAP1], MAP1: [MAP2, INDEX, f"{HOST}/p"], MAP2: [MAP1, MAP2]}
    site.write_lists()
    simulator = site.simulator(2, random.Random(1))
    for run in ("r1", "r2"):
        gather(simulator, run, seeded, roots=(INDEX,), anywhere=True, **LIMITS)
        assert max(site.asked.values()) == int(run[1])


@pytest.mark.parametrize(("sitemaps", "found"), [("auto", {MAP1}), ("yes", {MAP1, f"{HOST}/sitemap.xml"}), ("no", set())])
@pytest.mark.parametrize("seed", range(4))
def test_sitemaps_of_robots_txt(seed: int, sitemaps: str, found: set[str], world: World, seeded: Seeded) -> None:
    """The sitemaps that robots.txt names are requested before the pages, for each root of that server, on that server alone."""
    site = Site(world)
    furnish(site, random.Random(seed))
    site.lists[f"{HOST}/sitemap.xml"] = []
    site.write_lists()
    site.page(f"{HOST}/")
    world.pages[f"{HOST}/"] = ("start", ("http://b.test/",))
    site.page("http://b.test/")
    sitemap = f"User-agent: *\nDisallow: /x\nSitemap: {MAP1}\nsitemap: http://c.test/map\n".encode()
    world.robots |= {HOST: sitemap, "http://b.test": b"Sitemap: http://b.test/map\n"}
    simulator = site.simulator(3, random.Random(seed), sitemaps=sitemaps)
    gather(simulator, "r1", seeded, roots=(f"{HOST}/",), crashes=4, anywhere=bool(seed % 2), **LIMITS)
    listings = {MAP1, MAP2, INDEX, f"{HOST}/sitemap.xml", "http://b.test/map"}
    assert set(site.asked) & listings == found
    assert ("http://c.test/map" in site.asked) == (sitemaps != "no" and bool(seed % 2))
    assert set(site.lists[MAP1]) <= set(site.asked) or sitemaps == "no"
    # A second root on a server whose robots.txt is known already.
    site.asked.clear()
    gather(simulator, "r2", seeded, roots=(f"{HOST}/p0",), **LIMITS)
    assert set(site.asked) & listings == found


@pytest.mark.parametrize("feeds", [True, False])
def test_feed_of_a_page_is_a_listing_if_the_settings_say_so(*, feeds: bool) -> None:
    """What a page names as a feed is requested as a listing if feeds are wanted, else as a page."""
    rows, root = MemoryRows(), Root(url=f"{HOST}/", run="r1")
    event = CrawlEvent(kind="discovered", host=HOST, time=1, url=root.url, root=root, links=(Link(url=MAP1, kind="listing"),))
    list(decide(rows, event, Origin("crawl", 0, 1), FrontierSettings(feeds=feeds)))
    ((_, _, known),) = Table(rows).all()
    assert known.kind == ("listing" if feeds else "page")


@pytest.mark.parametrize("seed", range(3))
def test_children_on_other_hosts_are_subject_to_the_rule_of_the_root(seed: int, world: World, seeded: Seeded) -> None:
    """A root that stays on its server refuses the children of its listings on other servers, and gathers its own."""
    site = Site(world)
    site.page(OTHER)
    site.page(f"{HOST}/own")
    site.lists = {INDEX: [OTHER, f"{HOST}/own"]}
    site.write_lists()
    simulator = site.simulator(3, random.Random(seed))
    root = Root(url=INDEX, run="r1", host=HOST, urls=0)
    owner = simulator.owner("crawl", seeded(root, 0, owner=True))
    for partition in range(3):
        simulator.send("crawl", seeded(root, simulator.now, owner=partition == owner), partition)
    simulator.run()
    assert set(site.asked) == {f"{HOST}/robots.txt", INDEX, f"{HOST}/own"}
    refused = [e for _, e in simulator.records("crawl") if isinstance(e, CrawlEvent) and e.kind == "refused"]
    assert [(e.reason, [link.url for link in e.links]) for e in refused] == [("not on the server of the root", [OTHER])]
