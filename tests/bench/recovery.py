"""Measures the recovery of a table with many rows: a Harvest worker against a bare consumer that reads the same changelog.

The table is that of `register.main`, with rows as that stage writes them. A worker is timed from its start to its first output in
every partition, for a record that waits there. The same with an empty table is its start-up, which is subtracted. A worker whose
store was closed properly and matches the changelog is measured, too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from operator import gt
from pathlib import Path
from typing import Any

import msgspec

from processors.broker.entry import Entry
from schemas.codec import encode
from schemas.records import Summary
from streams.kafka.client.admin import Admin, plan_topics
from streams.kafka.client.cluster import Cluster
from streams.sandbox.values import SandboxLimits
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import TopologySettings, topology
from tests.bench.clusters import LOOK, PARTITIONS, RETENTION, Watch, fill, processes, read, servers, stop, topics
from tests.bench.figures import Figure
from tests.bench.objects import HARVEST

STAGE = "register.main"
RECOVERS = 1_800.0
"""Maximum seconds of a recovery: its progress is not visible from outside."""
INPUT, OUTPUT = "summaries", "broker.main"
ROW = b"r|"
"""Prefix before the OID in the key of a row."""


def summary(number: int, version: int) -> Summary:
    """A short summary."""
    oid, url = f"{number:064x}", f"file:///usr/share/doc/package-{number // 8}/part-{number % 8}.html"
    attributes = {"title": (f"Part {number % 8} of package {number // 8}",), "keywords": ("part", "package", "documentation")}
    about: dict[str, Any] = {
        "oid": oid,
        "url": url,
        "object_url": url,
        "gatherer": "bench",
        "type": "HTML",
        "md5": f"{number:032x}",
    }
    return Summary(**about, version=version, time=version, size=number, attributes=attributes)


def rows(count: int) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each row, as `register` writes them."""
    for number in range(count):
        one = summary(number, 1)
        entry = Entry(1, 1, one.content, "", (), 0, encode(one))
        yield ROW + one.oid.encode(), msgspec.msgpack.encode(entry)


def filled(cluster: Cluster, count: int) -> None:
    """Create the topics of a cluster, and `count` rows in the changelog. Raises BenchError."""
    list(Admin(cluster).apply(plan_topics(topology(TopologySettings()), cluster, RETENTION, SandboxLimits().frame)))
    # Rows are in the partition of their OID's records, which is not that of the row's key.
    fill(cluster.brokers, cluster.changelog(STAGE), rows(count), lambda key: partition_of(key.removeprefix(ROW), PARTITIONS))


class Table:
    """A table with `count` rows, and the data folder of its worker."""

    def __init__(self, cluster: Cluster, folder: Path, count: int) -> None:
        self.cluster, self.folder, self.count = cluster, folder, count
        self._asked = 0
        self._before = [0] * PARTITIONS
        filled(cluster, count)

    def answers(self) -> float:
        """Seconds from the start of a worker to its first output in every partition; then it is stopped. Raises BenchError."""
        self._ask()
        told = {
            "HARVEST_GATHERER": "bench",
            "HARVEST_KAFKA_BROKERS": self.cluster.brokers,
            "HARVEST_KAFKA_PREFIX": self.cluster.prefix,
        }
        command: list[str | Path] = [*HARVEST, "worker", STAGE, "--data", self.folder / "data"]
        begun = time.perf_counter()
        with processes([command], self.folder, told) as started, closing(Watch(self.cluster.brokers, started, RECOVERS)) as watch:
            seconds = self._answered(watch, begun)
            stop(started)
            self._before = watch.ends(self.cluster.topic(OUTPUT))
        return seconds

    def _ask(self) -> None:
        """Append one record to each partition, newer than its row."""
        self._asked += 1
        found: dict[int, Summary] = {}
        number = 0
        while len(found) < PARTITIONS:
            one = summary(number, 1 + self._asked)
            found.setdefault(partition_of(one.oid.encode(), PARTITIONS), one)
            number += 1
        fill(self.cluster.brokers, self.cluster.topic(INPUT), ((one.oid.encode(), encode(one)) for one in found.values()))

    def _answered(self, watch: Watch, begun: float) -> float:
        while True:
            now = watch.ends(self.cluster.topic(OUTPUT))
            if all(map(gt, now, self._before)):
                return time.perf_counter() - begun
            watch.check(now)
            time.sleep(LOOK)

    def read(self) -> float:
        """Seconds that a bare consumer takes to read the changelog, storing nothing. Raises BenchError."""
        begun = time.perf_counter()
        for _ in read(self.cluster.brokers, self.cluster.changelog(STAGE), self.count):
            pass
        return time.perf_counter() - begun


def measured(count: int, work: Path) -> Iterator[Figure]:
    """Measure start-up, recovery, a start with an intact store, and the bare consumer."""
    with ExitStack() as stack:
        (kafka,) = stack.enter_context(servers("kafka"))

        def table(count: int) -> Table:
            prefix = f"{stack.enter_context(topics(kafka)).prefix}-"
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=work)))
            return Table(Cluster(kafka, prefix, PARTITIONS), folder, count)

        start_up = table(0).answers()
        full = table(count)
        bare = full.read()
        recovered = full.answers()
        clean = full.answers()
    took = max(recovered - start_up, 0.001)
    yield Figure("recovery", "start-up", start_up, "s", "a worker whose table has no rows: to its first answers")
    yield Figure("recovery", "start, store empty", recovered, "s", f"{count:,} rows in {PARTITIONS} partitions")
    yield Figure("recovery", "recovery", took, "s", f"without start-up; a bare confluent-kafka reads them in {bare:.2f} s")
    yield Figure("recovery", "rows recovered", count / took, "rows/s", f"a bare confluent-kafka: {count / bare:,.0f}")
    yield Figure("recovery", "bare reader to recovery", bare / took, "ratio", "it keeps nothing")
    yield Figure("recovery", "start, store in order", clean, "s", "the same table, its worker stopped before")
