"""Measures the CPU time of Essence by step: recognize, unnest, select, summarize, and the rest (records, paths).

One process walks a tree as `plain.py` does, and calls `essence` on each file. The functions that the walk calls for a step are
wrapped from outside with clocks of the process's CPU time; processors/ does not know of them. Times are exclusive: while a step
calls another one (unnesting that reads from an outer stream), only the inner clock runs. The cost of the clocks is measured: the
same tree is walked without them, alternately. Reading and hashing of files before essence belong to no step.

- recognize: `recognize`, `placed`.
- unnest: opening and reading of containers and encodings, the first bytes of a file for recognition, digests of members, and the
  spooling of a body that is to be summarized.
- select: the rules by name, by neighbors and by type, in folders and in archives, and whether an archive is a package.
- summarize: `summarize`.

The paper (seed 003, table 6) gives shares of the whole time on an FTP server's 92.58 MB on a DECstation, without indexing, with the
processes that were started for each step.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from processors.essence import recognize, selection, software_package, summarize, walk
from processors.essence.formats import streams as _streams
from processors.essence.selection import Selection
from processors.essence.stage import essence
from processors.essence.unnest import Container, Encoding
from tests.bench import plain
from tests.bench.objects import timed

STEPS = ("recognize", "unnest", "select", "summarize")
REST, OUTSIDE = "rest", "outside"


class Split(msgspec.Struct, frozen=True):
    """The result: summarized files and bytes, seconds of CPU by step; `switches` counts changes between clocks."""

    files: int
    size: int
    summaries: int
    steps: dict[str, float]
    switches: int

    @property
    def seconds(self) -> float:
        """Seconds of CPU in essence and in selection."""
        return sum(seconds for step, seconds in self.steps.items() if step != OUTSIDE)


class Clocks:
    """CPU time by step; time counts for the innermost step."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys((*STEPS, REST, OUTSIDE), 0)
        self.switches = 0
        self._stack = [OUTSIDE]
        self._since = time.process_time_ns()

    def enter(self, step: str) -> None:
        """Start the clock of a step."""
        self._note()
        self._stack.append(step)

    def leave(self) -> None:
        """Return to the clock of the previous step."""
        self._note()
        self._stack.pop()

    def _note(self) -> None:
        now = time.process_time_ns()
        self.spent[self._stack[-1]] += now - self._since
        self._since = now
        self.switches += 1

    def function(self, step: str, called: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its time counts for a step."""

        def timed(*given: Any, **named: Any) -> Any:
            self.enter(step)
            try:
                return called(*given, **named)
            finally:
                self.leave()

        return timed

    def iterator(self, step: str, called: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Wrap a generator so that its time counts for a step, but not the time of its consumer."""

        def timed(*given: Any, **named: Any) -> Iterator[Any]:
            following = self.function(step, called(*given, **named).__next__)
            while True:
                try:
                    found = following()
                except StopIteration:
                    return
                yield found

        return timed

    def context(self, step: str, called: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a context manager so that its entry counts for a step."""

        @contextlib.contextmanager
        def timed(*given: Any, **named: Any) -> Iterator[Any]:
            with contextlib.ExitStack() as stack:
                yield self.function(step, stack.enter_context)(called(*given, **named))

        return timed


class _Reading:
    """A stream whose reads count as unnesting."""

    def __init__(self, stream: Any, clocks: Clocks) -> None:
        self._stream = stream
        self.read = clocks.function("unnest", stream.read)
        if hasattr(stream, "digest"):
            self.digest = clocks.function("unnest", stream.digest)


def _unnester(found: Container | Encoding, clocks: Clocks) -> Container | Encoding:
    if isinstance(found, Container):
        return found._replace(open=clocks.iterator("unnest", found.open))
    return found._replace(open=clocks.function("unnest", found.open))


FUNCTIONS: Sequence[tuple[str, Any, Sequence[str]]] = (
    ("recognize", walk, ("recognize", "placed")),
    ("unnest", walk, ("peek",)),
    ("select", plain, ("select",)),
    ("select", selection, ("by_name", "by_type", "beside", "candidate")),
    ("select", software_package.Unit, ("enter", "wants", "declare", "take", "tell")),
    ("summarize", walk, ("summarize",)),
)
"""The functions of each step, with the namespaces in which callers find them."""


def _mended(clocks: Clocks) -> Iterator[tuple[Any, str, Any]]:
    """The wrapped replacements: namespace, name and replacement."""
    for step, where, names in FUNCTIONS:
        for name in names:
            yield where, name, clocks.function(step, getattr(where, name))
    for name in ("Hashed", "Counted"):
        yield walk, name, partial(_reading, getattr(walk, name), clocks)
    yield walk, "seekable", clocks.context("unnest", _streams.seekable)
    yield walk, "UNNESTERS", {kind: _unnester(found, clocks) for kind, found in walk.UNNESTERS.items()}


def _reading(made: Callable[..., Any], clocks: Clocks, *given: Any) -> _Reading:
    return _Reading(made(*given), clocks)


@contextlib.contextmanager
def _replaced(mended: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(where, name, getattr(where, name)) for where, name, _ in mended]
    for where, name, found in mended:
        setattr(where, name, found)
    try:
        yield
    finally:
        for where, name, found in before:
            setattr(where, name, found)


def split(roots: Sequence[bytes], *, plainly: bool = False) -> Split:
    """Summarize everything below some folders in this process; `plainly` omits the clocks of the steps."""
    recognize.preload()
    summarize.preload()
    files = size = summaries = 0
    with tempfile.TemporaryDirectory() as out, contextlib.ExitStack() as stack:
        clocks = Clocks()
        inner = () if plainly else tuple(_mended(clocks))
        stack.enter_context(_replaced([*inner, (plain, "essence", clocks.iterator(REST, essence))]))
        for root in roots:
            process = plain.Process(root, Path(out))
            for path in plain.walk(root, Selection()):
                worked = process.work(path)
                files, size, summaries = files + 1, size + worked.size, summaries + worked.summaries
            process.out.close()
        clocks.enter(OUTSIDE)
    return Split(files, size, summaries, {step: spent / 1e9 for step, spent in clocks.spent.items()}, clocks.switches)


def measured(roots: Sequence[Path], work: Path, *, plainly: bool = False) -> Split:
    """Run `split` in a separate process. Raises BenchError."""
    command = [sys.executable, "-m", "tests.bench.steps", "plainly" if plainly else "clocked", *roots]
    return msgspec.convert(timed(command, work).said, Split)


if __name__ == "__main__":
    gc.freeze()
    found = split([os.fsencode(root) for root in sys.argv[2:]], plainly=sys.argv[1] == "plainly")
    print(msgspec.json.encode(found).decode())
