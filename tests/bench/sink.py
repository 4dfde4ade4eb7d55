"""Measures documents/s of the index sink, from a real Kafka into a real OpenSearch, against raw `_bulk` loops.

The raw loop gets the output that the sink has to produce: the same documents as bytes of JSON, under the same mapping, with the
same versions; it only posts them, with the numbers of connections and batch sizes of the grid. The sink reads, decodes and analyzes
each record, and writes offsets to both.

The task of the sink is to keep the server busy. So the server has cores of its own, like an operator's separate machine; Kafka and
the writer run on the others. In the second figure all share the same cores, and the work that the loop is spared counts as well:
the faster the server, the more.

Each index is filled as by `harvest index rebuild`: refreshes are off. Otherwise a run of some seconds would mostly measure
refreshes, which are periodic: a slower writer has more of them, and smaller segments to merge.

The grid is measured once, and its best loops again, to find the best of all. In each round this loop runs before the sink and after
it, since the machine's speed changes; the median round counts. There are enough documents to exceed the effects of a young index:
few records are still cached from when they were written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import product
from statistics import harmonic_mean, median_low
from typing import Any

from opensearchpy import OpenSearch, TransportError

from schemas.codec import encode
from schemas.ports import Refused
from schemas.records import Removed, Summary
from sinks.index.opensearch.aliases import NEVER, drop, make, pace
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.opensearch.node import TOO_MANY, Node
from sinks.index.opensearch.schema import item
from streams.kafka.client.cluster import Cluster
from streams.kafka.sink.index_sink import IndexSink
from tests.bench.bench_index import corpus
from tests.bench.clusters import PARTITIONS, fill, servers, topics
from tests.bench.cpu import apart
from tests.bench.figures import BenchError, Figure, Goal
from tests.servers import sharing
from tests.servers.fixtures import TIMEOUT, Topics

BATCHES = (250, 1_000, 2_000)
CONNECTIONS = (1, 2, 4)
Round = tuple[float, float]
"""Documents/s of the best raw loop (mean of before and after the sink), and of the sink."""
BEST, AGAIN = 3, 3
"""Number of loops of the grid that are run again, and how often."""
GOAL = Goal(">=", 0.8)


class Watched(OpenSearchIndex):
    """An index that records when its offsets were first read, and when which offsets were written."""

    def __init__(self, url: str, alias: str) -> None:
        super().__init__(url, alias, fresh=False)
        self.begun = 0.0
        self.ended = 0.0
        self.passed: dict[int, int] = {}

    def offsets(self) -> Mapping[int, int]:
        """See OpenSearchIndex."""
        found = super().offsets()
        self.begun = self.begun or time.perf_counter()
        return found

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """See OpenSearchIndex."""
        refused = super().apply(changes, offsets)
        self.passed |= offsets
        self.ended = time.perf_counter()
        return refused


def raw(url: str, items: Sequence[bytes], batch: int, connections: int) -> float:
    """Documents/s of a raw bulk loop; 0 if the server lacks the memory for the batches (429)."""
    alias = f"bench-{uuid.uuid4().hex[:10]}"
    with closing(Node(url)) as node, OpenSearch(url, timeout=TIMEOUT, pool_maxsize=connections) as client:
        make(node, f"{alias}-0", alias)
        pace(node, alias, NEVER)
        bodies = [b"".join(items[at : at + batch]) for at in range(0, len(items), batch)]

        def post(body: bytes) -> Any:
            return client.transport.perform_request("POST", f"/{alias}/_bulk", params={"filter_path": "errors"}, body=body)

        begun = time.perf_counter()
        try:
            with ThreadPoolExecutor(connections) as pool:
                answers = list(pool.map(post, bodies))
        except TransportError as error:
            if error.status_code != TOO_MANY:
                raise
            return 0.0
        finally:
            seconds = time.perf_counter() - begun
            drop(node, f"{alias}-0")
    if any(answer["errors"] for answer in answers):
        raise BenchError("a raw bulk was refused")
    return len(items) / seconds


def sink(cluster: Cluster, url: str, documents: int) -> float:
    """Documents/s of the sink, from the beginning of its topic to its end."""
    index = Watched(url, f"bench-{uuid.uuid4().hex[:10]}")
    pace(index.node, index.alias, NEVER)
    try:
        IndexSink(cluster, "main", index).run(lambda: sum(index.passed.values()) >= documents)
    finally:
        drop(index.node, f"{index.alias}-0")
        index.close()
    return documents / (index.ended - index.begun)


def filled(kafka: str, made: Topics, summaries: Sequence[Summary]) -> Cluster:
    """Create a Broker's topic with these summaries."""
    cluster = Cluster(kafka, f"{made.prefix}-")
    topic = made.make("broker.main", PARTITIONS)
    fill(kafka, topic, ((summary.oid.encode(), encode(summary)) for summary in summaries))
    return cluster


def measured(documents: int, rounds: int, *, quick: bool) -> Iterator[Figure]:
    """Measure the grid, the sink, and their ratio: on separate cores, and on the same."""
    summaries = corpus(documents)
    items = list(map(item, summaries))
    grid = [(100, 1), (100, 2)] if quick else list(product(BATCHES, CONNECTIONS))
    with servers("kafka", "opensearch") as (kafka, url), topics(kafka) as made:
        cluster = filled(kafka, made, summaries)

        def play(how: tuple[int, int], times: int = rounds) -> list[Round]:
            return [_round(partial(raw, url, items, *how), partial(sink, cluster, url, documents)) for _ in range(times)]

        with apart(sharing.keeper("opensearch")):
            # A first run of both warms up the servers' compilers.
            if not quick:
                play(grid[-1], 1)
            found = {how: raw(url, items, *how) for how in grid}
            leading = sorted(grid, key=found.__getitem__)[-BEST:]
            again = 0 if quick else AGAIN
            best = max(leading, key=lambda how: harmonic_mean([found[how], *(raw(url, items, *how) for _ in range(again))]))
            alone = play(best)
        together = play(best)
    for (batch, connections), rate in found.items():
        yield Figure("sink", f"raw _bulk, {batch:,} x {connections}", rate, "documents/s", "batch x connections; once")
    loop = f"raw _bulk, {best[0]:,} x {best[1]}"
    yield from _figures("sink", f"{loop}; the server on cores of its own", alone, GOAL)
    yield from _figures("sink, same cores", f"{loop}; all on the same cores", together, None)


def _round(theirs: Callable[[], float], ours: Callable[[], float]) -> Round:
    before, made, after = theirs(), ours(), theirs()
    if not (before and after):
        raise BenchError("the best raw loop is more than the server has memory for (429)")
    return harmonic_mean([before, after]), made


def _figures(name: str, against: str, played: Sequence[Round], goal: Goal | None) -> Iterator[Figure]:
    ratios = sorted(ours / theirs for theirs, ours in played)
    ratio = median_low(ratios)
    theirs, ours = next((theirs, ours) for theirs, ours in played if ours / theirs == ratio)
    yield Figure("sink", name, ours, "documents/s", f"{against}: {theirs:,.0f}")
    note = f"the same documents and mapping; the rounds: {', '.join(f'{one:.3f}' for one in ratios)}"
    yield Figure("sink", f"{name} to the best raw loop", ratio, "ratio", note, goal)
