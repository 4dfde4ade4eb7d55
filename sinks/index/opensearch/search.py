"""Reading from an OpenSearch index: pages in the same order as tantivy's, and scrolls.

Laws:
- Equal ones in order of URL, on every page. Scores are compared to 5 significant digits. Of more than WINDOW hits with one score,
  those beyond it are in the engine's order.
- A page, or a scroll, of several requests uses one point in time.
- An answer with a missing shard is an error.
"""

# ruff: noqa: D102 - the base class documents its primitives
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import msgspec

from processors.query.forms import Analyzer
from schemas.ports import FacetValue, Sort
from schemas.query import Query
from sinks.index.compiled import Compiled, Records
from sinks.index.document import StoredHit, facet_field, rounded
from sinks.index.errors import IndexUnreachable
from sinks.index.opensearch.node import Node
from sinks.index.opensearch.query import Engine, OpenSearchCompiler, shown
from sinks.index.opensearch.schema import identifier
from sinks.index.options import Options
from sinks.index.reader import SPREAD, Reader, Scored

SPARE = 50
"""Hits read beyond a page, to see where its last score ends."""
WINDOW = 10_000
"""Maximum hits per request, the engine's default (index.max_result_window)."""
SCROLL = 5_000
"""Summaries per step of a scroll."""
KEPT = "5m"
"""Time that a point in time is kept between two requests."""
# Scores are computed from the statistics of all shards.
_WHOLE = {"allow_partial_search_results": "false", "search_type": "dfs_query_then_fetch"}

Hits = Sequence[Mapping[str, Any]]

_DECODER = msgspec.json.Decoder(StoredHit)
_URL: Sequence[Mapping[str, Any]] = ({"url": "asc"}, {"oid": "asc"})
_BY_SCORE: Sequence[Mapping[str, Any]] = ({"_score": "desc"}, *_URL)
COLUMNS: Mapping[Sort, Sequence[Mapping[str, Any]]] = {
    "newest": ({"date": {"order": "desc", "missing": "_last"}}, *_URL),
    "oldest": ({"date": {"order": "asc", "missing": "_last"}}, *_URL),
    "largest": ({"size": {"order": "desc"}}, *_URL),
    "url": _URL,
}


class OpenSearchReader(Reader[Engine]):
    """Searches of the index behind an alias."""

    def __init__(self, node: Node, alias: str, analyzer: Analyzer, options: Options, records: Records) -> None:
        super().__init__(analyzer, options, records)
        self._node = node
        self._alias = alias

    def compiler(self) -> OpenSearchCompiler:
        return OpenSearchCompiler(self.analyzer, self.options)

    def compiled(self, query: Query, *, copies: bool) -> Compiled[Engine]:
        engine, inexact = self.compiler().compiled(query)
        return Compiled(shown(engine, copies=copies), inexact)

    def described(self, engine: Engine) -> str:
        return json.dumps(engine, indent=2, ensure_ascii=False)

    def among(self, engine: Engine, oids: Sequence[str]) -> Engine:
        return {"bool": {"must": [engine], "filter": [{"ids": {"values": list(map(identifier, oids))}}]}}

    def total(self, engine: Engine) -> int:
        # The `_count` interface answers even if shards are missing.
        return _total(self._ask({"query": engine, "size": 0, "track_total_hits": True}))

    def totals(self, engines: Sequence[Engine]) -> Sequence[int]:
        each = {"filters": {"filters": list(engines)}}
        found = self._ask({"query": {"match_all": {}}, "size": 0, "aggs": {"each": each}})["aggregations"]["each"]["buckets"]
        return [one["doc_count"] for one in found]

    def by_score(self, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        return by_score(self._node, self._alias, engine, offset, limit)

    def by_column(self, sort: Sort, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        hits, total = _read(self._node, self._alias, engine, COLUMNS[sort], offset, offset + limit)
        return [(1.0, _shown(hit)) for hit in hits], total

    def oids(self, engine: Engine) -> Iterator[str]:
        return scroll(self._node, self._alias, engine)

    def values(self, engine: Engine, limits: Mapping[str, int]) -> Mapping[str, Sequence[FacetValue]]:
        found = self._aggregated(engine, {name: {"size": limit, "shard_size": SPREAD} for name, limit in limits.items()})
        # Each shard counts its most frequent values only.
        again = {
            name: {"size": limits[name], "include": [each["key"] for each in one["buckets"]]}
            for name, one in found.items()
            if one["doc_count_error_upper_bound"]
        }
        if again:
            found |= self._aggregated(engine, again)
        return {name: [FacetValue(each["key"], each["doc_count"]) for each in one["buckets"]] for name, one in found.items()}

    def _aggregated(self, engine: Engine, asked: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        terms = {name: {"terms": {"field": facet_field(name), **options}} for name, options in asked.items()}
        return dict(self._ask({"query": engine, "size": 0, "aggs": terms})["aggregations"])

    def suggestions(self, beginning: str, limit: int) -> Sequence[tuple[str, int]]:
        order = [{"_count": "desc"}, {"_key": "asc"}]
        words = {"field": "suggestions", "include": f"{re.escape(beginning)}.*", "size": limit, "order": order}
        engine = shown(self.compiler().every(), copies=False)
        found = self._ask({"query": engine, "size": 0, "aggs": {"words": {"terms": words}}})["aggregations"]["words"]["buckets"]
        return [(each["key"], each["doc_count"]) for each in found]

    def _ask(self, body: Mapping[str, Any]) -> Any:
        return self._node.ask("POST", f"/{self._alias}/_search", body, **_WHOLE)


def by_score(node: Node, alias: str, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
    """Return a page, best first, and the number of matches."""
    size = offset + limit + SPARE
    while True:
        hits, total = _read(node, alias, engine, _BY_SCORE, 0, size)
        end = min(offset + limit, total, len(hits))
        # If the last score continues beyond the hits read, a lesser URL with that score might be missing.
        if total and not hits:
            raise IndexUnreachable("OpenSearch counted matches but returned no hits")
        if len(hits) == total or size >= WINDOW or _score(hits[end - 1]) != _score(hits[-1]):
            return _page(hits, offset, end), total
        size = min(WINDOW, size * 4)


def scroll(node: Node, alias: str, engine: Engine) -> Iterator[str]:
    """Iterate over the OID of every match, in order of OID, from one snapshot."""
    body = {"query": engine, "sort": [{"oid": "asc"}], "stored_fields": "_none_"}
    hits = node.ask("POST", f"/{alias}/_search", body | {"size": SCROLL, "track_total_hits": False}, **_WHOLE)["hits"]["hits"]
    if len(hits) < SCROLL:
        yield from (hit["sort"][0] for hit in hits)
        return
    with _moment(node, alias) as at:
        for step, _ in _steps(node, at, body, SCROLL):
            yield from (hit["sort"][0] for hit in step)


def _read(
    node: Node, alias: str, engine: Engine, order: Sequence[Mapping[str, str]], low: int, high: int
) -> tuple[list[Mapping[str, Any]], int]:
    """Return the hits from `low` up to `high` and the number of matches, by one request if WINDOW allows it."""
    body = {"query": engine, "sort": order, "stored_fields": ["shown"], "track_scores": True, "track_total_hits": True}
    if high <= WINDOW:
        answer = node.ask("POST", f"/{alias}/_search", body | {"from": low, "size": high - low}, **_WHOLE)
        return answer["hits"]["hits"], _total(answer)
    kept: list[Mapping[str, Any]] = []
    at, total = 0, 0
    with _moment(node, alias) as moment:
        for hits, total in _steps(node, moment, body, WINDOW):  # noqa: B007 - the last one is returned
            kept += hits[max(low - at, 0) : high - at]
            at += len(hits)
            if at >= high:
                break
    return kept, total


def _steps(node: Node, moment: str, body: Mapping[str, Any], size: int) -> Iterator[tuple[Hits, int]]:
    """Iterate over all hits of a point in time by steps, with the number of matches (0 if not counted)."""
    asked = {**body, "pit": {"id": moment, "keep_alive": KEPT}, "size": size}
    while True:
        answer = node.ask("POST", "/_search", asked, **_WHOLE)
        hits = answer["hits"]["hits"]
        yield hits, _total(answer) if "total" in answer["hits"] else 0
        if len(hits) < size:
            return
        asked = asked | {"search_after": hits[-1]["sort"]}


@contextmanager
def _moment(node: Node, alias: str) -> Iterator[str]:
    """Open a point in time and yield its id."""
    moment = node.ask("POST", f"/{alias}/_search/point_in_time", keep_alive=KEPT)["pit_id"]
    try:
        yield moment
    finally:
        node.ask("DELETE", "/_search/point_in_time", {"pit_id": [moment]})


def _page(hits: Hits, offset: int, end: int) -> Scored:
    """Return the hits from `offset` up to `end`, equal scores in order of URL."""
    page: Scored = []
    begin = 0
    for score, group in groupby(hits, key=_score):
        equal = list(group)
        low, high = max(offset - begin, 0), min(end - begin, len(equal))
        begin += len(equal)
        if low < high:
            kept = sorted(map(_shown, equal), key=lambda each: (each.url, each.oid))
            page += [(score, each) for each in kept[low:high]]
        if begin >= end:
            break
    return page


def _score(hit: Mapping[str, Any]) -> float:
    return rounded(hit["_score"])


def _shown(hit: Mapping[str, Any]) -> StoredHit:
    return _DECODER.decode(hit["fields"]["shown"][0])


def _total(answer: Mapping[str, Any]) -> int:
    return int(answer["hits"]["total"]["value"])
