"""`make bench`: measures Harvest against plain programs that do the same work with the same libraries and cores.

Groups: `objects` (the pipeline end to end), `log`, `index` (each against the bare library), `stage` (an agent on Kafka, against
bare clients), `workers` (the pipeline on Kafka, against the embedded runner), `recovery` (a table, from its changelog), `sink`
(the index sink on Kafka, against raw bulk loops into OpenSearch), `tree` (the whole documentation of the machine and two large
packages: outcomes, memory, second run, sizes, search), `size` (what takes the bytes of data folders of small documents),
`recognition` (corpora that other projects label: the share of right
types, and whether every file is summarized or rejected), `retrieval` (an index of summaries against one of the full text),
`ranking` (the order of hits on judged test collections, against plain BM25), `routing` (searches sent to the best
of 50 Brokers, against asking all of them), `brokers` (ten Brokers with ten views each, against one; a view made later), `query`
(each kind of query, against the bare engine and glimpse),
`serve` (pages of the gateway, against the search alone; searches beside hostile clients), `unnest` (a nested tar.gz,
against plain libarchive; memory with one of 10 GB), `hosts` (a crawl of 1,000 slow hosts through a kill, as their servers see it;
memory and time of the frontier with a million URLs), `essence` (source bytes to summary bytes by type, time by step, KB per
minute), `refresh` (requests and current copies by change rate, against a fixed interval: a simulation), `tika` (documents, against
a tika-server), `pages` (pages of web sites, against other crawlers and a bare aiohttp loop), `second-pass` (passes over 32,000 real
pages that change in between: what was requested and found, page by page), `gatherer` (the experiment of 1995: what a collection
costs a site by FTP, by local access and by the stream; the stream against plain file servers).
`--quick` measures some hundred generated files; it shows that the benchmark works, and its figures mean little.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from streams.kafka.client.cluster import ClusterError
from tests.bench import (
    bench_index,
    bench_log,
    brokers,
    corpora,
    gateway,
    hosts,
    judged,
    pages,
    queries,
    ranking,
    readers,
    recovery,
    refresh,
    retrieval,
    routing,
    second_pass,
    sink,
    size,
    stage,
)
from tests.bench.clusters import servers
from tests.bench.figures import BenchError, Figure, heading
from tests.bench.gatherer import measured as experiment
from tests.bench.huge import huge
from tests.bench.labelled import by_suffix
from tests.bench.nested import pack, unnesting
from tests.bench.objects import adopt, objects, start_up
from tests.bench.recognition import recognition, recognized, summarized
from tests.bench.scale import FULL, QUICK, Size
from tests.bench.summaries import essence
from tests.bench.tree import tree
from tests.bench.workers import workers
from tests.servers.process import ServerError


def measure_objects(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure objects/s of many small objects, and of fewer large ones."""
    yield from start_up(work, size.rounds)
    if size.quick:
        yield from objects("objects", corpora.synthetic(work / "light", size.light), work, size.rounds)
        return
    light = corpora.neighbours(corpora.found(corpora.DOCUMENTATION), size.light)
    yield from objects("documentation", corpora.copied(light, work / "light"), work, size.rounds)
    pages = corpora.found(corpora.unpacked(corpora.packages(cache), work / "packages"))
    large = corpora.copied(corpora.neighbours(list(corpora.heavy(pages)), size.heavy), work / "heavy")
    yield from objects("large pages", large, work, size.rounds)


def measure_log(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure records/s of the log against bare apsw, each at its best batch size."""
    found = bench_log.log_ratio(size.records, size.rounds, work)
    yield Figure("log", "append", found.ours, "records/s", f"bare apsw, best batch: {found.bare:,.0f}")
    yield Figure("log", "append to bare apsw", found.ratio, "ratio", "records of 1 kB, each at the best of its batch sizes")


def measure_index(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure documents/s of the index against bare tantivy."""
    for name, figure, unit in bench_index.rows(size.documents):
        short, _, against = unit.partition("; ")
        if short.startswith("of "):
            short, against = "ratio", short
        yield Figure("index", name.removeprefix("index, "), figure, short, against)


def measure_tree(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure outcomes, memory, second run, sizes and search of a whole tree."""
    if size.quick:
        made = corpora.synthetic(work / "tree", size.light)
        corpora.troubled(made / "troubled")
        yield from tree([made], [made], work)
        return
    ours = corpora.unpacked(corpora.packages(cache), work / "packages")
    yield from tree([*filter(Path.is_dir, corpora.DOCUMENTATION), *ours], ours, work)


def measure_size(scale: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure the bytes of data folders of small collections, and the CPU time of filling them."""
    found = [judged.made(90)] if scale.quick else judged.collections(judged.folder(cache))
    for collection in found:
        yield from size.measured(collection, scale.gathered, work)


def measure_sink(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure documents/s of the index sink on Kafka against raw bulk loops."""
    yield from sink.measured(size.streamed, size.streams, quick=size.quick)


def measure_stage(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure messages/s of an agent that does nothing, against bare clients."""
    yield from stage.measured(size.messages, size.rounds, work)


def measure_workers(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure objects/s of workers on Kafka against the embedded runner, and their CPU time by stage."""
    if size.quick:
        yield from workers("objects", corpora.synthetic(work / "light", size.shared), work, size.rounds, warm=False)
        return
    light = corpora.neighbours(corpora.found(corpora.DOCUMENTATION), size.shared)
    pages = corpora.found(corpora.unpacked(corpora.packages(cache), work / "packages"))
    large = corpora.copied(corpora.neighbours(list(corpora.heavy(pages)), size.shared_heavy), work / "heavy")
    with servers("kafka"):
        yield from workers("documentation", corpora.copied(light, work / "light"), work, size.rounds)
        yield from workers("large pages", large, work, size.rounds)


def measure_recovery(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure the seconds that a worker takes to recover a table."""
    yield from recovery.measured(size.rows, work)


def measure_recognition(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure recognition of labeled files of other projects, and the outcomes of all files of their corpora."""
    if size.quick:
        made = corpora.synthetic(work / "labelled", size.light)
        yield from recognized(by_suffix(made))
        yield from summarized([made], work)
        return
    yield from recognition(cache, work)


def measure_retrieval(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure recall, precision and size of an index of summaries against one of the full text."""
    if size.quick:
        made = corpora.synthetic(work / "long", 90)
        yield from retrieval.retrieval(made, sorted(path.relative_to(made) for path in made.rglob("*.html")), work, 5_000)
        return
    root = work / "packages"
    pages = corpora.found(corpora.unpacked(corpora.packages(cache), root))
    long = [os.path.relpath(path, bytes(root)) for path in corpora.heavy(pages) if os.path.getsize(path) >= retrieval.FILE]
    files = [Path(os.fsdecode(path)) for path in corpora.chosen(long, 2 * retrieval.DOCUMENTS)]
    yield from retrieval.retrieval(root, files, work)


def measure_ranking(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure the mean average precision of the Broker's ranking against plain BM25."""
    if size.quick:
        yield from ranking.ranked(judged.made(90), {"tantivy": partial(ranking.tantivy, work)})
        return
    yield from ranking.ranking(list(judged.collections(judged.folder(cache))), work)


def measure_routing(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure the share of Brokers that a routed search asks, and what it keeps of the best hits of all."""
    if size.quick:
        made = corpora.synthetic(work / "tree", 4 * routing.MOST)
        yield from routing.measured([judged.made(90)], [made], work, routing.Scale(brokers=10, queries=10, least=10))
        return
    roots = corpora.unpacked(corpora.packages(cache), work / "packages")
    yield from routing.measured(list(judged.collections(judged.folder(cache))), roots, work, routing.Scale())


def measure_brokers(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure ten Brokers with ten views each against one, a view made later, a search in it, and a pass of statistics."""
    yield from brokers.measured(size.rows // 100, size.searched, size.rounds, work)


def measure_query(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure each kind of query against the bare engine and glimpse, and index bytes."""
    yield from queries.measured(size.searched, size.searched_remotely, size.rounds, cache, work, quick=size.quick)


def measure_serve(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure pages of the gateway against the search alone, and searches beside hostile clients."""
    yield from gateway.measured(size.searched, size.searches, size.rounds, work)


def measure_unnest(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure MB/s of unnesting against plain libarchive, and memory with an archive of 10 GB."""
    if size.quick:
        roots = [corpora.synthetic(work / "files", size.light)]
    else:
        roots = [corpora.DOCUMENTATION[0], *corpora.unpacked(corpora.packages(cache), work / "packages")]
    paths = [path for path in sorted(corpora.found(roots)) if os.path.isfile(path) and not os.path.islink(path)]
    yield from unnesting(pack(paths, work / "nested.tar.gz"), size.rounds)
    yield from huge(size.unpacked, work)


def measure_hosts(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure the share of what the pauses of many hosts allow, broken pauses, and memory and time of the frontier."""
    yield from hosts.measured(size.hosts, (1.0, 2.0) if size.quick else (5.0, 20.0), size.watched, size.found, work)


def measure_essence(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure source bytes to summary bytes, time by step, and KB per minute."""
    if size.quick:
        yield from essence([corpora.synthetic(work / "tree", size.light)], work)
        return
    ours = corpora.unpacked(corpora.packages(cache), work / "packages")
    yield from essence([*filter(Path.is_dir, corpora.DOCUMENTATION), *ours], work)


def measure_refresh(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure requests and current copies of refreshing by change rate against a fixed interval."""
    yield from refresh.measured(size.refreshed)


def measure_tika(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure documents/s of Harvest and of a tika-server, and the similarity of their results."""
    yield from readers.measured(cache, work, size.rounds, quick=size.quick, few=QUICK.heavy)


def measure_pages(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure pages/s of web sites against other crawlers and a bare loop."""
    yield from pages.measured(size.pages, size.rounds, cache, work, quick=size.quick)


def measure_second_pass(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure the passes over a site that changes: requests, time, memory, and pages that are treated wrongly."""
    yield from second_pass.group(cache, work, quick=size.light if size.quick else 0)


def measure_gatherer(size: Size, cache: Path, work: Path) -> Iterator[Figure]:
    """Measure what a collection costs a site, by FTP, by local access and by the stream, and the rate of the stream."""
    yield from experiment.measured(size.site, size.collections, size.rounds, work, quick=size.quick)


GROUPS: Mapping[str, Callable[[Size, Path, Path], Iterator[Figure]]] = {
    "objects": measure_objects,
    "log": measure_log,
    "index": measure_index,
    "stage": measure_stage,
    "workers": measure_workers,
    "recovery": measure_recovery,
    "size": measure_size,
    "sink": measure_sink,
    "tree": measure_tree,
    "recognition": measure_recognition,
    "retrieval": measure_retrieval,
    "ranking": measure_ranking,
    "routing": measure_routing,
    "brokers": measure_brokers,
    "query": measure_query,
    "serve": measure_serve,
    "unnest": measure_unnest,
    "hosts": measure_hosts,
    "essence": measure_essence,
    "refresh": measure_refresh,
    "tika": measure_tika,
    "pages": measure_pages,
    "second-pass": measure_second_pass,
    "gatherer": measure_gatherer,
}


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure Harvest against plain programs.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="some hundred files that are made for it")
    parser.add_argument("--json", action="store_true", help="one JSON object a figure")
    parser.add_argument("--cache", type=Path, default=corpora.cache(), help="where packages are kept (default: %(default)s)")
    found = parser.parse_args(given)
    if unknown := sorted(set(found.groups) - set(GROUPS)):
        parser.error(f"no such group: {', '.join(unknown)} (known: {', '.join(GROUPS)})")
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Print the figures as they are measured; return the exit code: 1 if a measurement failed, whatever the figures are."""
    asked = arguments(given)
    size = QUICK if asked.quick else FULL
    if not asked.json:
        print(heading(), flush=True)
    adopt()
    failed = False
    for name in asked.groups or GROUPS:
        # Beside the cache, on a disk: the measurements include fsync, and /tmp may be in memory.
        asked.cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=asked.cache) as work:
            try:
                for figure in GROUPS[name](size, asked.cache, Path(work)):
                    shown = figure._replace(goal=None) if asked.quick else figure
                    print(shown.as_json() if asked.json else shown.as_line(), flush=True)
            except (BenchError, ClusterError, ServerError) as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
