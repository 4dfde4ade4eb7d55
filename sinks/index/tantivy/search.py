"""Reading from a tantivy index: hits in an order that does not depend on how the index was built.

Laws:
- Equal ones in order of URL, on every page: the hits of a page do not depend on segments or on the limit. Scores are compared to 5
  significant digits, since their last bits depend on the order of addition.
"""

# ruff: noqa: D102 - the base class documents its primitives
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from tantivy import DocAddress, FieldType, Occur, Order, Schema, Searcher
from tantivy import Query as Engine

from processors.query.forms import Analyzer
from schemas.ports import FacetValue, Sort
from schemas.query import Query
from sinks.index.compiled import Compiled, Records
from sinks.index.document import COPY, StoredHit, facet_field, oid_of, rounded
from sinks.index.options import Options
from sinks.index.reader import SPREAD, Reader, Scored
from sinks.index.tantivy.folder import reading
from sinks.index.tantivy.query import TantivyCompiler

SPARE = 50
"""Hits read beyond a page, to see where its last score ends."""
SCROLL = 2_000
"""Summaries per step of a scroll."""
COLUMNS: Mapping[Sort, tuple[str, FieldType, Order]] = {
    "newest": ("date", FieldType.Integer, Order.Desc),
    "oldest": ("date", FieldType.Integer, Order.Asc),
    "largest": ("size", FieldType.Unsigned, Order.Desc),
}
LEAST = {FieldType.Integer: -(1 << 62), FieldType.Unsigned: 0}
"""A lower bound of all values of a column."""

_DECODER = msgspec.msgpack.Decoder(StoredHit)


class TantivyReader(Reader[Engine]):
    """Searches of one snapshot."""

    def __init__(
        self, schema: Schema, searcher: Searcher, analyzer: Analyzer, options: Options, records: Records | None, folder: Path
    ) -> None:
        super().__init__(analyzer, options, records)
        self._schema = schema
        self._searcher = searcher
        self._folder = folder
        self._copy = Engine.term_query(schema, "role", COPY, index_option="basic")

    def compiler(self) -> TantivyCompiler:
        return TantivyCompiler(self._schema, self._searcher, self.analyzer, self.options)

    def compiled(self, query: Query, *, copies: bool) -> Compiled[Engine]:
        engine, inexact = self.compiler().compiled(query)
        return Compiled(engine if copies else self._but(engine, self._copy), inexact)

    def _but(self, engine: Engine, denied: Engine) -> Engine:
        return Engine.boolean_query([(Occur.Must, engine), (Occur.MustNot, denied)])

    def described(self, engine: Engine) -> str:
        return repr(engine)

    def among(self, engine: Engine, oids: Sequence[str]) -> Engine:
        return Engine.boolean_query([(Occur.Must, engine), (Occur.Must, self.compiler().keyed(oids))])

    def total(self, engine: Engine) -> int:
        return int(self._searcher.search(engine, limit=1).count)  # type: ignore[attr-defined]

    def totals(self, engines: Sequence[Engine]) -> Sequence[int]:
        return list(map(self.total, engines))

    def by_score(self, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        offset, limit = self._fitting(offset, limit)
        size = offset + limit + SPARE
        while True:
            result = self._searcher.search(engine, limit=size)
            total = int(result.count)  # type: ignore[attr-defined]
            hits = [(rounded(score), at) for score, at in result.hits]
            end = min(offset + limit, total)
            # If the last score continues beyond the hits read, a lesser URL with that score might be missing.
            if len(hits) == total or hits[end - 1][0] != hits[-1][0]:
                return self._page(hits, offset, end), total
            size = min(total, size * 4)

    def by_column(self, sort: Sort, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        offset, limit = self._fitting(offset, limit)
        if sort == "url":
            return self._by_url(engine, offset, limit)
        field, kind, order = COLUMNS[sort]
        size = offset + limit + SPARE
        result = self._searcher.search(engine, limit=size, order_by_field=field, order=order)
        total, hits = int(result.count), list(result.hits)  # type: ignore[attr-defined]
        end = min(offset + limit, total)
        # Of the last value there may be any number beyond those read.
        whole = len(hits) if len(hits) == total else next((at for at, hit in enumerate(hits) if hit[0] == hits[-1][0]), 0)
        page = [(1.0, kept) for _, kept in self._page(hits[:whole], offset, min(end, whole))]
        if end > whole:
            equal = self._equal(engine, field, kind, hits[-1][0])
            begin = max(offset, whole)
            page += self._by_url(equal, begin - whole, end - begin)[0]
        return page, total

    def _equal(self, engine: Engine, field: str, kind: FieldType, value: int | None) -> Engine:
        """Restrict a query to a value of a column; None: to what has no value."""
        if value is None:
            return self._but(engine, Engine.range_query(self._schema, field, kind, LEAST[kind]))
        same = Engine.range_query(self._schema, field, kind, value, value)
        return Engine.boolean_query([(Occur.Must, engine), (Occur.Must, same)])

    def _by_url(self, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        if not limit:
            return [], self.total(engine)
        # Beyond the page on both sides, since several summaries may have one URL.
        begin = max(offset - SPARE, 0)
        size = offset + limit + SPARE - begin
        result = self._searcher.search(engine, limit=size, offset=begin, order_by_field="url", order=Order.Asc)
        total = int(result.count)  # type: ignore[attr-defined]
        return [(1.0, kept) for _, kept in self._page(result.hits, offset - begin, min(offset + limit, total) - begin)], total

    def _fitting(self, offset: int, limit: int) -> tuple[int, int]:
        """Return an offset and a limit for which the engine allocates no more room than there are documents."""
        offset = min(offset, self._searcher.num_docs)
        return offset, min(limit, self._searcher.num_docs - offset)

    def _page(self, hits: Sequence[tuple[object, DocAddress]], offset: int, end: int) -> Scored:
        """Return the hits from `offset` up to `end`, equal ones in order of URL; the first of each is its score, if it has one."""
        page: Scored = []
        begin = 0
        for score, group in groupby(hits, key=itemgetter(0)):
            equal = [at for _, at in group]
            low, high = max(offset - begin, 0), min(end - begin, len(equal))
            begin += len(equal)
            if low < high:
                kept = sorted(map(self._shown, equal), key=lambda each: (each.url, each.oid))
                page += [(score if isinstance(score, float) else 1.0, each) for each in kept[low:high]]
            if begin >= end:
                break
        return page

    def _shown(self, at: DocAddress) -> StoredHit:
        """Return the stored part of a summary for display."""
        return _DECODER.decode(bytes(self._searcher.doc(at).get_first("shown") or b""))

    def oids(self, engine: Engine) -> Iterator[str]:
        low: int | None = 0
        while low is not None:
            with reading(self._folder):
                found, low = self._step(engine, low)
            yield from found

    def _step(self, engine: Engine, low: int) -> tuple[list[str], int | None]:
        """Return the next OIDs of a scroll, in order, from `low` (an `order`) on, and where the next step starts (None: the end).

        OIDs with equal `order` are returned together, so a step may be larger than SCROLL.
        """
        above = Engine.range_query(self._schema, "order", FieldType.Unsigned, lower_bound=low)
        both = Engine.boolean_query([(Occur.Must, engine), (Occur.Must, above)])
        size = SCROLL
        while True:
            hits = self._searcher.search(both, limit=size, count=False, order_by_field="order", order=Order.Asc).hits
            if len(hits) < size:
                return self._read([at for _, at in hits]), None
            last = hits[-1][0]
            kept = [at for value, at in hits if value < last]
            if kept:
                return self._read(kept), last
            size *= 2

    def _read(self, found: list[DocAddress]) -> list[str]:
        # In order of address, because neighbouring summaries are decompressed together.
        found.sort(key=lambda at: (at.segment_ord, at.doc))
        return sorted(oid_of(self._shown(at).oid) for at in found)

    def values(self, engine: Engine, limits: Mapping[str, int]) -> Mapping[str, Sequence[FacetValue]]:
        buckets = self._aggregated(engine, {name: {"size": limit, "segment_size": SPREAD} for name, limit in limits.items()})
        # Each segment counts its most frequent values only.
        again = {
            name: {"size": limits[name], "include": [each["key"] for each in found["buckets"]]}
            for name, found in buckets.items()
            if found["doc_count_error_upper_bound"]
        }
        if again:
            buckets |= self._aggregated(engine, again)
        return {
            name: [FacetValue(each["key"], int(each["doc_count"])) for each in found["buckets"]] for name, found in buckets.items()
        }

    def _aggregated(self, engine: Engine, asked: Mapping[str, dict[str, object]]) -> dict[str, dict[str, Any]]:
        terms = {name: {"terms": {"field": facet_field(name), **options}} for name, options in asked.items()}
        return dict(self._searcher.aggregate(engine, terms))

    def suggestions(self, beginning: str, limit: int) -> Sequence[tuple[str, int]]:
        shown = self._but(self.compiler().every(), self._copy)
        return self._searcher.terms_with_prefix("suggestions", beginning, filter_query=shown, limit=limit)
