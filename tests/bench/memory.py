"""Samples the memory of a process tree; shared pages count once (PSS, proc(5): smaps_rollup)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

INTERVAL = 0.2
"""Seconds between two samples."""
PROC = Path("/proc")


def below() -> Mapping[int, Sequence[int]]:
    """A snapshot of the children of each process; it reads all processes, which takes some milliseconds."""
    found: dict[int, list[int]] = {}
    for number, parent in _parents():
        found.setdefault(parent, []).append(number)
    return found


def family(pid: int, seen: Mapping[int, Sequence[int]] | None = None) -> list[int]:
    """A process and all its descendants, from the snapshot `seen` or a new one."""
    seen = below() if seen is None else seen
    found = [pid]
    for one in found:
        found += seen.get(one, ())
    return found


def children(pid: int) -> list[int]:
    """The current children of a process."""
    return [number for number, parent in _parents() if parent == pid]


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir(PROC):
        if name.isdigit():
            with suppress(OSError):
                # The program name is in parentheses and may contain anything.
                yield int(name), int((PROC / name / "stat").read_bytes().rpartition(b")")[2].split()[1])


def pss(pid: int) -> int:
    """Bytes of a process by PSS; by its resident set, which is no less, if PSS is not readable; 0 if the process has ended."""
    for file, line in (("smaps_rollup", b"Pss:"), ("status", b"VmRSS:")):
        with suppress(OSError):
            for found in (PROC / str(pid) / file).read_bytes().splitlines():
                if found.startswith(line):
                    return int(found.split()[1]) * 1_024
    return 0


class Sampled:
    """The peak memory of a process tree during a `with` statement. `more(pid)` returns bytes that PSS does not count."""

    def __init__(self, pid: int, more: Callable[[int], int] = lambda _: 0) -> None:
        self.peak = 0
        """Peak memory in bytes."""
        self.processes = 0
        self._pid = pid
        self._more = more
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            held = [size for size in map(pss, family(self._pid)) if size]
            self.peak, self.processes = max(self.peak, sum(held) + self._more(self._pid)), max(self.processes, len(held))
            if self._end.wait(INTERVAL):
                return
