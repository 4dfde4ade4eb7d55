"""Reading from a tantivy index: hits in an order that does not depend on how the index was built.

Laws:
- Best first, equal scores in order of URL, on every page: the hits of a page do not depend on segments or on the
  limit. Scores are compared to 5 significant digits, since their last bits depend on the order of addition.
- A query that only filters gives score 1 and order of URL.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import msgspec
from tantivy import DocAddress, FieldType, Occur, Order, Schema, Searcher
from tantivy import Query as Engine

from sinks.index.document import COPY, StoredHit, oid_of, rounded

SPARE = 50
"""Hits read beyond a page, to see where its last score ends."""

Scored = list[tuple[float, StoredHit]]

_DECODER = msgspec.msgpack.Decoder(StoredHit)


def count(searcher: Searcher, engine: Engine) -> int:
    """Return the number of matching documents."""
    return int(searcher.search(engine, limit=1).count)  # type: ignore[attr-defined]


def shown(searcher: Searcher, at: DocAddress) -> StoredHit:
    """Return the stored part of a summary for display."""
    return _DECODER.decode(bytes(searcher.doc(at).get_first("shown") or b""))


def without_copies(schema: Schema, engine: Engine) -> Engine:
    """Restrict a query to canonical summaries."""
    copy = Engine.term_query(schema, "role", COPY, index_option="basic")
    return Engine.boolean_query([(Occur.Must, engine), (Occur.MustNot, copy)])


def by_url(searcher: Searcher, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
    """Return a page in order of URL, each hit with score 1, and the number of matches."""
    result = searcher.search(engine, limit=limit, offset=offset, order_by_field="url", order=Order.Asc)
    return [(1.0, shown(searcher, at)) for _, at in result.hits], int(result.count)  # type: ignore[attr-defined]


def by_score(searcher: Searcher, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
    """Return a page, best first, and the number of matches."""
    size = offset + limit + SPARE
    while True:
        result = searcher.search(engine, limit=size)
        total = int(result.count)  # type: ignore[attr-defined]
        hits = [(rounded(score), at) for score, at in result.hits]
        end = min(offset + limit, total)
        # If the last score continues beyond the hits read, a lesser URL with that score might be missing.
        if len(hits) == total or hits[end - 1][0] != hits[-1][0]:
            return _page(searcher, hits, offset, end), total
        size = min(total, size * 4)


def _page(searcher: Searcher, hits: list[tuple[float, DocAddress]], offset: int, end: int) -> Scored:
    """Return the hits from `offset` up to `end`, equal scores in order of URL."""
    page: Scored = []
    begin = 0
    for score, group in groupby(hits, key=itemgetter(0)):
        equal = [at for _, at in group]
        low, high = max(offset - begin, 0), min(end - begin, len(equal))
        begin += len(equal)
        if low < high:
            kept = sorted((shown(searcher, at) for at in equal), key=lambda each: (each.url, each.oid))
            page += [(score, each) for each in kept[low:high]]
        if begin >= end:
            break
    return page


def step(searcher: Searcher, schema: Schema, engine: Engine, low: int, size: int) -> tuple[list[str], int | None]:
    """Return the next OIDs of a scroll, in order, from `low` (an `order`) on, and where the next step starts (None: the end).

    OIDs with equal `order` are returned together, so a step may be larger than `size`.
    """
    above = Engine.range_query(schema, "order", FieldType.Unsigned, lower_bound=low)
    both = Engine.boolean_query([(Occur.Must, engine), (Occur.Must, above)])
    while True:
        hits = searcher.search(both, limit=size, count=False, order_by_field="order", order=Order.Asc).hits
        if len(hits) < size:
            return _oids(searcher, [at for _, at in hits]), None
        last = hits[-1][0]
        kept = [at for value, at in hits if value < last]
        if kept:
            return _oids(searcher, kept), last
        size *= 2


def _oids(searcher: Searcher, found: list[DocAddress]) -> list[str]:
    # In order of address, because neighbouring summaries are decompressed together.
    found.sort(key=lambda at: (at.segment_ord, at.doc))
    return sorted(oid_of(shown(searcher, at).oid) for at in found)
