"""Compiler from the query tree to OpenSearch's query.

Laws:
- It matches what `processors.query.predicate` matches, or more where `Compiled.inexact` says so (checked by a property test); it
  scores as `sinks/index/document.py` says.
- Conditions and patterns are filters: they do not score.
- Inexact are: words with their very letters; nearness; regular expressions that look at whole values or are too large for the
  engine; three errors. Each is narrowed by the words or letters that every match has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from processors.query import places, regex, values
from processors.query.forms import DEFAULT, Analyzer, signed_name
from processors.query.patterns import wildcard_expression
from processors.query.predicate import bare, enough
from processors.query.words import attribute as known
from processors.query.words import exact, fold, words
from schemas.query import (
    EXACT_FIELDS,
    LINKS,
    SETS,
    TEXT_FIELDS,
    WHOLE,
    And,
    Every,
    Exists,
    Fuzzy,
    Inside,
    MomentRange,
    Most,
    Near,
    Not,
    NumberRange,
    Or,
    Phrase,
    Query,
    Regex,
    Site,
    Verbatim,
    Wildcard,
    Word,
)
from sinks.index.compiled import Compiled
from sinks.index.document import (
    ATTRIBUTES,
    COPY,
    EXACT_WEIGHT,
    FORMS,
    HIDDEN,
    NAMED_FORMS,
    OTHER_FIELDS_SHARE,
    SITE,
    TITLE_FORMS,
    TITLE_WEIGHT,
    WEIGHTS,
    link,
    mark,
    term,
)
from sinks.index.errors import QueryRefused

Engine = dict[str, Any]

FACTOR = 2.2
"""k1 + 1: OpenSearch leaves it out of BM25, tantivy does not; so scores are the same in both."""
SLACK = 2
"""Errors that the engine's own automata allow."""

_HIDDEN: Engine = {"term": {"role": HIDDEN}}
_COPY: Engine = {"term": {"role": COPY}}
_NOTHING: Engine = {"match_none": {}}


def compiled(query: Query, analyzer: Analyzer = DEFAULT, *, copies: bool = True) -> Compiled[Engine]:
    """Compile a tree to OpenSearch's query; it matches summaries only. Raises QueryRefused."""
    denied = [_HIDDEN] if copies else [_HIDDEN, _COPY]
    run = _Run(analyzer)
    return Compiled({"bool": {"must": [run.compile(query)], "must_not": denied}}, run.inexact)


class _Run:
    """Compilation of one query to a query that may match hidden documents; `compiled` excludes them from the whole."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self.inexact: Query | None = None

    def compile(self, query: Query) -> Engine:
        match query:
            case And(parts):
                return self._and(parts)
            case Most(parts):
                return self._most(parts)
            case Or(parts):
                return _any(list(map(self.compile, parts)))
            case Not(part):
                return self._and((Not(part),))
            case Exists(attribute):
                return _condition("has", term(known(attribute)))
            case Every():
                return {"bool": {"filter": [{"match_all": {}}]}}
        return self._term(query)

    def _and(self, parts: Sequence[Query]) -> Engine:
        denied = [made for part in parts if isinstance(part, Not) and (made := self._denied(part.part))]
        asked = [self.compile(part) for part in parts if not isinstance(part, Not)]
        return {"bool": {"must": asked, "must_not": denied}} if asked or denied else self.compile(Every())

    def _denied(self, part: Query) -> Engine | None:
        """Return the query of a part that must not match; None if it is inexact, since it would deny too much."""
        before, self.inexact = self.inexact, None
        made = self.compile(part)
        exactly = self.inexact is None
        self.inexact = before or self.inexact
        return made if exactly else None

    def _most(self, parts: Sequence[Query]) -> Engine:
        wanted = [self.compile(part) for part in parts if bare(part)]
        if not wanted:
            return self._and(parts)
        found: Engine = {"bool": {"should": wanted, "minimum_should_match": enough(len(wanted))}}
        rest = [part for part in parts if not bare(part)]
        return _all([found, self._and(rest)]) if rest else found

    def _term(self, query: Query) -> Engine:
        match query:
            case Word(text, attribute):
                return self._word(text, known(attribute))
            case Phrase(text, attribute) | Verbatim(text, attribute) if known(attribute) in WHOLE:
                return _whole(known(attribute), text)
            case Phrase(text, attribute):
                return _phrase(words(text), known(attribute))
            case Verbatim(text, attribute):
                return self._wide(query, _phrase(words(text), known(attribute)))
            case Near(asked, _, attribute):
                found = [word for text in asked for word in words(text)]
                return self._wide(query, _together(found, known(attribute)))
        return self._pattern(query)

    def _wide(self, part: Query, engine: Engine) -> Engine:
        self.inexact = self.inexact or part
        return engine

    def _word(self, text: str, name: str) -> Engine:
        if name in WHOLE:
            return _whole(name, text)
        found, signed = words(text), signed_name(text)
        if not (signed or len(found) == 1):
            return _phrase(found, name)
        forms = (signed,) if signed else self._analyzer.query_forms(found[0])
        if name:
            return _best([_scored(NAMED_FORMS, mark(name) + form) for form in forms])
        formed = _best([_in_text(form) for form in forms])
        return formed if signed else {"bool": {"must": [formed], "should": [_written(found[0])]}}

    def _pattern(self, query: Query) -> Engine:
        match query:
            case Wildcard(text, attribute):
                return self._wildcard(query, text, known(attribute))
            case Fuzzy(text, errors, attribute):
                return self._fuzzy(query, fold(text), errors, known(attribute))
            case Regex(text, attribute):
                return self._regex(query, regex.parse(text), known(attribute))
            case NumberRange() | MomentRange():
                low, high = values.bounds(query)
                return _filter({"range": {"cells": {"gte": low, "lte": high}}}) if low <= high else _NOTHING
            case Site(host):
                return _condition("exact", SITE + "=" + places.host("http://" + host))
            case Inside(place):
                return _filter({"match_phrase": {"places": " ".join(places.segment_terms(places.wanted(place)))}})
        raise TypeError(f"no node of a query: {type(query).__name__}")

    def _wildcard(self, query: Query, text: str, name: str) -> Engine:
        head = fold(text).rstrip("*")
        if fold(text) == head + "*" and not set("*?") & set(head):
            return _patterned(name, lambda field, before: {"prefix": {field: before + head}})
        return self._regex(query, wildcard_expression(text), name)

    def _regex(self, query: Query, expression: regex.Expression, name: str) -> Engine:
        written = expression.lucene() if expression.of_words else None
        if written is not None and expression.exact_lucene:
            return _patterned(name, lambda field, before: _expressed(field, before, written))
        runs = expression.required()
        if not runs:
            raise QueryRefused(f"/{expression.text}/ has no two letters in a row that each match must have: it is too wide")
        return self._wide(query, self._narrowed(runs, name))

    def _narrowed(self, runs: Sequence[str], name: str) -> Engine:
        """Return a query for words that have these letters in them."""
        return _all(
            [
                _patterned(name, lambda field, before, run=run: _expressed(field, before, f".*{run}.*"))  # type: ignore[misc]
                for run in (word for text in runs for word in words(text))
            ]
        )

    def _fuzzy(self, query: Query, text: str, errors: int, name: str) -> Engine:
        if errors <= SLACK:
            return _patterned(name, lambda field, before: _erring(field, before, text, errors))
        # One half of the word has one error at most, and it stands at the beginning of what was written, or behind it.
        half = len(text) // 2
        return self._wide(query, _any([self._half(text[:half], name, last=False), self._half(text[half:], name, last=True)]))

    def _half(self, text: str, name: str, *, last: bool) -> Engine:
        """Return a query for words that begin, or end, with a text within one error."""
        ways = _within_one_error(text)
        written = f"(.*)({ways})" if last else f"({ways})(.*)"
        return _patterned(name, lambda field, before: _expressed(field, before, written))


def _within_one_error(text: str) -> str:
    """Return an expression for a text of letters with at most one of them inserted, deleted or replaced."""
    ways = [
        text,
        *(f"{text[:at]}.?{text[at + 1 :]}" for at in range(len(text))),
        *(f"{text[:at]}.{text[at:]}" for at in range(len(text) + 1)),
    ]
    return "|".join(dict.fromkeys(ways))


def _condition(field: str, value: str) -> Engine:
    return _filter({"term": {field: value}})


def _filter(query: Engine) -> Engine:
    return {"bool": {"filter": [query]}}


def _any(queries: Sequence[Engine]) -> Engine:
    return {"bool": {"should": list(queries), "minimum_should_match": 1}} if queries else _NOTHING


def _all(queries: Sequence[Engine]) -> Engine:
    return {"bool": {"must": list(queries)}}


def _best(queries: Sequence[Engine], share: float = 0.0) -> Engine:
    return queries[0] if len(queries) == 1 else {"dis_max": {"queries": list(queries), "tie_breaker": share}}


def _whole(name: str, text: str) -> Engine:
    """Return a query for a whole value of one of WHOLE."""
    value = exact(text)
    if name in LINKS:
        return _condition("links", link(name, value))
    return _condition("exact", f"{name}={value}") if value and name in EXACT_FIELDS else _NOTHING


def _scored(field: str, form: str, weight: float = 1.0) -> Engine:
    return {"term": {field: {"value": form, "boost": FACTOR * weight}}}


def _in_text(form: str) -> Engine:
    return {"bool": {"must": [_scored(FORMS, form)], "should": [_scored(TITLE_FORMS, form, TITLE_WEIGHT)]}}


def _written(word: str) -> Engine:
    """Return a query for the score of a word as it is written."""
    return _best([_run(field, [word], EXACT_WEIGHT) for field in WEIGHTS], OTHER_FIELDS_SHARE)


def _phrase(found: Sequence[str], name: str) -> Engine:
    """Return a query for adjacent words as they are written."""
    if not found:
        return _NOTHING
    if name:
        return _run(*_fielded(name, found))
    asked = [(field, weight) for field, weight in WEIGHTS.items() if len(found) == 1 or field not in SETS]
    return _best([_run(field, found, weight) for field, weight in asked], OTHER_FIELDS_SHARE)


def _together(found: Sequence[str], name: str) -> Engine:
    """Return a query for words that occur in one field, in any order."""
    if name:
        field, marked = _fielded(name, found)
        return _NOTHING if field in SETS else _all([_run(field, [word]) for word in marked])
    return _any([_all([_run(field, [word]) for word in found]) for field in WEIGHTS if field not in SETS])


def _run(field: str, found: Sequence[str], weight: float = 1.0) -> Engine:
    if len(found) == 1:
        return {"term": {field: {"value": found[0], "boost": FACTOR * weight}}}
    if field in SETS:
        return _NOTHING
    return {"match_phrase": {field: {"query": " ".join(found), "boost": FACTOR * weight}}}


def _fielded(name: str, found: Sequence[str]) -> tuple[str, list[str]]:
    """Return the field in which an attribute's words are, and the words as they are there."""
    return (name, list(found)) if name in TEXT_FIELDS else (ATTRIBUTES, [mark(name) + word for word in found])


def _patterned(name: str, query: Callable[[str, str], Engine]) -> Engine:
    """Return a filter for a word in one of the fields: `query(field, prefix of its words)`."""
    if name in WHOLE:
        return _NOTHING
    fields = [(name, "") if name in TEXT_FIELDS else (ATTRIBUTES, mark(name))] if name else [(field, "") for field in WEIGHTS]
    return _filter(_any([query(field, before) for field, before in fields]))


def _expressed(field: str, before: str, written: str) -> Engine:
    return {"regexp": {field: {"value": before + written, "flags": "NONE"}}}


def _erring(field: str, before: str, text: str, errors: int) -> Engine:
    asked: Engine = {"value": before + text, "fuzziness": errors, "transpositions": False, "prefix_length": len(before)}
    return {"fuzzy": {field: asked | {"rewrite": "constant_score", "max_expansions": 50}}}
