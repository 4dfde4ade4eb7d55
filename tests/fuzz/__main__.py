"""`make fuzz`: searches for inputs that break a law, for any length of time.

    make fuzz ARGS="seconds=600 target=zip"       all targets whose names contain `zip`, ten minutes in all
    make fuzz ARGS="target=unnest-zip input=F"    one input again

`seed=N` repeats a hunt, `runs=N` ends it after N inputs for each target, `jobs=N` is the number of processes (2). The exit code
tells whether anything was found.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fuzz.hunt import Report, hunt, once, saved, written
from tests.fuzz.targets import wanted

SETTINGS = {"seconds": "60", "target": "", "input": "", "seed": "", "runs": str(1 << 62), "jobs": "2"}
LEAST = 5.0
"""Minimum seconds of one hunt of a target."""
SLOW = 2.0
"""Seconds of CPU above which an input is worth reporting: linear work takes some tenths of a second with line counting."""


def settings(words: list[str]) -> Mapping[str, str]:
    """Parse the settings of the command line. Raises SystemExit for an unknown one."""
    given = dict(word.partition("=")[::2] for word in words)
    if unknown := sorted(set(given) - set(SETTINGS)):
        raise SystemExit(f"no such setting: {', '.join(unknown)} (known: {', '.join(SETTINGS)})")
    return {**SETTINGS, **given}


def work(name: str, seed: str, runs: int, seconds: float) -> Report:
    """Run one hunt, in a process of the pool."""
    return hunt(wanted(name)[0], seed, runs, seconds)


def hunted(names: list[str], given: Mapping[str, str]) -> Iterator[tuple[str, Report]]:
    """Yield all hunts as they end; with time left, targets are hunted again with the next seed."""
    jobs, seconds = int(given["jobs"]), float(given["seconds"])
    seed = given["seed"] or str(random.randrange(1 << 32))
    print(f"{len(names)} targets, seed {seed}", flush=True)
    slots = max(1, min(int(seconds * jobs / LEAST / len(names)), jobs if len(names) < jobs else 1))
    each = seconds * jobs / len(names) / slots
    seeds = [f"{seed}+{n}" if n else seed for n in range(slots)]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        made = [(n, pool.submit(work, n, s, int(given["runs"]), max(LEAST, each))) for n in names for s in seeds]
        yield from ((name, future.result()) for name, future in made)


def main() -> int:
    """Run the hunts and return the exit code."""
    given = settings(sys.argv[1:])
    chosen = wanted(given["target"])
    if not chosen:
        raise SystemExit(f"no target has {given['target']!r} in its name")
    if given["input"]:
        answers = [once(target, Path(given["input"]).read_bytes()) for target in chosen]
        print("\n".join(f"{target.name}: {why or 'holds'}" for target, why in zip(chosen, answers, strict=True)))
        return int(any(answers))
    count = 0
    for name, report in hunted([t.name for t in chosen], given):
        cpu, data = report.slowest
        slow = saved(name, data) if cpu > SLOW else ""
        took = f", the slowest took {cpu:.1f} s of CPU: {slow}" if slow else ""
        print(f"{name}: {report.inputs} inputs, {report.kept} of them reached something new{took}", flush=True)
        for found in report.found:
            count += 1
            print(written(found), flush=True)
    return int(count > 0)


if __name__ == "__main__":
    raise SystemExit(main())
