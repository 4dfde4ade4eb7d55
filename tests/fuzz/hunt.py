"""The hunt: generates inputs for one target and runs them in a child process, which an input may kill.

Strategy: an input that reaches new lines of the project's code is kept and mutated further. The child writes each input into
memory shared with its parent before it runs it; if the child dies or hangs, the parent knows the input. Findings are reduced.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import itertools
import mmap
import os
import pickle
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.fuzz.laws import Broken, hold
from tests.fuzz.mutate import Mutator
from tests.fuzz.targets import Target
from tests.fuzz.watch import ROOT, Overrun, Watch

STEPS, STEPS_A_BYTE = 2_000_000, 400
"""Maximum number of lines and calls for an input: a constant, and an addition for each byte."""
GROWTH, SIZES, FLOOR = 8, (2_048, 8_192, 32_768), 50_000
"""A fragment repeated four times as often may take at most GROWTH times the steps, plus FLOOR; SIZES are bytes."""
MEMORY = 256 << 10
"""Maximum growth of the peak memory of the process by one input, in kB."""
CPU = 60
"""Seconds of CPU for one input, which ends hangs in the code of libraries. Linear work takes some hundredths of a second."""
ROOM = 8 << 20
AGAIN, GROWING = 16, 24
"""Every AGAIN-th input is run twice; every GROWING-th has a repeated fragment."""
POOL = 1_000
ENOUGH = 20
"""Number of findings that end a hunt: many findings have few causes."""
REDUCED = 300
"""Maximum number of smaller inputs that reduction tries."""


class Found(NamedTuple):
    """An input that breaks a law."""

    target: str
    seed: str
    """The seed of the process that generated the input."""
    number: int
    """The number of the input in that process."""
    why: str
    data: bytes

    @property
    def kind(self) -> str:
        """The message without numbers and quoted parts, equal for findings of one cause."""
        return re.sub(r"\d+|'.*'", "", self.why.partition("\n")[0])


class Report(NamedTuple):
    """The result of a hunt."""

    inputs: int
    kept: int
    """Number of inputs that reached new lines."""
    found: tuple[Found, ...]
    slowest: tuple[float, bytes] = 0.0, b""
    """The slowest input and its seconds of CPU; no law limits these."""


def check(target: Target, data: bytes, watch: Watch, *, again: bool = False) -> str:
    """Run a target on an input; return "" or the law that it breaks."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limit = STEPS + STEPS_A_BYTE * len(data)
    try:
        outcome = watch.run(lambda: target.run(data), limit)
        fresh, count = watch.fresh, watch.count
        if again:
            hold(watch.run(lambda: target.run(data), limit) == outcome, "the same input has another outcome")
            watch.fresh, watch.count = fresh, count
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        hold(grown <= MEMORY, f"takes {grown} kB of memory")
    except (Broken, Overrun) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - all that a target raises is a fault
        return f"{type(error).__name__}: {error} at {_place(error)}\n{traceback.format_exc()}"
    return ""


def _place(error: Exception) -> str:
    ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(str(ROOT))]
    return ours[-1].name if ours else ""


def grows(target: Target, make: Callable[[int], bytes], watch: Watch) -> str:
    """Run a target on longer and longer repetitions of a fragment; return "" or that the work grows faster than the input."""
    counts = []
    for size in SIZES:
        if why := check(target, make(size), watch):
            return why
        counts.append(watch.count)
    if all(more > GROWTH * less + FLOOR for less, more in itertools.pairwise(counts)):
        return f"no linear work: {', '.join(map(str, counts))} steps for {', '.join(map(str, SIZES))} bytes"
    return ""


class _Box:
    """Memory shared by parent and child, with the current input and its number."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, ROOM)

    def put(self, number: int, data: bytes) -> None:
        data = data[: ROOM - 16]
        self._map[:16] = number.to_bytes(8, "big") + len(data).to_bytes(8, "big")
        self._map[16 : 16 + len(data)] = data
        signal.setitimer(signal.ITIMER_PROF, CPU)

    def get(self) -> tuple[int, bytes]:
        number, size = int.from_bytes(self._map[:8], "big"), int.from_bytes(self._map[8:16], "big")
        return number, self._map[16 : 16 + size]


def _inputs(target: Target, chance: random.Random, pool: list[bytes]) -> Iterator[bytes | Callable[[int], bytes]]:
    """The corpus, then inputs generated from it."""
    yield from target.corpus
    mutator = Mutator(chance, target.words, target.corpus)
    for number in range(sys.maxsize):
        # The newest inputs are the most likely to lead to further new lines.
        one = chance.choice(pool[-8:] if pool and chance.random() < 0.3 else [*target.corpus, *pool])
        yield mutator.repeated(one) if number % GROWING == GROWING - 1 else mutator.mutate(one)


def _work(target: Target, seed: str, runs: int, until: float, box: _Box) -> Report:
    """Run the inputs, in the child process."""
    watch, pool = Watch(), list[bytes]()
    found: dict[str, Found] = {}
    number = kept = failed = 0
    slowest = 0.0, b""
    for number, made in enumerate(_inputs(target, random.Random(f"{seed} {target.name}"), pool)):
        if number >= runs + len(target.corpus) or failed >= ENOUGH or time.monotonic() > until:
            break
        data = made if isinstance(made, bytes) else made(SIZES[-1])
        box.put(number, data)
        start = time.process_time()
        why = check(target, data, watch, again=number % AGAIN == 0) if isinstance(made, bytes) else grows(target, made, watch)
        slowest = max(slowest, (time.process_time() - start, data))
        if why:
            one = Found(target.name, seed, number, why, data)
            found.setdefault(one.kind, one)
            failed += 1
        elif watch.fresh and number >= len(target.corpus):
            kept += 1
            pool.append(data)
            del pool[:-POOL]
    return Report(number, kept, tuple(found.values()), slowest)


def apart(work: Callable[[], Report]) -> Report | str:
    """Return the result of `work` in a child process, or how the child died."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(BaseException):
            # The parent reports how the child died.
            faulthandler.disable()
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.close(reading)
            with os.fdopen(writing, "wb") as out:
                pickle.dump(work(), out)
            status = 0
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        data = answer.read()
    status = os.waitpid(pid, 0)[1]
    if status:
        hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
        return f"hangs: more than {CPU} s of CPU" if hung else f"the process dies of it: wait status {status}"
    report: Report = pickle.loads(data)  # noqa: S301 - our own child wrote it
    return report


def hunt(target: Target, seed: str, runs: int, seconds: float = 3_600.0) -> Report:
    """Try `runs` inputs for at most `seconds`, until the child dies of one; reduce all findings."""
    until, box = time.monotonic() + seconds, _Box()
    report = apart(lambda: _work(target, seed, runs, until, box))
    if isinstance(report, str):
        number, data = box.get()
        report = Report(number + 1, 0, (Found(target.name, seed, number, report, data),))
    found = []
    for one in report.found:
        smaller = apart(lambda one=one: Report(0, 0, (reduce(target, one),)))  # type: ignore[misc]
        found.append(one if isinstance(smaller, str) else smaller.found[0])
    return report._replace(found=tuple(found))


def once(target: Target, data: bytes) -> str:
    """Run one input in a child process; return "" or the law that it breaks."""
    box, watch = _Box(), Watch()

    def work() -> Report:
        # Work that is done only once (imports, caches) must not count for the input.
        check(target, target.corpus[0], watch)
        box.put(0, data)
        why = check(target, data, watch, again=True)
        return Report(1, 0, (Found(target.name, "", 0, why, data),) if why else ())

    report = apart(work)
    return report if isinstance(report, str) else "".join(f.why for f in report.found)


def reduce(target: Target, found: Found) -> Found:
    """Reduce a finding: leave out halves, quarters and so on of the input while it still breaks the law in the same way.

    Inputs that hang, or break the law of linear work, stay as they are, since each attempt takes long.
    """
    slow = "hangs" in found.why or "linear" in found.why
    data, tried, step = found.data, 0, 0 if slow else max(1, len(found.data) // 2)
    dies, watch = "dies" in found.why, Watch()
    most = REDUCED // 10 if dies or "steps" in found.why else REDUCED
    while step and tried < most:
        at, less = 0, data
        while at < len(data) and tried < most:
            less = data[:at] + data[at + step :]
            tried += 1
            why = once(target, less) if dies else check(target, less, watch, again="same input" in found.why)
            if why and Found("", "", 0, why, b"").kind == found.kind:
                data, found = less, found._replace(why=why, data=less)
            else:
                at += step
        step //= 2
    return found


def saved(name: str, data: bytes) -> str:
    """Save an input of a target; return its path relative to the root."""
    folder = ROOT / "build" / "fuzz" / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    return path.relative_to(ROOT).as_posix()


def written(found: Found) -> str:
    """Save a finding; return its description, with the command that repeats it."""
    again = f"input={saved(found.target, found.data)}"
    if "linear" in found.why:
        again = f"seed={found.seed} runs={found.number + 1}"
    where = f"seed {found.seed}, input {found.number}, {len(found.data)} bytes"
    return f'{found.target} ({where}): {found.why}\n  again: make fuzz ARGS="target={found.target} {again}"'
