"""Gathers a whole tree twice: outcomes of all paths, memory, time and findings of the second run, sizes, search."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from processors.broker.definition import MAIN
from processors.query import parse
from schemas.records import Summary
from sinks.index.tantivy.index import TantivyIndex
from streams.store import Store
from streams.store.data_folder import index_folder
from tests.bench import corpora
from tests.bench.changes import change
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.memory import Sampled
from tests.bench.objects import HARVEST, environment, gathering, timed
from tests.bench.outcomes import outcomes, records

CHANGES = 20
QUERIES = 200
GIB = 1 << 30
WORD = re.compile(r"\b[a-z][a-z0-9]{2,14}\b")
TOLD = 5
"""Maximum number of reasons, or of paths without exactly one outcome, named in a line."""


class Run(NamedTuple):
    """A run of `harvest gather`: its closing table, seconds, the peak memory in bytes of all its processes, and their number."""

    said: dict[str, Any]
    seconds: float
    peak: int
    processes: int


def gather(roots: Sequence[Path], data: Path) -> Run:
    """Run `harvest gather` and sample its memory. Raises BenchError."""
    began = time.perf_counter()
    child = subprocess.Popen(
        gathering(roots, data), cwd=data.parent, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with Sampled(child.pid) as sampled:
        said, errors = child.communicate()
    seconds = time.perf_counter() - began
    if child.returncode:
        raise BenchError(f"harvest gather ended with {child.returncode}: {errors.decode(errors='replace')[-2_000:]}")
    return Run(json.loads(said.splitlines()[-1]), seconds, sampled.peak, sampled.processes)


def tree(roots: Sequence[Path], ours: Sequence[Path], work: Path) -> Iterator[Figure]:
    """Measure the figures of a tree; `ours` are the roots whose files may be changed."""
    data = work / "data"
    first = gather(roots, data)
    yield from accounted(data, roots)
    yield from _first(first, data)
    yield from _searched(data)
    expected = change(corpora.found(ours), CHANGES)
    second = gather(roots, data)
    yield from _second(first, second)
    for name, number in expected._asdict().items():
        yield Figure(
            "second run", f"objects {name}", second.said[name], "objects", f"{CHANGES} changes of each kind", Goal("=", number)
        )
    yield Figure(
        "second run", "paths without one outcome", len(outcomes(data, corpora.found(roots)).wrong), "paths", "", Goal("=", 0)
    )


def accounted(data: Path, roots: Sequence[Path]) -> Iterator[Figure]:
    """Count paths by outcome."""
    paths = corpora.found(roots)
    found = outcomes(data, paths)
    yield Figure("outcomes", "paths", len(paths), "paths", "find ( -type f -o -type l )")
    yield Figure("outcomes", "summarized", found.summarized, "paths")
    for kind, counts in (("refused", found.refused), ("rejected", found.rejected)):
        yield Figure("outcomes", kind, counts.total(), "paths", "; ".join(f"{n} {why}" for why, n in counts.most_common(TOLD)))
    for name in ("nothing", "several", "strangers", "unlike"):
        urls = getattr(found, name)
        yield Figure("outcomes", f"wrong: {name}", len(urls), "paths", " ".join(urls[:TOLD]), Goal("=", 0))


def _first(run: Run, data: Path) -> Iterator[Figure]:
    said = run.said
    yield Figure(
        "first run", "gather", said["objects"] / run.seconds, "objects/s", f"{said['objects']:,} objects in {run.seconds:.1f} s"
    )
    yield Figure("first run", "memory, most", run.peak / GIB, "GiB", f"PSS of {run.processes} processes", Goal("<=", 1))
    against = f"{said['bytes_in']:,} bytes of data"
    yield Figure("sizes", "summaries to data", said["bytes_summaries"] / said["bytes_in"], "bytes/byte", against)
    yield Figure("sizes", "index to data", _size(index_folder(data, MAIN)) / said["bytes_in"], "bytes/byte", against)
    yield Figure("sizes", "data folder to data", _size(data) / said["bytes_in"], "bytes/byte", "log, blobs of a week and index")


def _second(first: Run, second: Run) -> Iterator[Figure]:
    yield Figure("second run", "seconds", second.seconds, "s", f"the first run: {first.seconds:.1f}")
    yield Figure("second run", "to the first", second.seconds / first.seconds, "ratio", "whole processes", Goal("<", 0.1))
    yield Figure("second run", "memory, most", second.peak / GIB, "GiB", f"PSS of {second.processes} processes", Goal("<=", 1))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _searched(data: Path) -> Iterator[Figure]:
    queries = _queries(data)
    taken = []
    index = TantivyIndex(index_folder(data, MAIN), writable=False)
    try:
        for query in queries:
            began = time.perf_counter()
            index.search(parse(query))
            taken.append((time.perf_counter() - began) * 1_000)
    finally:
        index.close()
    cuts = quantiles(taken, n=100)
    yield Figure("search", "50 per cent", cuts[49], "ms", f"{QUERIES} queries of words of the corpus, in one process")
    yield Figure("search", "99 per cent", cuts[98], "ms", "the same")
    whole = [timed([*HARVEST, "search", query, "--data", data, "--json"], data.parent).seconds for query in queries[:3]]
    yield Figure("search", "harvest search", median(whole) * 1_000, "ms", "the whole process, start-up included")


def _queries(data: Path) -> list[str]:
    """Queries for words of the corpus: one word, both of two, either of two. Words are as frequent as in the corpus."""
    chance = random.Random(1994)
    with Store(data, readonly=True) as store:
        summaries = [one for number, one in enumerate(records(store, "summaries")) if number % 7 == 0 and isinstance(one, Summary)]
    words = []
    for summary in chance.sample(summaries, min(len(summaries), QUERIES)):
        text = " ".join(str(value) for values in summary.attributes.values() for value in values).lower()
        words += chance.choices(WORD.findall(text) or ["file"], k=3)
    singles = chance.choices(words, k=QUERIES // 2)
    return singles + [
        f"{chance.choice(words)} {joint} {chance.choice(words)}" for joint in ("AND", "OR") for _ in range(QUERIES // 4)
    ]
