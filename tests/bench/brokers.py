"""Measures several Brokers and views on the embedded runner: CPU time of this process, in one run.

Ten Brokers with ten views each are filled from the same summaries as one Broker without views; a view is made over what a Broker
holds, beside a rebuilding of its index; a search in a view, beside the same query typed; a pass of statistics, beside reading the
archive. Summaries are made of words by their frequency in English (Zipf's law), two or three hundred for each.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from statistics import median

from processors.broker.definition import MAIN, Broker
from processors.broker.views import created
from processors.query import parse
from processors.query.terms import Views
from schemas.codec import decode
from schemas.records import Summary, View
from streams.embedded.runner import Embedded, EmbeddedSettings
from streams.logs import StoreLog
from streams.operations.indexes import open_index_at
from streams.operations.rebuild import in_folder
from streams.operations.selection import Selection
from streams.operations.views import written_out
from streams.routing.counting import count_words
from streams.store import Store
from streams.store.data_folder import index_folder
from streams.topology.flow import TopologySettings, archive, views
from tests.bench.figures import BenchError, Figure, Goal

BROKERS = 10
VIEWS = 10
VOCABULARY = 20_000
WORDS = 250
NOW = 1_700_000_000_000
CHUNK = 2_000
SEARCHES = 40
WHAT = "CPU time of the runner's process, indexes included"


def measured(records: int, held: int, rounds: int, work: Path) -> Iterator[Figure]:
    """Yield the figures for `records` that ten Brokers take, and a Broker that holds `held` summaries. Raises BenchError."""
    made = list(summaries(records))
    one = filled(work / "one", (Broker(),), made, {})
    names = tuple(Broker(name=f"b{number}") for number in range(BROKERS))
    ten = filled(work / "ten", names, made, {broker.name: [f"w{7 + 3 * n}" for n in range(VIEWS)] for broker in names})
    yield Figure("brokers", "one, without views", records / one, "records/s of CPU", WHAT)
    yield Figure("brokers", "ten, ten views each", records / ten, "records/s of CPU", WHAT)
    yield Figure("brokers", "ten to one", ten / one, "ratio", WHAT, Goal("<=", 12))
    yield from _views(held, rounds, work / "held")


def summaries(count: int) -> Iterator[Summary]:
    """Make summaries of words `w0`, `w1`, ... by Zipf's law, the same in each run."""
    drawn = random.Random(1)
    weights = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))
    names = [f"w{rank}" for rank in range(VOCABULARY)]
    for number in range(count):
        text = " ".join(drawn.choices(names, cum_weights=weights, k=WORDS))
        url = f"file:///bench/{number:06}.txt"
        digest = hashlib.sha256(url.encode()).hexdigest()
        yield Summary(
            oid=digest, url=url, object_url=url, gatherer="bench", version=NOW, time=NOW, type="RawText", size=len(text),
            md5=digest[:32], sha256=digest, attributes={"title": (f"Number {number}",), "partial-text": (text,)},
        )  # fmt: skip


def filled(folder: Path, brokers: tuple[Broker, ...], made: Sequence[Summary], kept: dict[str, list[str]]) -> float:
    """Fill Brokers, each with a view for each of some words; return the seconds of CPU. Raises BenchError."""
    runner = Embedded(folder, EmbeddedSettings(flow=TopologySettings(brokers=brokers)), _failed, fetching=False)
    for name, wanted in kept.items():
        runner.append({views(name).name: [(0, created({}, word, word, NOW)) for word in wanted]})
    for start in range(0, len(made), CHUNK):
        runner.append({"summaries": [(None, one) for one in made[start : start + CHUNK]]})
    return asyncio.run(_run(runner))


async def _run(runner: Embedded) -> float:
    begun = time.process_time()
    async with runner:
        await runner.run()
    return time.process_time() - begun


def _views(held: int, rounds: int, folder: Path) -> Iterator[Figure]:
    """Measure a view made later, a search in it, and a pass of statistics, over a Broker that holds `held` summaries."""
    filled(folder, (Broker(),), list(summaries(held)), {})
    view = created({}, "found", "w40", NOW)
    runner = Embedded(folder, EmbeddedSettings(), _failed, fetching=False)
    runner.append({views(MAIN).name: [(0, view)]})
    swept = asyncio.run(_run(runner))
    with Store(folder, readonly=True) as store:
        log = StoreLog(store)
        rebuilt = _cpu(lambda: in_folder(log, Selection(archive(MAIN).name), index_folder(folder, MAIN)))
        yield Figure("view", "made, to an index rebuild", swept / rebuilt, "ratio", f"{held:,} summaries; {WHAT}", Goal("<=", 1))
        yield from _searched(folder, written_out(log, MAIN), view, rounds)
        counted = _cpu(lambda: count_words(log, Broker()))
        read = _cpu(lambda: _read(log))
    yield Figure("statistics", "a pass, to reading the topic", counted / read, "ratio", "decoded records", Goal("<=", 3))


def _searched(folder: Path, known: Views, view: View, rounds: int) -> Iterator[Figure]:
    """Compare searches in a view with the same queries typed, in turn; texts are parsed each time."""
    with closing(open_index_at("", "", folder, MAIN)) as index:

        def ask(text: str, views_of: Views | None) -> float:
            begun = time.perf_counter()
            index.search(parse(text, views_of), 10)
            return time.perf_counter() - begun

        ask(view.query, None)
        pairs = [
            (ask(f"view:{view.path} w{number}", known), ask(f"({view.query}) w{number}", None))
            for _ in range(rounds)
            for number in range(SEARCHES)
        ]
    ratio = median(in_view for in_view, _ in pairs) / median(typed for _, typed in pairs)
    yield Figure("view", "searched, to the query typed", ratio, "ratio", f"medians of {len(pairs)} searches", Goal("<=", 1.1))


def _read(log: StoreLog) -> None:
    """Read and decode the archive of the Broker."""
    topic = archive(MAIN).name
    for partition, end in enumerate(log.ends(topic)):
        offset = 0
        while offset < end and (batch := log.read(topic, partition, offset, CHUNK)):
            for logged in batch:
                if logged.value is not None:
                    decode(logged.value)
            offset = batch[-1].offset + 1


def _cpu(work: Callable[[], object]) -> float:
    """Return the seconds of CPU of this process that some work takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _failed(line: str) -> None:
    raise BenchError(line)
