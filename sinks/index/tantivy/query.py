"""Compiler from the query tree to tantivy's query.

Laws:
- It matches what `processors.query.predicate` matches (checked by a property test), and scores as `sinks/index/document.py` says.
"""

from __future__ import annotations

from typing import Literal

from tantivy import Occur, Schema
from tantivy import Query as Engine

from processors.query.words import attribute as known
from processors.query.words import exact, words
from schemas.query import EXACT_FIELDS, LINKS, SETS, TEXT_FIELDS, And, Every, Exists, Not, Or, Phrase, Query, Word
from sinks.index.document import ATTRIBUTES, HIDDEN, OTHER_FIELDS_SHARE, WEIGHTS, is_plain, key, link, mark, term
from sinks.index.tantivy.schema import OWN


class Compiler:
    """Compiler for one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._hidden = Engine.term_query(schema, "role", HIDDEN, index_option="basic")
        self.every = self._shown(Engine.all_query())

    def compile(self, query: Query) -> Engine:
        """Compile a tree to tantivy's query; it matches summaries only, copies included."""
        match query:
            case And(parts):
                return self._all(parts)
            case Or(parts):
                return Engine.boolean_query([(Occur.Should, self.compile(part)) for part in parts])
            case Not(part):
                return Engine.boolean_query([(Occur.Must, self.every), (Occur.MustNot, self.compile(part))])
            case Exists(attribute):
                return self._condition("has", term(known(attribute)))
            case Word(text, attribute) | Phrase(text, attribute):
                return self._text(text, known(attribute))
            case Every():
                return self.every
        raise TypeError(f"no node of a query: {type(query).__name__}")

    def _all(self, parts: tuple[Query, ...]) -> Engine:
        denied = [(Occur.MustNot, self.compile(part.part)) for part in parts if isinstance(part, Not)]
        asked = [(Occur.Must, self.compile(part)) for part in parts if not isinstance(part, Not)]
        return Engine.boolean_query([*(asked or [(Occur.Must, self.every)]), *denied])

    def _condition(self, field: str, value: str) -> Engine:
        return Engine.const_score_query(self._term(field, value), 0.0)

    def _term(self, field: str, value: str) -> Engine:
        return Engine.term_query(self.schema, field, value, index_option="basic")

    def _shown(self, found: Engine) -> Engine:
        """Restrict a query to summaries, without score."""
        return Engine.const_score_query(Engine.boolean_query([(Occur.Must, found), (Occur.MustNot, self._hidden)]), 0.0)

    def _exact(self, name: str, value: str) -> Engine:
        """Return a query for a value of one of EXACT_FIELDS, as `summary_document` wrote it."""
        if name == "oid" and is_plain(value):
            # An OID in capitals is not stored as a key, but among the exact values.
            keyed = Engine.term_query(self.schema, "key", key(value))
            return Engine.boolean_query(
                [(Occur.Should, self._shown(keyed)), (Occur.Should, self._condition("exact", f"oid={value}"))]
            )
        if name == "object-url":
            own = [(Occur.Must, self._condition("exact", OWN)), (Occur.Must, self._condition("exact", f"url={value}"))]
            said = self._condition("exact", f"object-url={value}")
            return Engine.boolean_query([(Occur.Should, Engine.boolean_query(own)), (Occur.Should, said)])
        return self._condition("exact", f"{name}={value}")

    def _text(self, text: str, name: str) -> Engine:
        if name in EXACT_FIELDS:
            value = exact(text)
            return self._exact(name, value) if value else Engine.empty_query()
        if name in LINKS:
            return self._condition("links", link(name, exact(text)))
        found = words(text)
        if not found:
            return Engine.empty_query()
        if not name:
            asked = {field: weight for field, weight in WEIGHTS.items() if len(found) == 1 or field not in SETS}
            fields = [Engine.boost_query(self._run(field, found), weight) for field, weight in asked.items()]
            return Engine.disjunction_max_query(fields, OTHER_FIELDS_SHARE)
        if name in TEXT_FIELDS:
            return self._run(name, found)
        return self._run(ATTRIBUTES, [mark(name) + word for word in found])

    def _run(self, field: str, found: list[str]) -> Engine:
        if len(found) == 1:
            option: Literal["basic", "freq"] = "basic" if field in SETS else "freq"
            return Engine.term_query(self.schema, field, found[0], index_option=option)
        if field in SETS:
            return Engine.empty_query()
        return Engine.phrase_query(self.schema, field, list(found))
