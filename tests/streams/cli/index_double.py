"""Index that holds some summaries in memory, and records what it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from processors.query import matches
from processors.query.facets import columns, refined, without
from processors.query.forms import DEFAULT_LANGUAGES
from processors.query.words import searchable_values, words
from schemas.ports import FacetValue, Hit, Page, Part, Refused, Sort
from schemas.query import And, Query, Word
from schemas.records import Removed, Summary

SCORE = 2.0


class IndexDouble:
    """Implements `schemas.ports.BrokerIndex` for reading."""

    def __init__(self, *summaries: Summary) -> None:
        self.summaries = {summary.oid: summary for summary in summaries}
        self.searches: list[dict[str, Any]] = []
        """Arguments of each search."""
        self.closed = 0

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        raise OSError("the index is read-only")

    def offsets(self) -> Mapping[int, int]:
        return {}

    def search(
        self,
        query: Query,
        limit: int = 10,
        offset: int = 0,
        copies: bool = False,
        *,
        sort: Sort = "relevance",
        facets: Sequence[str] = (),
    ) -> Page:
        self.searches.append({"limit": limit, "offset": offset, "copies": copies, "sort": sort, "facets": tuple(facets)})
        found = sorted(self._found(query), key=lambda one: one.url)
        hits = tuple(Hit(one.oid, one.url, self._title(one), one.type, SCORE, "") for one in found[offset : offset + limit])
        return Page(hits, len(found), {facet: self._facet(query, facet) for facet in facets})

    def _found(self, query: Query) -> list[Summary]:
        return [summary for summary in self.summaries.values() if matches(query, summary)]

    def _title(self, summary: Summary) -> str:
        return str(next(iter(summary.attributes.get("title", ())), ""))

    def _facet(self, query: Query, facet: str) -> tuple[FacetValue, ...]:
        found = [value for one in self._found(without(query, facet)) for value in columns(one, searchable_values(one))[facet]]
        made = [FacetValue(value, self.count(refined(query, facet, value))) for value in Counter(found)]
        return tuple(sorted(made, key=lambda each: (-each.total, each.value)))

    def scroll(self, query: Query) -> Iterator[str]:
        return iter(sorted(one.oid for one in self._found(query)))

    def count(self, query: Query) -> int:
        return len(self._found(query))

    def explain(self, query: Query, oids: Sequence[str]) -> Mapping[str, Sequence[Part]]:
        parts = query.parts if isinstance(query, And) else (query,)
        named = [part.text for part in parts if isinstance(part, Word)]
        return {oid: [Part(text, SCORE / len(named)) for text in named] for oid in oids}

    @property
    def languages(self) -> tuple[str, ...]:
        return DEFAULT_LANGUAGES

    def plan(self, query: Query) -> str:
        return repr(query)

    def record(self, oid: str) -> Summary | None:
        return self.summaries.get(oid)

    def records(self, oids: Sequence[str]) -> Mapping[str, Summary]:
        return {oid: self.summaries[oid] for oid in oids if oid in self.summaries}

    def complete(self, beginning: str, limit: int = 10) -> Sequence[tuple[str, int]]:
        found = Counter(
            word for one in self.summaries.values() for word in set(words(self._title(one))) if word.startswith(beginning)
        )
        return found.most_common(limit)

    def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        return [self.count(Word(word)) for word in words]

    def close(self) -> None:
        self.closed += 1
