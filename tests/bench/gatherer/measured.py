"""The group `gatherer`: the experiment of 1995 on documents and on empty files, and the rate of the stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.bench import corpora
from tests.bench.figures import Figure
from tests.bench.gatherer.experiment import Site, experiment, site
from tests.bench.gatherer.rates import rates


def documents(count: int, work: Path, *, quick: bool) -> Path:
    """Return a tree of so many files: of the machine's documentation, or made ones."""
    if quick:
        return corpora.synthetic(work / "documents", count)
    found = [path for path in corpora.found(corpora.DOCUMENTATION) if os.path.isfile(path) and not os.path.islink(path)]
    return corpora.copied(corpora.neighbours(found, count), work / "documents")


def emptied(here: Site, folder: Path) -> Path:
    """Return a tree with the names of a site, and empty files."""
    for path in here.paths:
        target = os.path.join(os.fsencode(folder), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "wb").close()
    return folder


def measured(count: int, requests: int, rounds: int, work: Path, *, quick: bool) -> Iterator[Figure]:
    """Measure the group for so many files; `requests`: of a stream, for each average. Raises BenchError, ServerError, ToolError."""
    full = site("documents", documents(count, work, quick=quick), work / "full")
    empty = site("empty files", emptied(full, work / "empty files"), work / "empty")
    yield from experiment(empty, requests)
    stream = yield from experiment(full, requests)
    yield from rates(stream.body, full.work / "data", work, requests, rounds)
