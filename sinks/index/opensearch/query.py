"""Compiler from the query tree to OpenSearch's query.

Laws:
- It matches what `processors.query.predicate` matches (checked by a property test), and scores as `sinks/index/document.py` says.
- Conditions are filters: they do not score.
"""

from __future__ import annotations

from typing import Any

from processors.query.words import attribute as known
from processors.query.words import exact, words
from schemas.query import EXACT_FIELDS, LINKS, SETS, TEXT_FIELDS, And, Every, Exists, Not, Or, Phrase, Query, Word
from sinks.index.document import ATTRIBUTES, COPY, HIDDEN, OTHER_FIELDS_SHARE, WEIGHTS, link, mark, term

Engine = dict[str, Any]

FACTOR = 2.2
"""k1 + 1: OpenSearch leaves it out of BM25, tantivy does not; so scores are the same in both."""

_HIDDEN: Engine = {"term": {"role": HIDDEN}}
_COPY: Engine = {"term": {"role": COPY}}
_NOTHING: Engine = {"match_none": {}}


def compiled(query: Query, *, copies: bool = True) -> Engine:
    """Compile a tree to OpenSearch's query; it matches summaries only."""
    denied = [_HIDDEN] if copies else [_HIDDEN, _COPY]
    return {"bool": {"must": [_compile(query)], "must_not": denied}}


def _compile(query: Query) -> Engine:
    """Compile a tree to a query that may match hidden documents; `compiled` excludes them from the whole."""
    match query:
        case And(parts):
            return _all(parts)
        case Or(parts):
            return {"bool": {"should": list(map(_compile, parts)), "minimum_should_match": 1}} if parts else _NOTHING
        case Not(part):
            return {"bool": {"must_not": [_compile(part)]}}
        case Exists(attribute):
            return _condition("has", term(known(attribute)))
        case Word(text, attribute) | Phrase(text, attribute):
            return _text(text, known(attribute))
        case Every():
            return {"bool": {"filter": [{"match_all": {}}]}}
    raise TypeError(f"no node of a query: {type(query).__name__}")


def _all(parts: tuple[Query, ...]) -> Engine:
    if not parts:
        return _compile(Every())
    denied = [_compile(part.part) for part in parts if isinstance(part, Not)]
    asked = [_compile(part) for part in parts if not isinstance(part, Not)]
    return {"bool": {"must": asked, "must_not": denied}}


def _condition(field: str, value: str) -> Engine:
    return {"bool": {"filter": [{"term": {field: value}}]}}


def _text(text: str, name: str) -> Engine:
    if name in EXACT_FIELDS:
        value = exact(text)
        return _condition("exact", f"{name}={value}") if value else _NOTHING
    if name in LINKS:
        return _condition("links", link(name, exact(text)))
    found = words(text)
    if not found:
        return _NOTHING
    if not name:
        return {
            "dis_max": {
                "queries": [
                    _run(field, found, weight) for field, weight in WEIGHTS.items() if len(found) == 1 or field not in SETS
                ],
                "tie_breaker": OTHER_FIELDS_SHARE,
            }
        }
    if name in TEXT_FIELDS:
        return _run(name, found)
    return _run(ATTRIBUTES, [mark(name) + word for word in found])


def _run(field: str, found: list[str], weight: float = 1.0) -> Engine:
    if len(found) == 1:
        return {"term": {field: {"value": found[0], "boost": FACTOR * weight}}}
    if field in SETS:
        return _NOTHING
    return {"match_phrase": {field: {"query": " ".join(found), "boost": FACTOR * weight}}}
