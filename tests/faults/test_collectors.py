"""A collector equals its source through changes, removals, kills and lost marks; Gatherers of Gatherers; rings come to rest."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from processors.essence.collected import VIA
from processors.identity import file_url
from streams.operations.feed import feed_file
from tests.faults.check import Held, check, same
from tests.faults.corpus import Corpus
from tests.faults.gatherers import DONE, FAILED, KILLED, Gatherer
from tests.faults.harness import GATHERER, MAX_FILE
from tests.faults.oracle import Oracle

POINTS = {"turn.begin": 7, "turn.frontier": 15, "turn.catalog": 15, "turn.register.main": 15, "log.commit": 15, "log.committed": 15}
POINTS |= {"essence.deliver": 6, "index.apply": 1, "index.applied": 1, "run.finished": 1}
"""Points at which a run is killed, with the number of times that the runs of a round pass them at least."""


class Rounds:
    """A source with a tree that changes, and its collector."""

    def __init__(self, source: Gatherer, collector: Gatherer, seed: int) -> None:
        self.source, self.collector = source, collector
        self.rng = random.Random(seed)
        self.corpus = Corpus(os.fsencode(source.tree), seed, 40)
        self.corpus.build()
        self.oracle = Oracle(self.corpus.root, MAX_FILE)
        self.kills = 0

    def undisturbed(self) -> None:
        """Disturb nothing."""
        self.source.gather()

    def killed_at_random(self) -> None:
        """Kill the collector at a random time."""
        self.source.gather()
        self._count(self.collector.start("gather").killed_after(self.rng.uniform(0.5, 2.5)).code)

    def killed_at_point(self) -> None:
        """Kill the collector at a point of its run."""
        self.source.gather()
        self._count(self.collector.start("gather", fault=self._fault()).wait().code)

    def stream_cut(self) -> None:
        """Kill the source's gateway in the middle of a stream."""
        self.source.gather()
        self.source.serve(cut=self.rng.randrange(1, 6))
        code = self.collector.run("gather").code
        assert code in (DONE, FAILED)
        self.kills += self.source.kill()
        self.source.serve()

    def source_killed(self) -> None:
        """Kill the source while it gathers, and collect what it has then."""
        self._count(self.source.start("gather", fault=self._fault()).wait().code)
        self.collector.gather()
        same("collected of a half", self.collector.collected(), self.source.own())
        self.source.gather()

    def equal(self) -> None:
        """Assert that the source has its tree, and the collector has what the source has."""
        check(self.source.data, self.oracle)
        held = Held(self.collector.data)
        assert held.oids == sorted(one.oid for one in held.broker.values()), "the index differs from its topic"
        same("collected", self.collector.collected(), self.source.own())

    def _fault(self) -> str:
        point = self.rng.choice([*POINTS])
        return f"{point}:{self.rng.randrange(POINTS[point]) + 1}:kill"

    def _count(self, code: int) -> None:
        assert code in (DONE, KILLED)
        self.kills += code == KILLED


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Gatherer, Gatherer]]:
    """A source, and a collector that doubts what looks like a mass deletion."""
    with Gatherer(tmp_path, GATHERER) as source, Gatherer(tmp_path, "us", FRONTIER_DOUBT="true", PARTITIONS="2") as collector:
        yield source, collector


@pytest.mark.slow(80)
@pytest.mark.timeout(900)  # more than a minute on two idle cores
def test_twenty_rounds_of_changes_and_kills(pair: tuple[Gatherer, Gatherer]) -> None:
    """After each round the collector has the summaries that the source has, whatever was killed meanwhile."""
    rounds = Rounds(*pair, seed=1)
    rounds.oracle.look()
    rounds.source.gather()
    rounds.source.serve()
    rounds.collector.collect(rounds.source)
    rounds.equal()
    kinds = (rounds.killed_at_point, rounds.stream_cut, rounds.killed_at_random, rounds.source_killed, rounds.undisturbed)
    for number in range(20):
        rounds.corpus.disturb()
        rounds.oracle.look()
        kinds[number % len(kinds)]()
        rounds.collector.gather()
        rounds.equal()
    assert rounds.kills >= 12


@pytest.mark.slow(10)
def test_mark_beyond_the_retention(pair: tuple[Gatherer, Gatherer]) -> None:
    """Where the source has dropped removals, or has made its feed anew, the collector still loses what went meanwhile."""
    source, collector = pair
    for number in range(40):
        source.write(f"{number}.txt", f"Number {number}.\n")
    source.gather()
    source.serve()
    collector.collect(source)
    for number in range(30):
        source.remove(f"{number}.txt")
    source.gather()
    before = source.mark()
    with apsw.Connection(str(feed_file(source.data))) as feed:
        feed.execute("UPDATE changes SET time=time-91*86400000")
    source.write("new.txt", "A new one.\n")
    source.gather()
    assert source.mark() != before
    with apsw.Connection(str(feed_file(source.data))) as feed:
        assert list(feed.execute("SELECT horizon > 40 FROM state")) == [(1,)], "no removal was dropped"
    collector.gather()
    assert collector.collected() == source.own()
    assert len(collector.collected()) == 11
    source.remove("new.txt")
    source.gather()
    shutil.rmtree(feed_file(source.data).parent)
    assert source.mark().partition("-")[0] != before.partition("-")[0]
    collector.gather()
    assert collector.collected() == source.own()
    for number in range(30, 40):
        source.remove(f"{number}.txt")
    source.gather()
    collector.gather()
    assert collector.collected() == {} == source.own()


def via(gatherer: Gatherer) -> dict[str, tuple[str | bytes, ...]]:
    """Return the Gatherers that each file came through, by name; a file that is there twice fails."""
    found = [((one.location or one.url).rsplit("/", 1)[-1], one.attributes.get(VIA, ())) for one in gatherer.summaries()]
    assert len(found) == len(dict(found)), found
    return dict(found)


@pytest.mark.slow(10)
def test_gatherer_of_two_gatherers(tmp_path: Path) -> None:
    """A collector of a collector has the files of all, with the way they came; what one loses is gone there too."""
    with Gatherer(tmp_path, "a1") as a1, Gatherer(tmp_path, "a2") as a2, Gatherer(tmp_path, "b") as b, Gatherer(tmp_path, "c") as c:
        for one in (a1, a2, b):
            for number in range(3):
                one.write(f"{one.name}-{number}.txt", f"Number {number} of {one.name}.\n")
            one.gather()
            one.serve()
        b.collect(a1, a2)
        c.collect(b)
        ways = {"a1": ("a1", "b"), "a2": ("a2", "b"), "b": ("b",)}
        expected = {f"{name}-{number}.txt": way for name, way in ways.items() for number in range(3)}
        assert via(c) == expected
        where = {one.location for one in c.summaries()}
        assert where == {file_url(os.fsencode(one.tree / f"{one.name}-{n}.txt")) for one in (a1, a2, b) for n in range(3)}
        a1.remove("a1-1.txt")
        a2.write("a2-1.txt", "Another number.\n")
        del expected["a1-1.txt"]
        for one in (a1, a2, b, c):
            one.gather()
        assert via(c) == expected
        assert c.collected() == b.own()


@pytest.mark.slow(10)
def test_ring_comes_to_rest(tmp_path: Path) -> None:
    """Three Gatherers that collect in a ring have the files of all once, then nothing changes; a removal does not return."""
    with Gatherer(tmp_path, "a") as a, Gatherer(tmp_path, "b") as b, Gatherer(tmp_path, "c") as c:
        ring = (a, b, c)
        for one in ring:
            for number in range(3):
                one.write(f"{one.name}-{number}.txt", f"Number {number} of {one.name}.\n")
            one.gather()
            one.serve()
        for one, before in ((b, a), (c, b), (a, c)):
            one.collect(before)
        rested = at_rest(ring)
        names = {f"{one.name}-{number}.txt" for one in ring for number in range(3)}
        assert [via(one).keys() for one in ring] == [names] * 3
        assert via(a)["b-0.txt"] == ("b", "c")
        assert via(b)["a-0.txt"] == ("a",)
        a.remove("a-1.txt")
        b.write("b-1.txt", "Another number.\n")
        assert at_rest(ring) != rested
        assert [via(one).keys() for one in ring] == [names - {"a-1.txt"}] * 3
        (changed,) = {seen.digests for one in ring for seen in one.own().values() if seen.location.endswith("b-1.txt")}
        assert changed in {seen.digests for seen in b.own().values()}


def at_rest(ring: tuple[Gatherer, ...]) -> list[str]:
    """Let all gather until nothing changes over a round; return their marks."""
    marks: list[list[str]] = [[]]
    for _ in range(6):
        for one in ring:
            one.gather()
        marks.append([one.mark() for one in ring])
        if marks[-1] == marks[-2]:
            return marks[-1]
    raise AssertionError(f"no rest: {marks}")


@pytest.mark.slow(30)
@pytest.mark.timeout(900)
def test_services_that_are_killed(tmp_path: Path) -> None:
    """Services that refresh every second agree after each change, whichever of them is killed meanwhile."""
    often, rng = {"ROOTS_REFRESH": "1", "ROOTS_REFRESH_MIN": "1"}, random.Random(3)
    with Gatherer(tmp_path, "source", **often) as source, Gatherer(tmp_path, "us", **often) as collector:
        for number in range(20):
            source.write(f"{number}.txt", f"Number {number}.\n")
        source.gather()
        source.serve()
        collector.collect(source)
        source.work()
        collector.work()
        for number in range(4):
            source.remove(f"{2 * number}.txt")
            source.write(f"{2 * number + 1}.txt", f"Another {rng.random()}.\n")
            source.write(f"new{number}.txt", f"New {rng.random()}.\n")
            for one in ((), (collector,), (source,), (source, collector))[number % 4]:
                time.sleep(rng.uniform(0, 1.5))
                one.work()
            source.until(lambda: digests(source) == files(source))
            collector.until(lambda: collector.collected() == source.own())


def digests(gatherer: Gatherer) -> dict[str, str]:
    """Return the digests of the summaries by name of the file."""
    return {one.url.rsplit("/", 1)[-1]: one.md5 for one in gatherer.summaries()}


def files(gatherer: Gatherer) -> dict[str, str]:
    """Return the digests of the files by name."""
    return {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in gatherer.tree.iterdir()}
