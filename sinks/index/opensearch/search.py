"""Reading from an OpenSearch index: pages in the same order as tantivy's, and scrolls.

Laws:
- Best first, equal scores in order of URL, on every page. Scores are compared to 5 significant digits. Of more than WINDOW hits
  with one score, those beyond it are in the engine's order.
- A query that only filters gives score 1 and order of URL.
- A read of several requests uses one point in time.
- An answer with a missing shard is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import msgspec

from sinks.index.document import StoredHit, rounded
from sinks.index.errors import IndexUnreachable
from sinks.index.opensearch.node import Node
from sinks.index.opensearch.query import Engine

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

Scored = list[tuple[float, StoredHit]]
Hits = Sequence[Mapping[str, Any]]

_DECODER = msgspec.json.Decoder(StoredHit)
_BY_SCORE: Sequence[Mapping[str, str]] = ({"_score": "desc"}, {"url": "asc"}, {"oid": "asc"})
_BY_URL: Sequence[Mapping[str, str]] = ({"url": "asc"}, {"oid": "asc"})


def count(node: Node, alias: str, engine: Engine) -> int:
    """Return the number of matching documents."""
    # The `_count` interface answers even if shards are missing.
    return _total(node.ask("POST", f"/{alias}/_search", {"query": engine, "size": 0, "track_total_hits": True}, **_WHOLE))


def by_url(node: Node, alias: str, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
    """Return a page in order of URL, each hit with score 1, and the number of matches."""
    hits, total = _read(node, alias, engine, _BY_URL, offset, offset + limit)
    return [(1.0, _shown(hit)) for hit in hits], total


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
        for hits, total in _steps(node, moment, body, WINDOW):  # noqa: B007 - the last one is told
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
