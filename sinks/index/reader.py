"""Searches of one state of an index, as far as they are the same for every engine; an engine's own reader adds its primitives.

Laws:
- What an engine answers too widely is checked here, so every total, count and facet is exact.
- What has all bare words of a query comes before what has some of them; then the best come first, equal ones in order of URL.
- A query that only filters gives score 1 and order of URL, and so does every other order than that by relevance.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Generic

from processors.broker.views import MAX_VIEWS
from processors.query import facets, unparse
from processors.query.forms import Analyzer
from processors.query.predicate import tiers
from processors.query.ranking import Candidate, Weights, reordered
from processors.query.snippet import terms
from processors.query.words import fold, words
from schemas.ports import FacetValue, Page, Part, Sort
from schemas.query import And, Most, Or, Query, Word
from schemas.records import Summary
from sinks.index.compiled import Compiled, Engine, Records, checked, paged, refuse_above
from sinks.index.document import StoredHit, hit, oid_of, rounded, scores
from sinks.index.errors import QueryRefused
from sinks.index.options import Options

SHOWN = 10
"""Maximum number of values of a facet in a page, but for views: all of them are a tree."""
LISTED, SPREAD = 60, 10_000
"""Values of a facet that an engine is asked for: some are not shown, or are as frequent as the last that is. And those that each

part of an index counts: of a facet that has more values in a part, a value may be missing that is rare in each part.
"""
MAX_LISTED = 10_000
"""Maximum number of words that `complete` returns."""

BEST = 1_000
"""Number of hits that are ordered by freshness and links."""
URL_REFERENCES = "url-references"
"""Attribute of the links of a summary."""
FRESHNESS, LINKS = "freshness", "links"
"""Names of the parts of a score that are none of the query."""

Scored = list[tuple[float, StoredHit]]
Ranked = Callable[[Engine, int, int], tuple[Scored, int]]
"""Returns a page of the matches of a query, given offset and limit, and their number."""


class Reader(ABC, Generic[Engine]):
    """Searches of one state of an index."""

    def __init__(self, analyzer: Analyzer, options: Options, records: Records | None) -> None:
        self.analyzer = analyzer
        self.options = options
        self._records = records
        self._checked = 0
        """Number of candidates that were read so far."""
        self._left_out: list[str] = []
        self._now = int(time.time())
        self._exact: dict[tuple[Query, bool], Engine] = {}

    @abstractmethod
    def compiled(self, query: Query, *, copies: bool) -> Compiled[Engine]:
        """Compile a query; it matches summaries only, with or without copies. Raises QueryRefused."""

    @abstractmethod
    def among(self, engine: Engine, oids: Sequence[str]) -> Engine:
        """Restrict a query to some OIDs; it scores as before."""

    @abstractmethod
    def total(self, engine: Engine) -> int:
        """Return the number of matches."""

    @abstractmethod
    def totals(self, engines: Sequence[Engine]) -> Sequence[int]:
        """Return the number of matches of each of at most BEST queries."""

    @abstractmethod
    def by_score(self, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        """Return a page, best first, and the number of matches."""

    @abstractmethod
    def by_column(self, sort: Sort, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        """Return a page in any other order than that by relevance, each hit with score 1, and the number of matches."""

    @abstractmethod
    def oids(self, engine: Engine) -> Iterator[str]:
        """Iterate over the OID of every match, in order."""

    @abstractmethod
    def values(self, engine: Engine, limits: Mapping[str, int]) -> Mapping[str, Sequence[FacetValue]]:
        """Return the most frequent values of some facets among the matches, with exact numbers; `limits`: how many of each."""

    @abstractmethod
    def described(self, engine: Engine) -> str:
        """Return a query of the engine as text for people."""

    @abstractmethod
    def suggestions(self, beginning: str, limit: int) -> Sequence[tuple[str, int]]:
        """Return the most frequent of the words of `sinks.index.document.suggestions` that begin so, with their numbers."""

    def records(self, oids: Sequence[str]) -> Mapping[str, Summary]:
        """Return the summaries with some OIDs. Raises QueryRefused if the records are not here."""
        if self._records is None:
            raise QueryRefused("the records of this index are not here")
        return {oid: found for oid, found in self._records(oids).items() if isinstance(found, Summary)}

    def search(self, query: Query, limit: int, offset: int, *, copies: bool, sort: Sort, names: Sequence[str]) -> Page:
        """Return a page of hits: see `BrokerIndex.search`. Raises QueryRefused."""
        relevance = sort == "relevance" and scores(query)
        ranked = self._by_rank if relevance else partial(self.by_column, "url" if sort == "relevance" else sort)
        parts = [partial(self._part, part, copies, ranked) for part in (tiers(query) if relevance else (query,))]
        found, total = paged(parts, max(offset, 0), max(limit, 0))
        wanted = terms(query, self.analyzer)
        counts = self._facets(query, names, copies=copies)
        return Page(tuple(hit(score, kept, wanted) for score, kept in found), total, counts, self._checked, tuple(self._left_out))

    def _by_rank(self, engine: Engine, offset: int, limit: int) -> tuple[Scored, int]:
        """Return a page by score, freshness and links, and the number of matches; what is beyond the BEST is by score alone."""
        if not (self.options.freshness or self.options.links):
            return self.by_score(engine, offset, limit)
        found, total = self.by_score(engine, 0, max(BEST, offset + limit))
        ranked = reordered(self._candidates(found[:BEST]), self._weights, self._now)
        found[:BEST] = [(rounded(one.score), found[one.place][1]) for one in ranked]
        return found[offset : offset + limit], total

    def _candidates(self, found: Scored) -> list[Candidate]:
        links: Sequence[int] = [0] * len(found)
        if found and self.options.links:
            asked = [Word(kept.url, URL_REFERENCES) for _, kept in found]
            links = self.totals([self.compiled(query, copies=False).engine for query in asked])
        return [Candidate(score, kept.date, number) for (score, kept), number in zip(found, links, strict=True)]

    @property
    def _weights(self) -> Weights:
        return Weights(self.options.freshness, self.options.half_life, self.options.links)

    def _part(self, query: Query, copies: bool, ranked: Ranked[Engine], offset: int, limit: int) -> tuple[Scored, int]:
        """Return a page of the matches of a part of a query, and their number."""
        engine, inexact = self.compiled(query, copies=copies)
        if inexact is None:
            return ranked(engine, offset, limit) if limit else ([], self.total(engine))
        found = self._right(query, engine, inexact, ranked)
        return found[offset : offset + limit], len(found)

    def _right(self, query: Query, engine: Engine, inexact: Query, ranked: Ranked[Engine]) -> Scored:
        """Return all matches of a query that the engine answers too widely."""
        refuse_above(self.options.checked, number := self.total(engine), inexact)
        if not number:
            return []
        found, _ = ranked(engine, 0, number)
        self._checked += number
        try:
            right = checked(query, self.analyzer, self.records, [oid_of(kept.oid) for _, kept in found])
            return list(compress(found, right))
        except QueryRefused as error:
            raise QueryRefused(f"{unparse(inexact)} cannot be looked for: {error}") from None

    def _matching(self, query: Query, *, copies: bool) -> Engine:
        """Return an exact query of the engine."""
        if (query, copies) not in self._exact:
            engine, inexact = self.compiled(query, copies=copies)
            if inexact is not None:
                found = self._right(query, engine, inexact, partial(self.by_column, "url"))
                engine = self.among(engine, [oid_of(kept.oid) for _, kept in found])
            self._exact[query, copies] = engine
        return self._exact[query, copies]

    def _facets(self, query: Query, names: Sequence[str], *, copies: bool) -> dict[str, tuple[FacetValue, ...]]:
        asked: dict[Query, list[str]] = {}
        for name in names:
            asked.setdefault(facets.without(query, name), []).append(name)
        found: dict[str, Sequence[FacetValue]] = {}
        for rest, together in asked.items():
            try:
                found |= self.values(self._matching(rest, copies=copies), {name: _most(name, LISTED) for name in together})
            except QueryRefused as error:
                if rest == query:
                    raise
                self._left_out += [f"the facet {name} is not counted: {error.message}" for name in together]
        return {name: facets.tidied(name, found[name], _most(name, SHOWN)) for name in names if name in found}

    def scroll(self, query: Query) -> Iterator[str]:
        """Iterate over the OID of every match, in order of OID. Raises QueryRefused."""
        engine, inexact = self.compiled(query, copies=True)
        if inexact is None:
            return self.oids(engine)
        found = self._right(query, engine, inexact, partial(self.by_column, "url"))
        return iter(sorted(oid_of(kept.oid) for _, kept in found))

    def count(self, query: Query) -> int:
        """Return the number of matches, copies included. Raises QueryRefused."""
        engine, inexact = self.compiled(query, copies=True)
        return self.total(engine) if inexact is None else len(self._right(query, engine, inexact, partial(self.by_column, "url")))

    def explain(self, query: Query, oids: Sequence[str]) -> dict[str, list[Part]]:
        """Return the parts of the scores of some hits: see `BrokerIndex.explain`. Raises QueryRefused."""
        parts: dict[str, list[Part]] = {oid: [] for oid in oids}
        shown: dict[str, StoredHit] = {}
        for unit in _units(query) if oids else ():
            engine, inexact = self.compiled(unit, copies=True)
            engine = self.among(engine, oids)
            if inexact is None:
                found, _ = self.by_score(engine, 0, len(oids))
            else:
                found = self._right(unit, engine, inexact, self.by_score)
            for score, kept in found:
                parts[oid_of(kept.oid)].append(Part(unparse(unit), score))
                shown[oid_of(kept.oid)] = kept
        if self.options.freshness or self.options.links:
            scored = [(sum(part.score for part in parts[oid]), kept) for oid, kept in shown.items()]
            for one in reordered(self._candidates(scored), self._weights, self._now):
                added = (Part(FRESHNESS, one.freshness), Part(LINKS, one.links))
                parts[oid_of(scored[one.place][1].oid)] += [part for part in added if part.score]
        return parts

    def plan(self, query: Query) -> str:
        """Return the engine's own query, and what it leaves to the predicate, as text for people. Raises QueryRefused."""
        engine, inexact = self.compiled(query, copies=False)
        left = "" if inexact is None else f"\nchecked with the summaries themselves: {unparse(inexact)}"
        return self.described(engine) + left

    def complete(self, beginning: str, limit: int) -> list[tuple[str, int]]:
        """Return words that begin so: see `BrokerIndex.complete`."""
        head = fold(beginning).strip()
        return list(self.suggestions(head, min(limit, MAX_LISTED))) if words(head) == [head] and limit > 0 else []

    def frequencies(self, asked: Sequence[str]) -> Sequence[int]:
        """Return how many summaries have each word: see `BrokerIndex.frequencies`."""
        return self.totals([self.compiled(Word(word), copies=True).engine for word in asked]) if asked else []


def _most(facet: str, limit: int) -> int:
    """Return how many values of a facet are asked for or shown, where others have a limit."""
    return MAX_VIEWS if facet == facets.VIEW else limit


def _units(query: Query) -> Iterator[Query]:
    """Iterate over the parts of a query whose scores add up to its own."""
    match query:
        case And(parts) | Most(parts):
            for part in parts:
                yield from _units(part)
        case Or(parts):
            # A part of several terms scores as a whole, if all of them match.
            for part in parts:
                yield from _units(part) if isinstance(part, Or) else [part] if scores(part) else ()
        case _ if scores(query):
            yield query
