"""Measures objects/s of `harvest gather`, end to end, against the plain program with the same processors on the same cores.

Both are whole processes on the same files, start-up included (shown separately, as the time for one file), in rounds of one
directly after the other; the round with the median ratio counts, so that a busy machine is unfair to neither. CPU time is shown as
well, and the time that the host of a virtual machine gave to others (steal): in one round that may be nothing or half.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from streams.config.settings import cores
from tests.bench.cpu import stolen
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.memory import children
from tests.bench.plain import Counts

HARVEST = (sys.executable, "-c", "from streams.cli import main; main()")
HEAVY_MS = 2.0
"""Milliseconds of CPU of the median object from which the ratio has a goal; below it, the overhead has. Expensive objects have long
summaries, which cost time in the index and the log; for cheap objects the plain program does so little that a ratio means nothing.
"""


class Timed(NamedTuple):
    """A measured command: its JSON output, if any; its seconds, and the seconds of CPU of all its processes.

    `stolen`: seconds of `seconds` that the host of this machine gave to others.
    """

    said: dict[str, Any]
    seconds: float
    cpu: float
    stolen: float = 0.0


Pair = tuple[Timed, Timed]
"""The plain program and Harvest, one directly after the other."""
UNSAID = "PYTHONDONTWRITEBYTECODE"
"""A variable that is removed: if it is set, every start compiles all of Harvest again, which does not happen to users."""


def environment() -> dict[str, str]:
    """The environment without settings of Harvest, and with the clone on PYTHONPATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_") and name != UNSAID}
    return {**kept, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


def adopt() -> None:
    """Become the parent of orphaned descendants (prctl(2), PR_SET_CHILD_SUBREAPER), so that their CPU time counts, too."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def buried(others: Collection[int]) -> None:
    """Wait for all remaining children except `others`, which existed before: a server does not end."""
    while left := set(children(os.getpid())) - set(others):
        for pid in left:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def timed(command: Sequence[str | Path], folder: Path) -> Timed:
    """Run a command that prints JSON or nothing. Raises BenchError."""
    others = children(os.getpid())
    before, lost, began = ended(), stolen(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment(), check=False, capture_output=True)
    seconds, lost = time.perf_counter() - began, stolen() - lost
    buried(others)
    if done.returncode:
        raise BenchError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-2_000:]}")
    said = done.stdout.splitlines()
    return Timed(json.loads(said[-1]) if said else {}, seconds, ended() - before, lost)


def ended() -> float:
    """Seconds of CPU of children that have ended, and of their descendants."""
    spent = os.times()
    return spent.children_user + spent.children_system


def gathering(roots: Sequence[Path], data: Path) -> list[str | Path]:
    """The command `harvest gather`, with its closing table as JSON."""
    return [*HARVEST, "gather", *roots, "--data", data, "--json", "--quiet"]


def both(root: Path, work: Path) -> Pair:
    """Run the plain program and `harvest gather` on one tree, one after the other."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name)
        plain = timed([sys.executable, "-m", "tests.bench.plain", root, folder, str(cores())], folder)
        return plain, timed(gathering([root], folder / "data"), folder)


def middle(rounds: Sequence[Pair]) -> Pair:
    """The round with the median ratio: both halves of a pair ran under the same conditions, those of two rounds did not."""
    return sorted(rounds, key=lambda pair: pair[0].seconds / pair[1].seconds)[len(rounds) // 2]


def objects(name: str, root: Path, work: Path, rounds: int) -> Iterator[Figure]:
    """Measure the figures of one tree. Raises BenchError if the two did not process the same objects."""
    # The tree is new: its pages go to the disk now, rather than with the first flush of a log.
    os.sync()
    measured = [both(root, work) for _ in range(rounds)]
    plain, ours = middle(measured)
    counts, table = msgspec.convert(measured[0][0].said, Counts), measured[0][1].said
    count = counts.objects
    if count != table["objects"]:
        raise BenchError(f"{name}: {table['objects']} objects, the plain program has {count}")
    against = f"in {table['listings']:,} folders; the median costs {counts.median:.2f} ms of CPU in the plain program"
    yield Figure(name, "objects", count, "objects", against)
    yield Figure(name, "gather", count / ours.seconds, "objects/s", f"the plain program: {count / plain.seconds:,.1f}")
    heavy = counts.median >= HEAVY_MS
    beside = f"{cores()} plain processes, the same processors"
    yield Figure(name, "gather to plain", plain.seconds / ours.seconds, "ratio", beside, Goal(">=", 0.6) if heavy else None)
    overhead = (ours.seconds - plain.seconds) * cores() / count * 1_000
    how = f"(wall - plain wall) x {cores()} cores / objects"
    yield Figure(name, "overhead an object", overhead, "ms", how, None if heavy else Goal("<=", 1.2))
    cpu = (ours.cpu - plain.cpu) / count * 1_000
    yield Figure(name, "overhead in CPU", cpu, "ms", "(CPU - plain CPU) / objects")
    left = (plain.seconds - plain.stolen) / (ours.seconds - ours.stolen)
    how = f"as above, without what the host gave to others: {plain.stolen:.1f} s of the plain program, {ours.stolen:.1f} of ours"
    yield Figure(name, "gather to plain, of what was left", left, "ratio", how)
    yield Figure(name, "summaries to data", table["bytes_summaries"] / max(1, table["bytes_in"]), "bytes/byte", "bytes fetched")


def start_up(work: Path, rounds: int) -> Iterator[Figure]:
    """Measure the time for one small file: start-up and shutdown."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        (Path(name) / "one.txt").write_text("One line.\n")
        plain, ours = middle([both(Path(name), work) for _ in range(rounds)])
    yield Figure("start-up", "gather of one file", ours.seconds, "s", f"the plain program: {plain.seconds:.2f} s")
