"""Seconds of CPU of processes and all below them (proc(5): stat), those of children that ended and were waited for included."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tests.bench.memory import PROC, below, family

TICKS = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """A process as it is now: what it took so far, and its command."""

    seconds: float
    command: Sequence[str]


def stat(pid: int) -> Stat:
    """Raises OSError where it is gone."""
    # The name of the program stands in parentheses and may hold anything; utime to cstime are the fields 14 to 17.
    fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return Stat(sum(map(int, fields[11:15])) / TICKS, words)


def spent(pid: int, seen: Mapping[int, Sequence[int]] | None = None) -> float:
    """What a process and all below it (as they were `seen`, or are just now) took so far."""
    found = 0.0
    for one in family(pid, seen):
        with suppress(OSError):
            found += stat(one).seconds
    return found


def _all_cores(first: int, last: int) -> float:
    """Seconds so far of all cores together: these columns of the first line of /proc/stat."""
    columns = (PROC / "stat").read_bytes().splitlines()[0].split()
    return sum(map(int, columns[first : last + 1])) / TICKS


def idle() -> float:
    """The seconds that the cores of this machine had nothing to do so far, all together; waiting for a disk is such."""
    return _all_cores(4, 5)


def stolen() -> float:
    """The seconds so far, as one core sees them, that this machine wanted to run and its host ran others (proc(5): steal)."""
    return _all_cores(8, 8) / (os.cpu_count() or 1)


def by_stage(supervisors: Sequence[int], seen: Mapping[int, Sequence[int]] | None = None) -> Mapping[str, float]:
    """What the stages below some `harvest worker` (as they were `seen`, or are just now) took so far."""
    seen = below() if seen is None else seen
    found: dict[str, float] = defaultdict(float)
    for pid in (pid for supervisor in supervisors for pid in family(supervisor, seen)[1:]):
        with suppress(OSError):
            before, _, behind = "\0".join(stat(pid).command).partition("\0worker\0")
            if before and behind:
                found[behind.partition("\0")[0]] += spent(pid, seen)
    return found


@contextmanager
def apart(server: int) -> Iterator[None]:
    """Inside the block a server, and all below it, has half of the cores; this process, and all else below it, the other half."""
    all_cores = sorted(os.sched_getaffinity(0))
    half = len(all_cores) // 2
    _place(os.getpid(), all_cores[half:])
    _place(server, all_cores[: max(1, half)])
    try:
        yield
    finally:
        _place(os.getpid(), all_cores)
        _place(server, all_cores)


def _place(pid: int, on: Sequence[int]) -> None:
    """Have all threads of a process, and of all below it, run on these cores; those that they begin do as well."""
    for one in family(pid):
        with suppress(OSError):
            for thread in os.listdir(PROC / str(one) / "task"):
                with suppress(OSError):
                    os.sched_setaffinity(int(thread), on)
