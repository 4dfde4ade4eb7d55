"""Compiler from the query tree to tantivy's query.

Laws:
- It matches what `processors.query.predicate` matches, or more where `Compiled.inexact` says so (checked by a property test); it
  scores as `sinks/index/document.py` says.
- Inexact are: words with their very letters and nearness, since the index has folded words and no limits between values; regular
  expressions that look at whole values or are too large for the engine; three errors. Each is narrowed by the words or letters that
  every match has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from tantivy import FieldType, Occur, Schema, Searcher
from tantivy import Query as Engine

from processors.query import places, regex, values
from processors.query.forms import DEFAULT, Analyzer, signed_name
from processors.query.patterns import fuzzy, wildcard_expression
from processors.query.predicate import bare, enough
from processors.query.words import attribute as known
from processors.query.words import exact, fold, words
from schemas.query import (
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
    EXACT_WEIGHT,
    FORMS,
    HIDDEN,
    NAMED_FORMS,
    OTHER_FIELDS_SHARE,
    SITE,
    TITLE_FORMS,
    TITLE_WEIGHT,
    UNCOUNTED,
    WEIGHTS,
    is_plain,
    key,
    link,
    mark,
    term,
)
from sinks.index.errors import QueryRefused
from sinks.index.tantivy.schema import OWN

SLACK = 2
"""Errors that the engine's own automata allow."""


class Compiler:
    """Compiler for one schema."""

    def __init__(self, schema: Schema, analyzer: Analyzer = DEFAULT) -> None:
        self.schema = schema
        self._analyzer = analyzer
        self._hidden = Engine.term_query(schema, "role", HIDDEN, index_option="basic")
        self.every = self._shown(Engine.all_query())

    def compile(self, query: Query, searcher: Searcher) -> Compiled[Engine]:
        """Compile a tree for an index; it matches summaries only, copies included. Raises QueryRefused."""
        run = _Run(self, searcher)
        return Compiled(run.compile(query), run.inexact)

    def condition(self, field: str, value: str) -> Engine:
        """Return a query for a term that does not score."""
        return Engine.const_score_query(self.term(field, value), 0.0)

    def term(self, field: str, value: str) -> Engine:
        """Return a query for a term without its frequency."""
        return Engine.term_query(self.schema, field, value, index_option="basic")

    def _shown(self, found: Engine) -> Engine:
        """Restrict a query to summaries, without score."""
        return Engine.const_score_query(Engine.boolean_query([(Occur.Must, found), (Occur.MustNot, self._hidden)]), 0.0)

    def whole(self, name: str, text: str) -> Engine:
        """Return a query for a whole value of one of WHOLE, as `summary_document` wrote it."""
        value = exact(text)
        if name in LINKS:
            return self.condition("links", link(name, value))
        if not value:
            return Engine.empty_query()
        if name == "oid" and is_plain(value):
            # An OID in capitals is not stored as a key, but among the exact values.
            keyed = Engine.term_query(self.schema, "key", key(value))
            return _any([self._shown(keyed), self.condition("exact", f"oid={value}")])
        if name == "object-url":
            own = _all([self.condition("exact", OWN), self.condition("exact", f"url={value}")])
            return _any([own, self.condition("exact", f"object-url={value}")])
        return self.condition("exact", f"{name}={value}")

    def word(self, text: str, name: str) -> Engine:
        """Return a query for a word in any of its forms."""
        if name in WHOLE:
            return self.whole(name, text)
        found, signed = words(text), signed_name(text)
        if not (signed or len(found) == 1):
            return self.phrase(found, name)
        forms = (signed,) if signed else self._analyzer.query_forms(found[0])
        if name:
            return _best([self._formed(NAMED_FORMS, mark(name) + form) for form in forms])
        formed = _best([self._scored(form) for form in forms])
        return formed if signed else Engine.boolean_query([(Occur.Must, formed), (Occur.Should, self._written(found[0]))])

    def _scored(self, form: str) -> Engine:
        title = Engine.boost_query(self._formed(TITLE_FORMS, form), TITLE_WEIGHT)
        return Engine.boolean_query([(Occur.Must, self._formed(FORMS, form)), (Occur.Should, title)])

    def _written(self, word: str) -> Engine:
        """Return a query for the score of a word as it is written."""
        best = Engine.disjunction_max_query([self._run(field, [word]) for field in WEIGHTS], OTHER_FIELDS_SHARE)
        return Engine.boost_query(best, EXACT_WEIGHT)

    def _formed(self, field: str, form: str) -> Engine:
        return Engine.term_query(self.schema, field, form, index_option="basic" if field in UNCOUNTED else "freq")

    def phrase(self, found: Sequence[str], name: str) -> Engine:
        """Return a query for adjacent words as they are written."""
        if not found:
            return Engine.empty_query()
        if name:
            return self._run(*_fielded(name, found))
        asked = {field: weight for field, weight in WEIGHTS.items() if len(found) == 1 or field not in SETS}
        fields = [Engine.boost_query(self._run(field, found), weight) for field, weight in asked.items()]
        return Engine.disjunction_max_query(fields, OTHER_FIELDS_SHARE)

    def _run(self, field: str, found: Sequence[str]) -> Engine:
        if len(found) == 1:
            option: Literal["basic", "freq"] = "basic" if field in SETS else "freq"
            return Engine.term_query(self.schema, field, found[0], index_option=option)
        if field in SETS:
            return Engine.empty_query()
        return Engine.phrase_query(self.schema, field, list(found))

    def together(self, found: Sequence[str], name: str) -> Engine:
        """Return a query for words that occur in one field, in any order."""
        if name:
            field, marked = _fielded(name, found)
            return Engine.empty_query() if field in SETS else _all([self._run(field, [word]) for word in marked])
        return _any([_all([self._run(field, [word]) for word in found]) for field in WEIGHTS if field not in SETS])

    def pattern(self, name: str, query: Callable[[str, str], Engine]) -> Engine:
        """Return a query that does not score, for a word in one of the fields: `query(field, prefix of its words)`."""
        if name in WHOLE:
            return Engine.empty_query()
        fields = [(name, "") if name in TEXT_FIELDS else (ATTRIBUTES, mark(name))] if name else [(field, "") for field in WEIGHTS]
        return Engine.const_score_query(_any([query(field, before) for field, before in fields]), 0.0)


class _Run:
    """Compilation of one query for one state of the index."""

    def __init__(self, compiler: Compiler, searcher: Searcher) -> None:
        self._compiler = compiler
        self._schema = compiler.schema
        self._searcher = searcher
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
                return self._compiler.condition("has", term(known(attribute)))
            case Every():
                return self._compiler.every
        return self._term(query)

    def _and(self, parts: Sequence[Query]) -> Engine:
        denied = [(Occur.MustNot, made) for part in parts if isinstance(part, Not) and (made := self._denied(part.part))]
        asked = [(Occur.Must, self.compile(part)) for part in parts if not isinstance(part, Not)]
        return Engine.boolean_query([*(asked or [(Occur.Must, self._compiler.every)]), *denied])

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
        found = Engine.boolean_query([(Occur.Should, word) for word in wanted], enough(len(wanted)))
        rest = [part for part in parts if not bare(part)]
        return _all([found, self._and(rest)]) if rest else found

    def _term(self, query: Query) -> Engine:
        compiler = self._compiler
        match query:
            case Word(text, attribute):
                return compiler.word(text, known(attribute))
            case Phrase(text, attribute) | Verbatim(text, attribute) if known(attribute) in WHOLE:
                return compiler.whole(known(attribute), text)
            case Phrase(text, attribute):
                return compiler.phrase(words(text), known(attribute))
            case Verbatim(text, attribute):
                return self._wide(query, compiler.phrase(words(text), known(attribute)))
            case Near(asked, _, attribute):
                found = [word for text in asked for word in words(text)]
                return self._wide(query, compiler.together(found, known(attribute)))
        return self._pattern(query)

    def _wide(self, part: Query, engine: Engine) -> Engine:
        self.inexact = self.inexact or part
        return engine

    def _pattern(self, query: Query) -> Engine:
        match query:
            case Wildcard(text, attribute):
                return self._wildcard(query, text, known(attribute))
            case Fuzzy(text, errors, attribute):
                return self._fuzzy(fold(text), errors, known(attribute))
            case Regex(text, attribute):
                return self._regex(query, regex.parse(text), known(attribute))
            case NumberRange() | MomentRange():
                low, high = values.bounds(query)
                return Engine.const_score_query(self._cells(low, high), 0.0) if low <= high else Engine.empty_query()
            case Site(host):
                return self._compiler.condition("exact", SITE + "=" + places.host("http://" + host))
            case Inside(place):
                return self._inside(places.segment_terms(places.wanted(place)))
        raise TypeError(f"no node of a query: {type(query).__name__}")

    def _cells(self, low: int, high: int) -> Engine:
        return Engine.range_query(self._schema, "cells", FieldType.Unsigned, low, high)

    def _inside(self, found: list[str]) -> Engine:
        if len(found) == 1:
            return self._compiler.condition("places", found[0])
        return Engine.const_score_query(Engine.phrase_query(self._schema, "places", list(found)), 0.0)

    def _wildcard(self, query: Query, text: str, name: str) -> Engine:
        head = fold(text).rstrip("*")
        if fold(text) == head + "*" and not set("*?") & set(head):
            return self._compiler.pattern(name, lambda field, before: self._prefix(field, before + head))
        return self._regex(query, wildcard_expression(text), name)

    def _prefix(self, field: str, head: str) -> Engine:
        return Engine.fuzzy_term_query(self._schema, field, head, distance=0, prefix=True)

    def _regex(self, query: Query, expression: regex.Expression, name: str) -> Engine:
        written = expression.tantivy() if expression.of_words else None
        if written is not None and expression.exact_tantivy:
            return self._compiler.pattern(name, lambda field, before: self._expressed(field, before, written))
        runs = expression.required()
        if not runs:
            raise QueryRefused(f"/{expression.text}/ has no two letters in a row that each match must have: it is too wide")
        narrowed = [
            self._compiler.pattern(name, lambda field, before, run=run: self._expressed(field, before, f".*{run}.*"))  # type: ignore[misc]
            for run in (word for text in runs for word in words(text))
        ]
        return self._wide(query, _all(narrowed))

    def _expressed(self, field: str, before: str, written: str) -> Engine:
        return Engine.regex_query(self._schema, field, before + written)

    def _fuzzy(self, text: str, errors: int, name: str) -> Engine:
        """Return a query for the words of the index that have so few errors.

        They are looked up here one by one: the engine's automata allow two errors at most, and would allow them in the mark of an
        attribute's name, too.
        """
        if errors <= SLACK and (not name or name in TEXT_FIELDS):
            return self._compiler.pattern(
                name,
                lambda field, _: Engine.fuzzy_term_query(self._schema, field, text, distance=errors, transposition_cost_one=False),
            )
        test = fuzzy(text, errors)
        return self._compiler.pattern(name, lambda field, before: self._listed(field, before, test))

    def _listed(self, field: str, before: str, test: Callable[[str], bool]) -> Engine:
        listed = self._searcher.terms_with_prefix(field, before)
        found = [word for word, _ in listed if test(word[len(before) :])]
        return Engine.term_set_query(self._schema, field, found) if found else Engine.empty_query()


def _fielded(name: str, found: Sequence[str]) -> tuple[str, list[str]]:
    """Return the field in which an attribute's words are, and the words as they are there."""
    return (name, list(found)) if name in TEXT_FIELDS else (ATTRIBUTES, [mark(name) + word for word in found])


def _any(queries: Sequence[Engine]) -> Engine:
    return queries[0] if len(queries) == 1 else Engine.boolean_query([(Occur.Should, query) for query in queries])


def _all(queries: Sequence[Engine]) -> Engine:
    return queries[0] if len(queries) == 1 else Engine.boolean_query([(Occur.Must, query) for query in queries])


def _best(queries: Sequence[Engine]) -> Engine:
    return queries[0] if len(queries) == 1 else Engine.disjunction_max_query(list(queries), 0.0)
