"""tantivy's primitives for the compilation of a query (`sinks/index/compiler.py`)."""

# ruff: noqa: D102 - the base class documents its primitives
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from tantivy import FieldType, Occur, Schema, Searcher
from tantivy import Query as Engine

from processors.query import regex
from processors.query.forms import Analyzer
from processors.query.patterns import fuzzy
from processors.query.words import exact
from schemas.query import LINKS, SETS, TEXT_FIELDS, Query
from sinks.index.compiler import Compiler
from sinks.index.document import HIDDEN, UNCOUNTED, is_plain, key, link
from sinks.index.options import Options
from sinks.index.tantivy.schema import OWN

SLACK = 2
"""Errors that the engine's own automata allow."""


class TantivyCompiler(Compiler[Engine]):
    """Compilation of one query for one state of the index."""

    def __init__(self, schema: Schema, searcher: Searcher, analyzer: Analyzer, options: Options) -> None:
        super().__init__(analyzer, options)
        self._schema = schema
        self._searcher = searcher

    def every(self) -> Engine:
        return self._shown(Engine.all_query())

    def nothing(self) -> Engine:
        return Engine.empty_query()

    def any(self, queries: Sequence[Engine], least: int = 1) -> Engine:
        return queries[0] if len(queries) == 1 else Engine.boolean_query([(Occur.Should, query) for query in queries], least)

    def all(self, queries: Sequence[Engine], *, denied: Sequence[Engine] = (), wished: Sequence[Engine] = ()) -> Engine:
        if len(queries) == 1 and not (denied or wished):
            return queries[0]
        parts = [(Occur.Must, query) for query in queries]
        return Engine.boolean_query(
            [*parts, *((Occur.MustNot, query) for query in denied), *((Occur.Should, query) for query in wished)]
        )

    def best(self, queries: Sequence[Engine], share: float) -> Engine:
        return queries[0] if len(queries) == 1 else Engine.disjunction_max_query(list(queries), share)

    def run(self, field: str, found: Sequence[str], weight: float) -> Engine:
        if len(found) == 1:
            option: Literal["basic", "freq"] = "basic" if field in SETS or field in UNCOUNTED else "freq"
            made = Engine.term_query(self._schema, field, found[0], index_option=option)
        else:
            made = Engine.phrase_query(self._schema, field, list(found))
        return made if weight == 1.0 else Engine.boost_query(made, weight)

    def unscored(self, query: Engine) -> Engine:
        return Engine.const_score_query(query, 0.0)

    def condition(self, field: str, value: str) -> Engine:
        return self.unscored(self.term(field, value))

    def term(self, field: str, value: str) -> Engine:
        """Return a query for a term without its frequency."""
        return Engine.term_query(self._schema, field, value, index_option="basic")

    def _shown(self, found: Engine) -> Engine:
        """Restrict a query to summaries, without score."""
        hidden = self.term("role", HIDDEN)
        return self.unscored(Engine.boolean_query([(Occur.Must, found), (Occur.MustNot, hidden)]))

    def whole(self, name: str, text: str) -> Engine:
        value = exact(text)
        if name in LINKS:
            return self.condition("links", link(name, value))
        if not value:
            return Engine.empty_query()
        if name == "oid" and is_plain(value):
            # An OID in capitals is not stored as a key, but among the exact values.
            return self.any([self.keyed([value]), self.condition("exact", f"oid={value}")])
        if name == "object-url":
            own = self.all([self.condition("exact", OWN), self.condition("exact", f"url={value}")])
            return self.any([own, self.condition("exact", f"object-url={value}")])
        return self.condition("exact", f"{name}={value}")

    def keyed(self, oids: Sequence[str]) -> Engine:
        """Return a query for summaries by their OIDs, without score."""
        return self._shown(Engine.term_set_query(self._schema, "key", [key(oid) for oid in oids]))

    def cells(self, low: int, high: int) -> Engine:
        return self.unscored(Engine.range_query(self._schema, "cells", FieldType.Unsigned, low, high))

    def inside(self, terms: Sequence[str]) -> Engine:
        if len(terms) == 1:
            return self.condition("places", terms[0])
        return self.unscored(Engine.phrase_query(self._schema, "places", list(terms)))

    def prefix(self, field: str, head: str) -> Engine:
        return Engine.fuzzy_term_query(self._schema, field, head, distance=0, prefix=True)

    def expressed(self, field: str, before: str, written: str) -> Engine:
        return Engine.regex_query(self._schema, field, before + written)

    def written(self, expression: regex.Expression) -> str | None:
        written = expression.tantivy()
        return written if expression.exact_tantivy else None

    def fuzzy(self, query: Query, text: str, errors: int, name: str) -> Engine:
        """Return a query for the words of the index that have so few errors.

        They are looked up here one by one where the engine's automata cannot: these allow two errors at most, and would allow them
        in the mark of an attribute's name, too.
        """
        if errors <= SLACK and (not name or name in TEXT_FIELDS):
            return self.worded(
                name,
                lambda field, _: Engine.fuzzy_term_query(self._schema, field, text, distance=errors, transposition_cost_one=False),
            )
        test = fuzzy(text, errors)
        return self.worded(name, lambda field, before: self._listed(field, before, test))

    def _listed(self, field: str, before: str, test: Callable[[str], bool]) -> Engine:
        listed = self._searcher.terms_with_prefix(field, before)
        found = [word for word, _ in listed if test(word[len(before) :])]
        return Engine.term_set_query(self._schema, field, found) if found else Engine.empty_query()
