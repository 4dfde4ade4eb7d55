"""Reported changes in the simulator: whatever is in flight when a file changes, the end is a plain walk of the world."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from processors.identity import frontier_key
from schemas.records import CrawlEvent, Link
from streams.simulator import Simulator
from tests.streams.topology.worlds import TOP, Make, Seeded, check, gather, oracle

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World

FOLDERS = ("", "d1/", "d2/", "d2/e/", "d3/", "d3/f/g/")


def report(simulator: Simulator, names: Iterable[str]) -> None:
    """Report changes as a watcher does: paths below the root, that of a folder with a slash at the end, "" the root itself."""
    for name in names:
        url = TOP + name
        link = Link(url=url, kind="folder" if url.endswith("/") else "file")
        event = CrawlEvent(kind="changed", host=frontier_key(url), time=simulator.now, links=(link,))
        simulator.send("crawl", event)


def comes(world: World, name: str, content: bytes) -> set[str]:
    """Write a file; return what a watcher reports: the file, and the folders in which it or a folder of its own comes."""
    folders = [name[: at + 1] for at, letter in enumerate(name) if letter == "/"]
    new = {folder for folder in folders if not any(other.startswith(folder) for other in world.files)}
    known = name in world.files
    world.write(name, content)
    return {name} if known else {name, _above(name), *new, *map(_above, new)}


def goes(world: World, name: str) -> set[str]:
    """Remove a file, and the folders that are empty then; return what a watcher reports."""
    del world.files[name]
    changed = {_above(name)}
    folder = _above(name)
    while folder and not any(other.startswith(folder) for other in world.files):
        changed.add(folder := _above(folder))
    return changed


def _above(name: str) -> str:
    return name[: name.rstrip("/").rfind("/") + 1]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_no_reported_change_is_lost(seed: int, partitions: int, world: World, make_simulator: Make, seeded: Seeded) -> None:
    """Files are written, changed, moved and removed while earlier changes are under way; the end has the last state of each."""
    rng = random.Random(seed)
    simulator = make_simulator(world, partitions, rng)
    for number in range(8):
        world.write(rng.choice(FOLDERS) + f"f{number}", b"text %d" % number)
    gather(simulator, "r1", seeded, roots=(TOP,))
    for number in range(60):
        changed = set[str]()
        name = rng.choice(sorted(world.files)) if rng.random() < 0.8 else rng.choice(FOLDERS) + f"f{rng.randrange(12)}"
        if name in world.files and rng.random() < 0.4 and len(world.files) > 2:
            content = world.body(name)
            changed |= goes(world, name)
            if rng.random() < 0.5:
                changed |= comes(world, rng.choice(FOLDERS) + f"f{rng.randrange(12)}", content)
        else:
            changed |= comes(world, name, b"change %d" % number)
        report(simulator, rng.sample(sorted(changed), len(changed)))
        simulator.step(rng.randrange(12))
    simulator.run()
    check(simulator, oracle(world))
