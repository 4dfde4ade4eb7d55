"""Seconds of CPU of process trees (proc(5): stat), including children that have ended and were waited for."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tests.bench.memory import PROC, below, family

TICKS = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """The current state of a process: its seconds of CPU, and its command."""

    seconds: float
    command: Sequence[str]


def stat(pid: int) -> Stat:
    """Read the state of a process. Raises OSError if it has ended."""
    # The program name is in parentheses and may contain anything; utime to cstime are the fields 14 to 17.
    fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return Stat(sum(map(int, fields[11:15])) / TICKS, words)


def spent(pid: int, seen: Mapping[int, Sequence[int]] | None = None) -> float:
    """Seconds of CPU of a process and all its descendants, from the snapshot `seen` or a new one."""
    found = 0.0
    for one in family(pid, seen):
        with suppress(OSError):
            found += stat(one).seconds
    return found


def _all_cores(first: int, last: int) -> float:
    """Sum over all cores of these columns in the first line of /proc/stat, in seconds."""
    columns = (PROC / "stat").read_bytes().splitlines()[0].split()
    return sum(map(int, columns[first : last + 1])) / TICKS


def idle() -> float:
    """Seconds that the cores of this machine were idle since boot, summed; waiting for a disk counts as idle."""
    return _all_cores(4, 5)


def stolen() -> float:
    """Seconds, averaged over cores, in which this machine had work but its host ran others (proc(5): steal)."""
    return _all_cores(8, 8) / (os.cpu_count() or 1)


def by_stage(supervisors: Sequence[int], seen: Mapping[int, Sequence[int]] | None = None) -> Mapping[str, float]:
    """Seconds of CPU by stage, below some `harvest worker` processes, from the snapshot `seen` or a new one."""
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
    """Inside the block, give a server and its descendants half of the cores, and this process and its others the rest."""
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
    """Pin all threads of a process and its descendants to these cores; threads that they start later inherit the setting."""
    for one in family(pid):
        with suppress(OSError):
            for thread in os.listdir(PROC / str(one) / "task"):
                with suppress(OSError):
                    os.sched_setaffinity(int(thread), on)
