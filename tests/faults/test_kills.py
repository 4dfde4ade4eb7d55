from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.check import alike, check
from tests.faults.corpus import Corpus
from tests.faults.harness import MAX_FILE, Run, gather, gather_here
from tests.faults.oracle import Oracle

TURNS = (
    "turn.begin",
    "turn.frontier",
    "turn.catalog",
    "turn.register.main",
    "turn.dedup.main",
    "turn.end",
    "log.write",
    "log.commit",
    "log.committed",
)
"""Points that are passed at least once per turn."""
OBJECTS = ("fetch.read", "essence.deliver")
"""Points that are passed by each object."""
BLOBS = ("blob.write", "blob.flushed", "blob.renamed", "blob.synced")
FIRST = "run.seeded:1:kill"
"""A run has started and done nothing else."""
LAST = ("index.apply:1:kill", "index.applied:1:kill", "run.finished:1:kill")
"""Points that a run reaches after everything else is done."""


def plans(rng: random.Random, kills: int, depth: int) -> list[str]:
    """Faults that kill successive runs; "" means a kill at a random time. `depth` is the maximum of turns before a kill."""
    found = []
    for number in range(kills - len(LAST) - 1):
        # If the point is not passed any more, a later turn kills the run.
        last = f",turn.begin:{depth + 2}:kill"
        if number % 4 == 0:
            found.append("")
        elif number % 4 == 1:
            found.append(f"{rng.choice(OBJECTS)}:{rng.randrange(1, 20 * depth)}:kill{last}")
        elif number % 8 == 2:
            found.append(f"{rng.choice(BLOBS)}:{rng.randrange(1, 3)}:kill{last}")
        else:
            found.append(f"{TURNS[number % len(TURNS)]}:{rng.randrange(1, depth)}:kill{last}")
    return [FIRST, *found, *LAST]


def killed_often(data: Path, corpus: Corpus, partitions: int, plan: list[str], rng: random.Random) -> int:
    """Kill successive runs by plan, then let one end; return the number of kills."""
    kills = 0
    for fault in plan:
        run = Run(data, corpus.root, partitions, fault)
        ended = run.wait() if fault else run.killed_after(rng.uniform(0.3, 3.5))
        assert ended.code in (0, -signal.SIGKILL), (fault, ended)
        kills += ended.code != 0
        if ended.code == 0:
            return kills
    ended = gather(data, corpus.root, partitions)
    assert ended.code == 0, ended
    return kills


def rounds(folder: Path, partitions: int, count: int, kills: int, depth: int, seed: int) -> int:
    """Do three rounds or more, with changes between; after each, killed and undisturbed runs agree with each other and the oracle.

    Returns the number of kills.
    """
    os.makedirs(folder / "tree")
    rng, corpus = random.Random(seed), Corpus(os.fsencode(folder / "tree"), seed, count)
    corpus.build()
    oracle = Oracle(corpus.root, MAX_FILE)
    died = number = 0
    while number < 3 or died < kills:
        oracle.look()
        assert gather_here(folder / "sound", corpus.root, partitions).code == 0
        sound = check(folder / "sound", oracle)
        share = kills // 2 if number == 0 else kills // 4 + 2
        died += killed_often(folder / "killed", corpus, partitions, plans(rng, share, depth if number == 0 else depth // 4), rng)
        alike(check(folder / "killed", oracle), sound)
        corpus.disturb()
        number += 1
        assert number < 16, "runs end before they are killed"
    return died


@pytest.mark.slow(200)
@pytest.mark.timeout(900)  # two minutes on two idle cores
def test_fifty_kills_give_the_undisturbed_result(tmp_path: Path) -> None:
    """After kills at random times and at every point a folder equals an undisturbed one and the oracle; no child is left."""
    assert rounds(tmp_path, 1, 5_000, 50, 16, 1) >= 50


@pytest.mark.slow(60)
@pytest.mark.timeout(900)  # most of a minute on two idle cores
def test_kills_with_four_partitions(tmp_path: Path) -> None:
    """The same with four partitions, on a smaller tree."""
    assert rounds(tmp_path, 4, 500, 12, 12, 2) >= 12


@pytest.mark.slow(15)
def test_interrupted_runs_continue(tmp_path: Path, corpus: Corpus, oracle: Oracle) -> None:
    """Ctrl-C ends a run with 130, one line and no child; the next runs continue, and end as the oracle says."""
    rng = random.Random(4)
    for _ in range(5):
        run = Run(tmp_path / "data", corpus.root, 1)
        while not run.children() and run.process.poll() is None:
            time.sleep(0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(rng.uniform(0.4, 1.2))
        run.process.send_signal(signal.SIGINT)
        ended = run.wait()
        assert ended.code in (0, 130), ended
        assert len(ended.errors.splitlines()) <= 1
        assert "Traceback" not in ended.errors
    assert gather(tmp_path / "data", corpus.root, 1).code == 0
    check(tmp_path / "data", oracle)
