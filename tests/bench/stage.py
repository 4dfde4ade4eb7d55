"""Measures messages/s of a stage that does nothing, on Harvest's agent, against bare Faust, aiokafka and confluent-kafka.

Each contender (`contenders.py`) is a process of its own; all records are in the topic when it starts. The broker's timestamps of
the outputs are the clock, from the first output to the last, so start-up does not count. Contenders alternate, round by round, and
the best round of each counts. CPU is that of the process, without the broker's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from schemas.codec import encode
from schemas.records import Holder
from tests.bench.clusters import LOOK, PARTITIONS, Watch, fill, module, processes, read, servers, topics
from tests.bench.contenders import WHO, Task
from tests.bench.cpu import spent
from tests.bench.figures import Figure

NAMES = {"harvest": "ours", "faust": "Faust", "aiokafka": "aiokafka", "confluent": "confluent-kafka"}
STAMPED = {"message.timestamp.type": "LogAppendTime"}


class Ran(NamedTuple):
    """The result of a contender: messages/s, and microseconds of CPU per message."""

    rate: float
    cost: float


def records(count: int) -> Iterator[tuple[bytes, bytes]]:
    """The input: small records with distinct keys."""
    for at in range(count):
        url = f"file:///usr/share/doc/package-{at // 8}/part-{at % 8}.html"
        content = f"{at:032x}-{at}"
        holder = Holder(content=content, oid=f"{at:064x}", url=url, member=False, version=1, joined=True)
        yield content.encode(), encode(holder)


def ran(kafka: str, who: str, count: int, work: Path, *, rows: bool) -> Ran:
    """Run one contender from the first record to the last. Raises BenchError."""
    with ExitStack() as stack:
        made = stack.enter_context(topics(kafka))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=work)))
        task = Task(kafka, f"{made.prefix}-", str(folder / "tables"), PARTITIONS, rows)
        made.make("in", PARTITIONS)
        made.make("out", PARTITIONS, STAMPED)
        made.make("rejected", PARTITIONS)
        fill(kafka, task.source, records(count))
        command = module("tests.bench.contenders", who, msgspec.json.encode(task).decode())
        (process,) = stack.enter_context(processes([command], folder, {}))
        watch = stack.enter_context(closing(Watch(kafka, [process])))
        before = 0.0
        while (done := sum(watch.ends(task.target))) < count:
            # The CPU at the last check before any output: start-up is subtracted.
            before = before if done else spent(process.pid)
            watch.check(done)
            time.sleep(LOOK)
        cost = (spent(process.pid) - before) / count
        while (committed := sum(watch.committed(task.group, task.source))) < count:
            watch.check((done, committed))
            time.sleep(LOOK)
        stamps = [message.timestamp()[1] for message in read(kafka, task.target, sum(watch.ends(task.target)))]
        return Ran(_rate(stamps, count), cost * 1e6)


def _rate(stamps: list[int], count: int) -> float:
    """Messages/s after the first batch. Duplicates count once."""
    begun, ended = min(stamps), max(stamps)
    twice = len(stamps) - count
    return max(1, sum(stamp > begun for stamp in stamps) - twice) / max(1, ended - begun) * 1_000


def measured(count: int, rounds: int, work: Path) -> Iterator[Figure]:
    """Measure all contenders, and the ratios of Harvest to each."""
    wanted = [(who, False) for who in WHO] + [("harvest", True), ("faust", True)]
    found: dict[tuple[str, bool], list[Ran]] = {one: [] for one in wanted}
    with servers("kafka") as (kafka,):
        for number in range(rounds):
            for who, rows in wanted if number % 2 == 0 else reversed(wanted):
                found[who, rows].append(ran(kafka, who, count, work, rows=rows))
    best = {one: Ran(max(run.rate for run in runs), min(run.cost for run in runs)) for one, runs in found.items()}
    for (who, rows), one in best.items():
        what = "and a row for each" if rows else "no rows"
        name = f"{NAMES[who]}{', rows' if rows else ''}"
        yield Figure("stage", name, one.rate, "messages/s", f"{count:,} records, {what}; {one.cost:,.0f} us of CPU each")
    for (who, rows), one in best.items():
        if who != "harvest":
            ours, name = best["harvest", rows], f"ours to {NAMES[who]}{', rows' if rows else ''}"
            yield Figure("stage", name, ours.rate / one.rate, "ratio", f"in CPU: {one.cost / max(ours.cost, 1.0):.2f}")
