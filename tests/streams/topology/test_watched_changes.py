"""Reported changes in the simulator: whatever is in flight when a file changes, the end is a plain walk of the world."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from processors.frontier.settings import FrontierSettings
from processors.identity import frontier_key
from schemas.records import CrawlEvent, FetchRequest, Link, Record
from streams.simulator import Simulator
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.conftest import fetcher, plain_essence
from tests.streams.topology.worlds import TOP, Seeded, check, gather, oracle

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


class Past:
    """The states of a world, from which a reading takes any that it had since the request was made."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._states: list[tuple[int, World]] = []

    def note(self, now: int) -> None:
        """Keep the state of the world."""
        self._states.append((now, copy.deepcopy(self._world)))

    def fetch(self, request: FetchRequest, now: int) -> list[Record]:
        """Answer a request from one of the states that the world had in its time, the last one before it included."""
        first = max((number for number, (at, _) in enumerate(self._states) if at <= request.time), default=0)
        _, state = self._states[self._rng.randrange(first, len(self._states))]
        return fetcher(state)(request, now)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_no_reported_change_is_lost(seed: int, partitions: int, world: World, seeded: Seeded) -> None:
    """Files are written, changed, moved and removed while requests are in flight, which read any state since they were made."""
    rng = random.Random(seed)
    past = Past(world, rng)
    flow = topology(TopologySettings(frontier=FrontierSettings(doubt=False)))
    simulator = Simulator(flow, partitions, rng.randrange, past.fetch, plain_essence)
    for number in range(8):
        world.write(rng.choice(FOLDERS) + f"f{number}", b"text %d" % number)
    past.note(0)
    gather(simulator, "r1", seeded, roots=(TOP,))
    for number in range(40):
        simulator.now += 1
        changed = set[str]()
        name = rng.choice(sorted(world.files)) if rng.random() < 0.8 else rng.choice(FOLDERS) + f"f{rng.randrange(12)}"
        if name in world.files and rng.random() < 0.4 and len(world.files) > 2:
            content = world.body(name)
            changed |= goes(world, name)
            if rng.random() < 0.5:
                changed |= comes(world, rng.choice(FOLDERS) + f"f{rng.randrange(12)}", content)
        else:
            changed |= comes(world, name, b"change %d" % number)
        past.note(simulator.now)
        report(simulator, rng.sample(sorted(changed), len(changed)))
        simulator.step(rng.randrange(12))
    simulator.run()
    check(simulator, oracle(world))
