"""Measures search: each kind of query against the bare engine, Boolean queries against glimpse, index bytes against words alone.

A search returns the page of a Broker's index: the ten best in a fixed order, with snippets, and the number of all. The bare engine
gets the same query, compiled before, and returns ten hits with nothing of them but score and address. Kinds that the engine answers
too widely are checked with the summaries themselves, which are decoded from memory here; they have no goal.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import tantivy

from processors.query import QueryError, parse
from processors.query.facets import FACETS
from processors.query.forms import DEFAULT as FORMS
from schemas.codec import decode, encode
from schemas.ports import BrokerIndex
from schemas.query import Query
from schemas.records import Removed, Summary
from sinks.index.opensearch.aliases import drop
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.opensearch.query import OpenSearchCompiler, shown
from sinks.index.options import DEFAULT as OPTIONS
from sinks.index.tantivy.folder import open_folder
from sinks.index.tantivy.index import HEAP, TantivyIndex
from sinks.index.tantivy.query import TantivyCompiler
from sinks.index.tantivy.schema import schema
from tests.bench import glimpse, words_alone
from tests.bench.clusters import servers
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.library import KINDS, Asking, Library, boolean

BATCH = 2_000
"""Summaries of one commit."""
ASKED, CHECKED = 40, 8
"""Queries of a kind, and of one that is checked."""
PAGE = 10
GLIMPSED, FEW = 20, 5
"""Queries to glimpse with attributes, and without, which take seconds each."""

Run = Callable[[], object]
Bare = Callable[[Query], tuple[Run, bool]]
"""Compiles a query; returns a function that asks the bare engine, and whether the engine's answer is exact."""


class Way(NamedTuple):
    """A way to search, which is compared with a plain page."""

    name: str
    search: Callable[[BrokerIndex, Query], object]
    goal: Goal | None = None


def ways() -> tuple[Way, ...]:
    """Return the ways to search that are compared with a plain page: what a page may have beside hits, or where it may begin."""
    return (
        Way("the tenth page", lambda index, query: index.search(query, PAGE, 9 * PAGE)),
        Way("newest first", lambda index, query: index.search(query, PAGE, sort="newest")),
        Way("a page with all facets", lambda index, query: index.search(query, PAGE, facets=FACETS), Goal("<=", 4.0)),
    )


class Timed(NamedTuple):
    """Milliseconds of a query: of the Broker's index, and of the bare engine."""

    ours: float
    bare: float


class Kind(NamedTuple):
    """Milliseconds of the queries of a kind."""

    timed: Sequence[Timed]
    hits: Sequence[int]
    exact: bool

    @property
    def ours(self) -> float:
        """The median of the Broker's index."""
        return median(one.ours for one in self.timed)

    @property
    def bare(self) -> float:
        """The median of the bare engine."""
        return median(one.bare for one in self.timed)

    @property
    def ratio(self) -> float:
        """The median of one to that of the other."""
        return self.ours / self.bare


def milliseconds(*runs: Run, rounds: int) -> list[float]:
    """The least milliseconds of each run in some rounds, taken in turns, so that a busy moment does not affect one alone."""
    found = [float("inf")] * len(runs)
    for _ in range(rounds):
        for at, run in enumerate(runs):
            started = time.perf_counter()
            run()
            found[at] = min(found[at], (time.perf_counter() - started) * 1_000)
    return found


def measured(count: int, remote: int, rounds: int, cache: Path, work: Path, *, quick: bool) -> Iterator[Figure]:
    """Measure all figures: `count` summaries in tantivy and glimpse, `remote` in OpenSearch. Raises BenchError."""
    library = Library(count)
    ours, before = work / "ours", work / "before"
    kept = built(library, ours, before)
    asked = made_queries(library)
    with closing(TantivyIndex(ours, writable=False, records=partial(_records, kept))) as index:
        yield from kinds("query, tantivy", index, bare_tantivy(ours), asked, rounds)
        size = _size(ours)
        how = f"{size / count:,.0f} bytes a summary; before forms, places and cells: {_size(before) / count:,.0f}"
        yield Figure("query, index", "bytes to words alone", size / _size(before), "ratio", how, Goal("<=", 1.3))
        yield Figure("query, index", "bytes to bytes of summaries", size / sum(map(len, kept.values())), "ratio", "Avro")
        if not quick:
            yield from glimpsed(library, index, size, cache, work, rounds)
    if not quick:
        yield from in_opensearch(remote, rounds)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def made_queries(library: Library) -> dict[str, list[Query]]:
    """The queries of each kind, the same each time."""
    ask = Asking(library)
    return {name: [parse(make(ask)) for _ in range(ASKED)] for name, make in KINDS.items()}


def _records(kept: Mapping[str, bytes], oids: Sequence[str]) -> dict[str, Summary | Removed]:
    found = ((oid, decode(kept[oid])) for oid in oids)
    return {oid: record for oid, record in found if isinstance(record, Summary | Removed)}


# Indexes


def built(library: Library, ours: Path, before: Path) -> dict[str, bytes]:
    """Index the summaries, as they are now and in the fields of before; return their records by OID."""
    kept: dict[str, bytes] = {}
    old = tantivy.Index(words_alone.schema(), path=str(_made(before)))
    writer = old.writer(HEAP, 1)
    with closing(TantivyIndex(ours)) as index:
        for batch in batches(library):
            kept |= {one.oid: encode(one) for one in batch}
            index.apply(batch, {0: len(kept)})
            for summary in batch:
                writer.add_document(words_alone.document(summary))
            writer.commit()
    writer.wait_merging_threads()
    return kept


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def batches(library: Library) -> Iterator[list[Summary]]:
    """Iterate over all summaries by batches."""
    coming = library.summaries()
    while batch := list(islice(coming, BATCH)):
        yield batch


# Kinds


def bare_tantivy(folder: Path) -> Bare:
    """The bare engine of an index in a folder."""
    fields = schema()
    searcher = open_folder(folder, fields, writable=False).searcher()

    def compile_query(query: Query) -> tuple[Run, bool]:
        engine, inexact = TantivyCompiler(fields, searcher, FORMS, OPTIONS).compiled(query)
        return partial(searcher.search, engine, PAGE), inexact is None

    return compile_query


def bare_opensearch(index: OpenSearchIndex) -> Bare:
    """The bare engine behind an alias."""

    def compile_query(query: Query) -> tuple[Run, bool]:
        engine, inexact = OpenSearchCompiler(FORMS, OPTIONS).compiled(query)
        body = {"query": shown(engine), "size": PAGE, "stored_fields": "_none_"}
        return partial(index.node.ask, "POST", f"/{index.alias}/_search", body), inexact is None

    return compile_query


def kinds(group: str, index: BrokerIndex, bare: Bare, asked: Mapping[str, Sequence[Query]], rounds: int) -> Iterator[Figure]:
    """Measure each kind of query, and the other ways to search. Raises BenchError."""
    found: dict[str, Kind] = {}
    for name, queries in asked.items():
        found[name] = one = kind(index, bare, queries, rounds)
        how = f"bare: {one.bare:.3f} ms, ratio {one.ratio:.2f}; {median(one.hits):,.0f} hits" + ("" if one.exact else "; checked")
        yield Figure(group, name, one.ours, "ms", how)
    exact = {name: one.ratio for name, one in found.items() if one.exact}
    worst = max(exact, key=exact.__getitem__)
    how = f"{len(exact)} exact kinds; the worst: {exact[worst]:.2f}, {worst}"
    yield Figure(group, "median of kinds to bare", median(exact.values()), "ratio", how, Goal("<=", 3.0))
    yield from other_ways(group, index, {name: asked[name] for name in exact}, rounds)


def kind(index: BrokerIndex, bare: Bare, queries: Sequence[Query], rounds: int) -> Kind:
    """Measure the queries of a kind. Raises BenchError if one is refused."""
    exact = bare(queries[0])[1]
    timed, hits = [], []
    try:
        for query in queries[: ASKED if exact else CHECKED]:
            engine, _ = bare(query)
            hits.append(index.search(query, PAGE).total)
            timed.append(Timed(*milliseconds(partial(index.search, query, PAGE), engine, rounds=rounds if exact else 1)))
    except QueryError as error:
        raise BenchError(str(error)) from error
    return Kind(timed, hits, exact)


def other_ways(group: str, index: BrokerIndex, asked: Mapping[str, Sequence[Query]], rounds: int) -> Iterator[Figure]:
    """Measure the other ways to search against a plain page, of all exact kinds."""
    for way in ways():
        ratios = []
        for queries in asked.values():
            pairs = [
                milliseconds(partial(way.search, index, query), partial(index.search, query), rounds=rounds) for query in queries
            ]
            ratios.append(median(pair[0] for pair in pairs) / median(pair[1] for pair in pairs))
        how = f"a plain page; the worst kind: {max(ratios):.2f}"
        yield Figure(group, f"{way.name} to the first", median(ratios), "ratio", how, way.goal)


def glimpsed(library: Library, index: BrokerIndex, size: int, cache: Path, work: Path, rounds: int) -> Iterator[Figure]:
    """Measure Boolean queries of two attributes, and the size of the index, against glimpse. Raises BenchError."""
    files = _made(work / "files")
    written = glimpse.write(library.summaries(), files)
    theirs = glimpse.Glimpse(glimpse.programs(cache, work), files, work / "glimpse")
    ask = Asking(library)
    asked = [boolean(ask) for _ in range(GLIMPSED)]
    attributes = [
        (f'title:"{title}" AND author:"{author}" OR title:"{other}"', f"{{title{title};author{author}}},title{other}")
        for title, author, other in asked
    ]
    rarer = [(ask.word(500), ask.word(500), ask.word(2_000)) for _ in range(FEW)]
    plain = [(f'"{one}" AND "{two}" OR "{three}"', f"{{{one};{two}}},{three}") for one, two, three in rarer]
    yield from against_glimpse("two attributes, Boolean", index, theirs, attributes, rounds, Goal("<=", 0.1))
    yield from against_glimpse("words, Boolean", index, theirs, plain, 1, None)
    how = f"glimpseindex -o: {theirs.size / library.count:,.0f} bytes a summary; files: {written / library.count:,.0f}"
    yield Figure("query, glimpse", "index bytes to glimpse's", size / theirs.size, "ratio", how)


def against_glimpse(
    name: str, index: BrokerIndex, theirs: glimpse.Glimpse, asked: Sequence[tuple[str, str]], rounds: int, goal: Goal | None
) -> Iterator[Figure]:
    """Measure queries, each written for Harvest and for glimpse. Raises BenchError."""
    ours, found, hits, theirs_hits, crashes = [], [], 0, 0, 0
    for written, pattern in asked:
        query = parse(written)
        try:
            answers = [theirs.search(pattern) for _ in range(rounds)]
        except glimpse.CrashError:
            crashes += 1
            continue
        found.append(min(answer.seconds for answer in answers) * 1_000)
        ours += milliseconds(partial(index.search, query, PAGE), rounds=rounds)
        hits, theirs_hits = hits + index.count(query), theirs_hits + answers[0].hits
    if not found:
        raise BenchError(f"glimpse was ended by each of {len(asked)} queries")
    how = f"glimpse {median(found):,.1f} ms, start-up of {theirs.start * 1_000:.1f} ms subtracted"
    how += f"; {len(asked)} queries, {crashes} of which end glimpse and are left out; {hits:,} hits, glimpse {theirs_hits:,}"
    yield Figure("query, glimpse", name, median(ours), "ms", how)
    yield Figure("query, glimpse", f"{name} to glimpse", median(ours) / median(found), "ratio", "of medians", goal)


def in_opensearch(count: int, rounds: int) -> Iterator[Figure]:
    """Measure each kind of query in a real OpenSearch."""
    library = Library(count)
    with servers("opensearch") as (url,), closing(OpenSearchIndex(url, f"bench-{uuid.uuid4().hex[:10]}")) as index:
        try:
            for batch in batches(library):
                index.apply(batch, {})
            index.node.ask("POST", f"/{index.alias}/_forcemerge", max_num_segments="1")
            index.refresh()
            yield from kinds("query, OpenSearch", index, bare_opensearch(index), made_queries(library), rounds)
        finally:
            drop(index.node, f"{index.alias}-0")
