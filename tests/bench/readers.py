"""Measures Harvest and a tika-server on the same documents: similarity of their results, and documents/s on the same cores.

Strategy: similarity is that of `tests/parity`, over all documents of a kind. Speed is measured in rounds: the server at each
handler and number of clients of a grid, then `harvest summarize --json` with its sandbox, one process per core, full text on. Each
counts with the median of its rounds; the best cell of the server counts, even with a handler that returns text alone, although
Harvest returns links as well.

Laws:
- The server has read every document before the measurement, by as many clients as it will ever have.
- The server's clients have the bytes in memory; Harvest reads its files. Harvest's start-up (the time for one empty document) is
  subtracted: the server was started before.
- A document that a reader fails on counts as read; the number of failures is shown beside.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from streams.config.settings import cores
from tests.bench.clusters import servers
from tests.bench.cpu import spent
from tests.bench.documents import documents, made
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.memory import children
from tests.bench.objects import HARVEST, buried, ended, environment
from tests.bench.packages import files
from tests.parity.compare import Compared, compared, facts, links, text
from tests.parity.readings import FULL, Tika, TikaError, harvest
from tests.servers import sharing

GRID = (*product(("text",), (1, 2, 4, 8)), ("xml", 2))
"""Handlers and numbers of clients. `text` returns text alone and is the fastest; only `xml`, the marked-up text, has links."""
GOALS = {"HTML": Goal(">=", 3), "PDF": Goal(">=", 1.5), "Office": Goal(">=", 1.5), "mail": Goal(">=", 1.5)}
ALIKE = Goal(">=", 0.9)
TIMES = {"HTML": 4, "PDF": 2, "Office": 2, "mail": 12, "EPUB": 16}
"""How often the documents of a kind are read for one measurement: it must take several times as long as Harvest's start-up."""
TOLD = 5


class Client:
    """Clients of a server, one connection for each thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._own = threading.local()

    def ask(self, document: tuple[str, bytes], handler: str) -> bool:
        """Whether the server can read a document."""
        tika: Tika = self._own.__dict__.setdefault("tika", Tika(self._url))
        try:
            tika.ask(*document, handler)
        except TikaError:
            return False
        return True


class Run(NamedTuple):
    """The cost of a run: seconds, and seconds of CPU of all reading processes (without those of a server's clients)."""

    seconds: float
    cpu: float


def served(url: str, bodies: Sequence[tuple[str, bytes]], clients: int, handler: str) -> Run:
    """Measure a server with a number of clients."""
    client, server = Client(url), sharing.keeper("tika")
    before, began = spent(server), time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        for _ in pool.map(lambda body: client.ask(body, handler), bodies):
            pass
    return Run(time.perf_counter() - began, spent(server) - before)


def summarized(paths: Sequence[Path], out: Path, jobs: int) -> Run:
    """Measure `harvest summarize`. Raises BenchError."""
    command = [*HARVEST, "summarize", "--json", "--jobs", str(jobs), *map(str, paths)]
    settings = environment() | {"HARVEST_ESSENCE_FULL_TEXT": str(FULL)}
    others = children(os.getpid())
    before, began = ended(), time.perf_counter()
    with out.open("wb") as output:
        # Exit code 1: some documents could not be read.
        done = subprocess.run(command, check=False, stdout=output, stderr=subprocess.PIPE, env=settings)
    seconds = time.perf_counter() - began
    buried(others)
    if done.returncode not in (0, 1) or not out.stat().st_size:
        raise BenchError(f"harvest summarize: {done.stderr.decode(errors='replace')[-1_000:]}")
    return Run(seconds, ended() - before)


def alike(kind: str, url: str, paths: Sequence[Path]) -> Iterator[Figure]:
    """Measure the similarity of texts, links and facts."""
    found, failed = _compared(url, paths)
    group = f"tika, {kind}"
    score = text(found)
    low = sorted(found, key=lambda one: one.f1)[:TOLD]
    worst = "; ".join(f"{one.name.partition('-')[2] or one.name}: {one.f1:.2f}" for one in low)
    yield Figure(group, "documents", len(found), "documents", f"{failed} more that Tika does not read")
    yield Figure(group, "F1 of the text, median", score.median, "token F1", "over documents, each counting as one", ALIKE)
    yield Figure(group, "F1 of the text, mean", score.mean, "token F1", f"{score.above:.1%} have 0.9 at least")
    yield Figure(group, "F1 of the text, worst", score.worst, "token F1", worst)
    counts = {"links": links(found), **facts(found)}
    for what, count in counts.items():
        if count.theirs:
            how = f"{count.ours:,} to Tika's {count.theirs:,}, of which {count.both:,} are ours"
            yield Figure(group, f"found: {what}", count.ours / count.theirs, "ratio", how, Goal(">=", 1))


def _compared(url: str, paths: Sequence[Path]) -> tuple[list[Compared], int]:
    found, failed = [], 0
    with Tika(url) as tika:
        for path in paths:
            body = path.read_bytes()
            try:
                theirs = tika.read(path.name, body)
            except TikaError:
                failed += 1
                continue
            found.append(compared(path.name, harvest(path.name, body), theirs))
    return found, failed


def speed(kind: str, url: str, paths: Sequence[Path], work: Path, rounds: int, grid: Sequence[tuple[str, int]]) -> Iterator[Figure]:
    """Measure documents/s of both."""
    group, jobs, times = f"tika, {kind}", cores(), TIMES.get(kind, 1)
    bodies = [(path.name, path.read_bytes()) for path in paths] * times
    for handler in ("text", "xml"):
        served(url, bodies, max(clients for _, clients in grid), handler)
    empty = work / "empty.txt"
    empty.touch()
    theirs: dict[tuple[str, int], list[Run]] = {how: [] for how in grid}
    ours: list[Run] = []
    for _ in range(rounds):
        for handler, clients in grid:
            theirs[handler, clients].append(served(url, bodies, clients, handler))
        start = summarized([empty], work / "out", jobs)
        whole = summarized(list(paths) * times, work / "out", jobs)
        # For the few generated documents of --quick, start-up is nearly all of the time.
        ours.append(Run(*(max(all_ - first, all_ / 10) for all_, first in zip(whole, start, strict=True))))
    rates = {how: len(bodies) / median(run.seconds for run in runs) for how, runs in theirs.items()}
    costs = {how: median(run.cpu for run in runs) * 1_000 / len(bodies) for how, runs in theirs.items()}
    rate, cost = len(bodies) / median(run.seconds for run in ours), median(run.cpu for run in ours) * 1_000 / len(bodies)
    for (handler, clients), each in rates.items():
        yield Figure(group, f"tika-server, {handler} x {clients}", each, "documents/s", "handler x clients")
    (handler, clients), best = max(rates.items(), key=lambda item: item[1])
    size = sum(len(body) for _, body in bodies) / len(bodies) / 1_000
    yield Figure(group, "harvest summarize", rate, "documents/s", f"{jobs} processes; {size:,.0f} kB a document")
    how = f"the server's best: {handler} x {clients}, {best:,.0f} documents/s"
    yield Figure(group, "to tika-server", rate / best, "ratio", how, GOALS.get(kind))
    how = f"the server's least: {min(costs.values()):,.2f}; of both, what others on the machine do is no part of it"
    yield Figure(group, "CPU of a document", cost, "ms", how)
    yield Figure(group, "CPU, tika-server's to ours", min(costs.values()) / cost, "ratio", "without the server's clients")


def measured(cache: Path, work: Path, rounds: int, *, quick: bool, few: int) -> Iterator[Figure]:
    """Measure all kinds of documents."""
    from processors.essence import summarize

    summarize.preload()
    folders: Mapping[str, Path] = made(work, few) if quick else documents(cache, work)
    grid = [("text", 1), ("xml", 2)] if quick else GRID
    with servers("tika") as (url,):
        for kind, folder in folders.items():
            paths = files(folder)
            yield from alike(kind, url, paths)
            yield from speed(kind, url, paths, work, rounds, grid)
