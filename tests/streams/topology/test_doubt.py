"""Removals in doubt: what vanishes like an unmounted disk or a broken server is held until that is settled."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier as frontier_stage
from processors.identity import url_digest
from schemas.ports import Origin
from schemas.records import DOUBT, CrawlEvent, FetchedObject, Link, Record, Rejected, Root, Span
from streams.simulator import MemoryRows, Simulator, rejections
from tests.streams.topology.worlds import SITE, TOP, Make, Seeded, check, frontier, gather, oracle, summaries

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World

SHARE = TOP + "share/"
EVER = 1 << 60
"""A time in ms after all others."""
TTL = 24 * 7 * 86_400


def furnish(world: World, folders: int = 4, files: int = 10) -> None:
    """Fill a folder of some folders with files, all different."""
    for folder in range(folders):
        for number in range(files):
            world.write(f"share/{folder}/{number}", b"%d of %d" % (number, folder))


def remove(world: World, start: str) -> dict[str, Any]:
    """Remove the files whose names begin so, and return them."""
    gone = {name: content for name, content in world.files.items() if name.startswith(start)}
    for name in gone:
        del world.files[name]
    return gone


def held(simulator: Simulator) -> set[str]:
    """The URLs whose removal is in doubt."""
    return {url for url, known in frontier(simulator).items() if known.held}


def urls(simulator: Simulator) -> set[str]:
    """The URLs that have a summary."""
    return {summary.url for summary in summaries(simulator)}


@pytest.fixture(params=[1, 3])
def simulator(request: pytest.FixtureRequest, world: World, make_simulator: Make, seeded: Seeded) -> Simulator:
    """A simulator that has gathered a folder of forty files, on one partition and on several."""
    furnish(world)
    simulator = make_simulator(world, request.param, random.Random(7))
    gather(simulator, "r1", seeded, roots=(SHARE,))
    check(simulator, oracle(world))
    return simulator


@pytest.mark.parametrize("crashes", [0, 5])
def test_missing_root_is_kept_until_back(simulator: Simulator, world: World, seeded: Seeded, crashes: int) -> None:
    """A root that is missing removes nothing, in run after run; once it is back, the doubt is settled and changes are found."""
    before = oracle(world)
    gone = remove(world, "share/")
    for run in ("r2", "r3"):
        gather(simulator, run, seeded, roots=(SHARE,), crashes=crashes)
        check(simulator, before)
        assert SHARE in held(simulator)
    assert {letter.reason for letter in rejections(simulator)} == {f"{DOUBT}: "}
    world.files |= gone
    world.write("share/0/0", b"changed")
    gather(simulator, "r4", seeded, roots=(SHARE,), crashes=crashes)
    check(simulator, oracle(world))
    assert not held(simulator)


def test_accepted_removal_of_a_root(simulator: Simulator, world: World, seeded: Seeded) -> None:
    """A run that accepts removals removes all that is missing, whether or not a run before has held it."""
    remove(world, "share/")
    gather(simulator, "r2", seeded, roots=(SHARE,))
    gather(simulator, "r3", seeded, roots=(SHARE,), accept=EVER)
    check(simulator, {})
    assert not held(simulator)


def test_emptied_root_is_kept(make_simulator: Make, world: World, seeded: Seeded) -> None:
    """A root that is there and empty keeps its objects, few as they may be; what comes back meanwhile is as before."""
    furnish(world, 2, 3)
    simulator = make_simulator(world, 1, random.Random(3))
    gather(simulator, "r1", seeded, roots=(TOP,))
    before = oracle(world)
    gone = remove(world, "")
    gather(simulator, "r2", seeded, roots=(TOP,))
    check(simulator, before)
    assert held(simulator) == {TOP + "share/"}
    refused = [event for _, event in simulator.records("crawl") if isinstance(event, CrawlEvent) and event.kind == "refused"]
    assert [(event.reason, [link.url for link in event.links]) for event in refused] == [
        (f"{DOUBT}: its folder is empty", [TOP + "share/"])
    ]
    world.files |= gone
    gather(simulator, "r3", seeded, roots=(TOP,))
    check(simulator, before)
    assert not held(simulator)


@pytest.mark.parametrize("root", [TOP, SHARE], ids=["empty", "missing"])
def test_doubt_lasts_for_the_time_to_live(make_simulator: Make, world: World, seeded: Seeded, root: str) -> None:
    """What is held is kept for its time-to-live since it was first missing, however long ago it was fetched; then it expires."""
    furnish(world, 2, 3)
    simulator = make_simulator(world, 1, random.Random(3))
    gather(simulator, "r1", seeded, roots=(root,))
    before = oracle(world)
    remove(world, "")
    simulator.now += 10 * TTL * 1000
    gather(simulator, "r2", seeded, roots=(root,))
    check(simulator, before)
    simulator.now += TTL * 1000 + 10_000
    gather(simulator, "r3", seeded, roots=(root,))
    check(simulator, {})


def test_unreadable_root_lasts_for_its_time_to_live(make_simulator: Make, world: World, seeded: Seeded) -> None:
    """A root of files that cannot be read is in doubt too, from the first failure on, however long ago it was read."""
    furnish(world, 2, 3)
    simulator = make_simulator(world, 1, random.Random(3))
    gather(simulator, "r1", seeded, roots=(SHARE,))
    world.failing.add(SHARE)
    simulator.now += 10 * TTL * 1000
    gather(simulator, "r2", seeded, roots=(SHARE,))
    check(simulator, oracle(world))
    assert held(simulator) == {SHARE}
    world.failing.clear()
    gather(simulator, "r3", seeded, roots=(SHARE,))
    check(simulator, oracle(world))
    assert not held(simulator)


def test_held_objects_stay_held_while_others_come(make_simulator: Make, world: World, seeded: Seeded) -> None:
    """A file that is written to the empty place of a tree settles no doubt about the tree; both are found."""
    furnish(world, 2, 3)
    simulator = make_simulator(world, 1, random.Random(3))
    gather(simulator, "r1", seeded, roots=(TOP,))
    before = oracle(world)
    gone = remove(world, "")
    gather(simulator, "r2", seeded, roots=(TOP,))
    world.write("meanwhile", b"to the mount point")
    gather(simulator, "r3", seeded, roots=(TOP,))
    check(simulator, before | oracle(world))
    world.files |= gone
    gather(simulator, "r4", seeded, roots=(TOP,))
    check(simulator, oracle(world))
    assert not held(simulator)


def test_loss_of_most_objects_is_held(make_simulator: Make, world: World, seeded: Seeded) -> None:
    """A root that loses more than half of its objects in a run keeps them; one that loses less, or has few, does not."""
    for folders, gone, kept in ((4, 3, True), (4, 1, False), (1, 1, True)):
        world.files.clear()
        furnish(world, folders)
        world.write("share/readme", b"the folder is never empty")
        simulator = make_simulator(world, 1, random.Random(5))
        gather(simulator, "r1", seeded, roots=(SHARE,))
        before = oracle(world)
        for folder in range(gone):
            remove(world, f"share/{folder}/")
        gather(simulator, "r2", seeded, roots=(SHARE,))
        # One folder of ten files and another file are less than twenty objects: they are not doubted.
        check(simulator, before if kept and folders > 1 else oracle(world))


def test_files_deleted_one_by_one_are_removed(simulator: Simulator, world: World, seeded: Seeded) -> None:
    """Deletions of a few objects in each run are removals at once, though all of them are most of the root in the end."""
    for run in range(2, 6):
        remove(world, f"share/{run - 2}/{run}")
        remove(world, f"share/{run - 2}/{run + 1}")
        gather(simulator, f"r{run}", seeded, roots=(SHARE,))
        check(simulator, oracle(world))


def test_broken_site_is_kept(make_simulator: Make, world: World, seeded: Seeded) -> None:
    """While the start page of a site is missing, no page of it is removed; a page that is missing alone is."""
    world.pages = {SITE: ("start", tuple(f"{SITE}{n}" for n in range(6)))} | {f"{SITE}{n}": (f"page {n}", ()) for n in range(6)}
    simulator = make_simulator(world, 1, random.Random(2))
    gather(simulator, "r1", seeded, roots=(SITE,))
    before, pages = oracle(world), dict(world.pages)
    world.pages.clear()
    gather(simulator, "r2", seeded, roots=(SITE,))
    check(simulator, before)
    assert SITE in held(simulator)
    world.pages |= pages
    del world.pages[SITE + "3"]
    gather(simulator, "r3", seeded, roots=(SITE,))
    check(simulator, oracle(world))
    assert not held(simulator)
    world.pages.clear()
    gather(simulator, "r4", seeded, roots=(SITE,), accept=EVER)
    assert not urls(simulator)


@pytest.mark.parametrize("changed", ["device", "inode"])
def test_folder_on_another_device_is_doubted(make_simulator: Make, world: World, seeded: Seeded, changed: str) -> None:
    """What vanishes from a folder together with its device number, or its inode, is held; what changes otherwise is not."""
    furnish(world, 1, 3)
    world.device, world.inode = 5, 6
    simulator = make_simulator(world, 1, random.Random(2))
    gather(simulator, "r1", seeded, roots=(TOP,))
    remove(world, "share/0/1")
    gather(simulator, "r2", seeded, roots=(TOP,))
    before = oracle(world)
    check(simulator, before)
    setattr(world, changed, 7)
    gather(simulator, "r3", seeded, roots=(TOP,))
    check(simulator, before)
    setattr(world, changed, 8)
    remove(world, "share/0/2")
    gather(simulator, "r4", seeded, roots=(TOP,))
    check(simulator, before)
    assert held(simulator) == {TOP + "share/0/2"}


@pytest.mark.parametrize("together", [True, False])
def test_inner_root_removed_in_doubt(make_simulator: Make, world: World, seeded: Seeded, together: bool) -> None:
    """An inner root that is removed while its folder is missing costs nothing that the outer root reaches."""
    furnish(world)
    world.write("other", b"not in the folder")
    inner = SHARE + "0/"
    simulator = make_simulator(world, 1, random.Random(4))
    gather(simulator, "r1", seeded, roots=(TOP, inner) if together else (TOP,))
    gather(simulator, "r2", seeded, roots=(TOP, inner))
    before = oracle(world)
    gone = remove(world, "share/0/")
    gather(simulator, "r3", seeded, roots=(TOP, inner))
    check(simulator, before)
    ended = seeded(Root(url=inner, run="r4"), simulator.now, owner=True, kind="unseeded")
    simulator.broadcast("crawl", lambda _: ended)
    simulator.run()
    world.files |= gone
    gather(simulator, "r5", seeded, roots=(TOP,))
    check(simulator, before)
    assert not held(simulator)


def test_other_device_is_known_until_the_last_slice() -> None:
    """A folder of several slices is compared with its former device in each of them: what vanishes in the last one is held too."""
    rows, root, folder = MemoryRows(), Root(url="file:///t/", run="1", urls=0), "file:///t/big/"
    links = sorted((Link(url=f"{folder}{n}", kind="file", size=1) for n in range(4)), key=lambda link: url_digest(link.url))
    middle = url_digest(links[1].url)

    def listed(offset: int, device: int, *kept: Link) -> list[Record]:
        found: list[Record] = []
        for n, (low, high) in enumerate(((b"", middle), (middle, b"\xff" * 16))):
            part = tuple(link for link in kept if low < url_digest(link.url) <= high)
            place: Any = {"span": Span(low=low, high=high), "device": device, "inode": 9}
            event = CrawlEvent(kind="discovered", host=folder, time=9, url=folder, version=1, root=root, links=part, **place)
            found += frontier_stage(rows, event, Origin("crawl", 0, offset + n, 0), FrontierSettings())
        return found

    listed(1, 5, *links)
    outputs = listed(3, 6, *links[:3])
    assert not [one for one in outputs if isinstance(one, FetchedObject)]
    assert [one.reason for one in outputs if isinstance(one, Rejected)] == [f"{DOUBT}: its folder is another one than before"]
