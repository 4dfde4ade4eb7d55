"""Measures objects/s of `harvest worker` on Kafka, end to end, with one and two workers, against the embedded runner.

All run on all cores of this machine, and so does the broker. Both fill the index of a data folder: with OpenSearch, the distributed
runner would be measured with an engine that the embedded one does not have (`sink` measures that). Start-up counts for neither: the
clock of the embedded runner begins with its run; that of the workers begins when they are ready and the root is requested. It ends
when the index has the last record of the Broker's archive. This is known only afterwards: all groups have read everything, and
nothing has changed for a while.

The speed of the same code varies by a fifth from one minute to the next, here. So each run of workers is compared with the embedded
run of its own round, and the median round counts. The first round does not count: a new broker takes several times the CPU, most of
it for compiling its own code, and brokers in production are not new.

The cost is given as CPU by stage and of the broker: processes wait for each other only while cores are idle.
"""

from __future__ import annotations

import random
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

from processors.identity import file_url
from schemas.records import Root
from streams.config.settings import cores
from streams.kafka.client import roots
from streams.kafka.client.admin import Admin, plan_topics
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.kafka.worker.worker import runnable_stages
from streams.sandbox.values import SandboxLimits
from streams.topology.flow import TopologySettings, topology
from tests.bench.clusters import LOOK, PARTITIONS, RETENTION, Watch, processes, servers, stop, topics
from tests.bench.cpu import by_stage, idle, spent
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.memory import below
from tests.bench.objects import HARVEST, Timed, gathering, timed
from tests.servers import sharing

GATHERER = "bench"
STAGES = runnable_stages(topology(TopologySettings()))
ONCE = "index.main"
"""The stage that only the first worker runs: an index in a folder has one writer."""
ARCHIVE = "broker.main"
QUIET = 2.5
"""Seconds without a change before the lag of the groups is checked: longer than the interval of their commits."""
BROKER = "Kafka"
COUNTS = (1, 2)
"""Numbers of workers."""
GOAL = Goal(">=", 0.5)


class Run(NamedTuple):
    """The result of some workers: seconds from request to index, number of summaries, seconds of CPU by stage."""

    seconds: float
    summaries: int
    cpu: Mapping[str, float]
    idle: float
    """Seconds that cores were idle."""


class Round(NamedTuple):
    """One run of each, one after the other."""

    plain: Timed
    runs: Mapping[int, Run]

    def ratio(self, count: int) -> float:
        """The speed of `count` workers relative to the embedded runner."""
        return float(self.plain.said["seconds"] / self.runs[count].seconds)


def _round(kafka: str, root: Path, work: Path) -> Round:
    return Round(embedded(root, work), {count: distributed(kafka, root, work, count) for count in COUNTS})


def embedded(root: Path, work: Path) -> Timed:
    """Run `harvest gather` on a tree."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        return timed(gathering([root], Path(folder) / "data"), Path(folder))


def distributed(kafka: str, root: Path, work: Path, workers: int) -> Run:
    """Run a number of `harvest worker` processes on a tree. Raises BenchError."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=work)))
        cluster = Cluster(kafka, f"{stack.enter_context(topics(kafka)).prefix}-", PARTITIONS)
        list(Admin(cluster).apply(plan_topics(topology(TopologySettings()), cluster, RETENTION, SandboxLimits().frame)))
        environ = {"HARVEST_GATHERER": GATHERER, "HARVEST_KAFKA_BROKERS": kafka, "HARVEST_KAFKA_PREFIX": cluster.prefix}
        command: list[str | Path] = [*HARVEST, "worker", "--data", folder / "data"]
        started: list[subprocess.Popen[bytes]] = []
        ports: list[int] = []
        for number in range(workers):
            stages = STAGES if number == 0 else tuple(stage for stage in STAGES if stage != ONCE)
            first = _ports(len(stages))
            ports += range(first, first + len(stages))
            more = {**environ, "HARVEST_WORKER_PORT": str(first), "HARVEST_WORKER_HOST": "127.0.0.1"}
            started += stack.enter_context(processes([[*command, *stages]], folder, more))
        watch = stack.enter_context(closing(Watch(kafka, started)))
        while not all(map(_ready, ports)):
            watch.check(None)
            time.sleep(LOOK)
        with KafkaLog(cluster, topology(TopologySettings())) as log:
            run = _measured(cluster, log, watch, root, [process.pid for process in started])
            stop(started)
        return run


def _ports(count: int) -> int:
    """The first of `count` consecutive free ports, below the range that systems assign to outgoing connections."""
    while True:
        first = random.randrange(20_000, 32_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def _measured(cluster: Cluster, log: KafkaLog, watch: Watch, root: Path, pids: Sequence[int]) -> Run:
    names = [cluster.topic(name) for name in log.topics() if not name.endswith(".ticks")]
    keeper = sharing.keeper("kafka")

    def looked() -> tuple[float, float, dict[str, float]]:
        seen = below()
        return time.perf_counter(), idle(), {**by_stage(pids, seen), BROKER: spent(keeper, seen)}

    begun, idle_before, before = looked()
    # Without limits, as `gather` requests a folder: packages lie deep in the cache.
    roots.ask(log, [Root(url=file_url(str(root).encode(), folder=True), run="", depth=-1, urls=0)])
    seen: object = None
    moved, idle_after, after = begun, idle_before, before
    while True:
        now = watch.ends(*names), watch.committed(cluster.group(ONCE), cluster.topic(ARCHIVE))
        watch.check(now)
        if now != seen:
            seen = now
            moved, idle_after, after = looked()
        elif time.perf_counter() - moved > QUIET and not sum(lag.lag for lag in log.lags(topology(TopologySettings()))):
            break
        time.sleep(4 * LOOK)
    spent_by = {who: after[who] - before.get(who, 0.0) for who in after}
    return Run(moved - begun, _held(log), spent_by, idle_after - idle_before)


def _held(log: KafkaLog) -> int:
    """Number of summaries in the archive."""
    held: dict[bytes, bool] = {}
    for partition, end in enumerate(log.ends(ARCHIVE)):
        offset = 0
        while batch := log.read(ARCHIVE, partition, offset, 1_000, until=end):
            held |= {logged.key: logged.value is not None for logged in batch}
            offset = batch[-1].offset + 1
    return sum(held.values())


def workers(name: str, root: Path, work: Path, rounds: int, *, warm: bool = True) -> Iterator[Figure]:
    """Measure the figures of one tree, `warm` after a round that does not count.

    Raises BenchError if the runners made different numbers of summaries.
    """
    with servers("kafka") as (kafka,):
        played = [_round(kafka, root, work) for _ in range(warm + rounds)]
    objects = played[0].plain.said["objects"]
    wrong = {run.summaries for one in played for run in one.runs.values()} - {played[0].plain.said["summaries"]}
    if wrong:
        raise BenchError(f"{name}: {wrong} summaries, the embedded runner made {played[0].plain.said['summaries']}")
    counted = played[warm:]
    middle = median_low(one.plain.said["seconds"] for one in counted)
    cost = median_low(one.plain.cpu for one in counted) / objects * 1_000
    group = f"workers, {name}"
    against = f"{objects:,} objects, {cores()} cores, {cost:.2f} ms of CPU each"
    yield Figure(group, "embedded", objects / middle, "objects/s", against)
    for count in COUNTS:
        yield from _figures(group, count, objects, counted)


def _figures(group: str, count: int, objects: int, counted: Sequence[Round]) -> Iterator[Figure]:
    who = f"{count} worker{'s' * (count > 1)}"
    ratios = [one.ratio(count) for one in counted]
    ratio = median_low(ratios)
    run = counted[ratios.index(ratio)].runs[count]
    rate = objects / run.seconds
    yield Figure(group, who, rate, "objects/s", f"{run.seconds:.1f} s; a process a stage, and the broker, on the same cores")
    against = f"the embedded run of its round; the rounds: {', '.join(f'{one:.3f}' for one in sorted(ratios))}"
    yield Figure(group, f"{who} to embedded", ratio, "ratio", against, GOAL)
    total = sum(run.cpu.values())
    for stage in (*STAGES, BROKER):
        took = run.cpu.get(stage, 0.0)
        yield Figure(
            group, f"{who}: {stage}", took / objects * 1_000, "ms/object", f"of CPU: {took:.1f} s, {took / total:.0%} of all"
        )
    busy, unused = total / run.seconds, run.idle / run.seconds
    others = max(0.0, cores() - busy - unused)
    against = f"of {cores()}; {unused:.2f} had nothing to do, {others:.2f} did something else"
    yield Figure(group, f"{who}: cores busy", busy, "cores", against)
