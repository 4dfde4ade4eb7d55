"""OpenSearch's primitives for the compilation of a query (`sinks/index/compiler.py`)."""

# ruff: noqa: D102 - the base class documents its primitives
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from processors.query import regex
from processors.query.words import exact
from schemas.query import EXACT_FIELDS, LINKS, Query
from sinks.index.compiler import Compiler
from sinks.index.document import COPY, HIDDEN, link

Engine = dict[str, Any]

FACTOR = 2.2
"""k1 + 1: OpenSearch leaves it out of BM25, tantivy does not; so scores are the same in both."""
SLACK = 2
"""Errors that the engine's own automata allow."""

_HIDDEN: Engine = {"term": {"role": HIDDEN}}
_COPY: Engine = {"term": {"role": COPY}}


def shown(engine: Engine, *, copies: bool = True) -> Engine:
    """Restrict a query to summaries, or to those that are no copies."""
    return {"bool": {"must": [engine], "must_not": [_HIDDEN] if copies else [_HIDDEN, _COPY]}}


class OpenSearchCompiler(Compiler[Engine]):
    """Compilation of one query; `shown` excludes hidden documents from the whole."""

    def every(self) -> Engine:
        return self.unscored({"match_all": {}})

    def nothing(self) -> Engine:
        return {"match_none": {}}

    def any(self, queries: Sequence[Engine], least: int = 1) -> Engine:
        return {"bool": {"should": list(queries), "minimum_should_match": least}} if queries else self.nothing()

    def all(self, queries: Sequence[Engine], *, denied: Sequence[Engine] = (), wished: Sequence[Engine] = ()) -> Engine:
        return {"bool": {"must": list(queries), "must_not": list(denied), "should": list(wished)}}

    def best(self, queries: Sequence[Engine], share: float) -> Engine:
        return queries[0] if len(queries) == 1 else {"dis_max": {"queries": list(queries), "tie_breaker": share}}

    def run(self, field: str, found: Sequence[str], weight: float) -> Engine:
        if len(found) == 1:
            return {"term": {field: {"value": found[0], "boost": FACTOR * weight}}}
        return {"match_phrase": {field: {"query": " ".join(found), "boost": FACTOR * weight}}}

    def unscored(self, query: Engine) -> Engine:
        return {"bool": {"filter": [query]}}

    def condition(self, field: str, value: str) -> Engine:
        return self.unscored({"term": {field: value}})

    def whole(self, name: str, text: str) -> Engine:
        value = exact(text)
        if name in LINKS:
            return self.condition("links", link(name, value))
        return self.condition("exact", f"{name}={value}") if value and name in EXACT_FIELDS else self.nothing()

    def cells(self, low: int, high: int) -> Engine:
        return self.unscored({"range": {"cells": {"gte": low, "lte": high}}})

    def inside(self, terms: Sequence[str]) -> Engine:
        return self.unscored({"match_phrase": {"places": " ".join(terms)}})

    def prefix(self, field: str, head: str) -> Engine:
        return {"prefix": {field: head}}

    def expressed(self, field: str, before: str, written: str) -> Engine:
        return {"regexp": {field: {"value": before + written, "flags": "NONE"}}}

    def written(self, expression: regex.Expression) -> str | None:
        written = expression.lucene()
        return written if expression.exact_lucene else None

    def fuzzy(self, query: Query, text: str, errors: int, name: str) -> Engine:
        if errors <= SLACK:
            return self.worded(name, lambda field, before: _erring(field, before, text, errors))
        # One half of the word has one error at most, and it stands at the beginning of what was written, or behind it.
        half = len(text) // 2
        return self.wide(query, self.any([self._half(text[:half], name, last=False), self._half(text[half:], name, last=True)]))

    def _half(self, text: str, name: str, *, last: bool) -> Engine:
        """Return a query for words that begin, or end, with a text within one error."""
        ways = _within_one_error(text)
        written = f"(.*)({ways})" if last else f"({ways})(.*)"
        return self.worded(name, lambda field, before: self.expressed(field, before, written))


def _within_one_error(text: str) -> str:
    """Return an expression for a text of letters with at most one of them inserted, deleted or replaced."""
    ways = [
        text,
        *(f"{text[:at]}.?{text[at + 1 :]}" for at in range(len(text))),
        *(f"{text[:at]}.{text[at:]}" for at in range(len(text) + 1)),
    ]
    return "|".join(dict.fromkeys(ways))


def _erring(field: str, before: str, text: str, errors: int) -> Engine:
    asked: Engine = {"value": before + text, "fuzziness": errors, "transpositions": False, "prefix_length": len(before)}
    return {"fuzzy": {field: asked | {"rewrite": "constant_score", "max_expansions": 50}}}
