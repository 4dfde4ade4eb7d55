"""Compilation of the query tree, as far as it is the same for every engine; an engine's own compiler adds its primitives.

Laws:
- A compiled query matches what `processors.query.predicate` matches, or more where `inexact` says so (checked by a property test);
  it scores as `sinks/index/document.py` says.
- Inexact are: words with their very letters and nearness, since an index has folded words and no limits between values; whole
  values, but for those of facets; regular expressions that look at whole values or are too large for the engine; three errors. Each
  is narrowed by the words or letters that every match has.
- Under NOT an inexact part is left out, since it would deny too much.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic

from processors.query import facets, places, regex, values
from processors.query.forms import Analyzer, signed_name
from processors.query.patterns import wildcard_expression
from processors.query.predicate import bare, enough
from processors.query.words import attribute as known
from processors.query.words import fold, words
from schemas.query import (
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
    Whole,
    Wildcard,
    Word,
)
from sinks.index.compiled import Compiled, Engine
from sinks.index.document import (
    ABSENT,
    ATTRIBUTES,
    FORMS,
    NAMED_FORMS,
    OTHER_FIELDS_SHARE,
    TITLE_FORMS,
    WEIGHTS,
    facet_field,
    mark,
    term,
)
from sinks.index.options import Options

MANY = 40
"""Number of bare words up to which each scores as it is written, too: an engine takes some thousand clauses."""


class Compiler(ABC, Generic[Engine]):
    """Compilation of one query. The primitives return queries that may match hidden documents."""

    def __init__(self, analyzer: Analyzer, options: Options) -> None:
        self.analyzer = analyzer
        self.options = options
        self.inexact: Query | None = None
        """First part of the query that the engine answers too widely."""
        self._many = False
        """Whether the query has so many words that only their forms count."""

    def compiled(self, query: Query) -> Compiled[Engine]:
        """Compile a tree. Raises QueryRefused."""
        self._many = _bare_words(query) > MANY
        return Compiled(self.compile(query), self.inexact)

    @abstractmethod
    def every(self) -> Engine:
        """Return a query for all summaries, without score."""

    @abstractmethod
    def nothing(self) -> Engine:
        """Return a query without matches."""

    @abstractmethod
    def any(self, queries: Sequence[Engine], least: int = 1) -> Engine:
        """Return a query for what at least so many queries match; the scores add up."""

    @abstractmethod
    def all(self, queries: Sequence[Engine], *, denied: Sequence[Engine] = (), wished: Sequence[Engine] = ()) -> Engine:
        """Return a query for what all `queries` match, and none of the denied ones; the wished ones only add to the score."""

    @abstractmethod
    def best(self, queries: Sequence[Engine], share: float) -> Engine:
        """Return a query for what any of the queries matches: the best score, and a share of the others."""

    @abstractmethod
    def run(self, field: str, found: Sequence[str], weight: float) -> Engine:
        """Return a query for adjacent words of a field, with a weighed score."""

    @abstractmethod
    def unscored(self, query: Engine) -> Engine:
        """Return a query whose matches do not score."""

    @abstractmethod
    def condition(self, field: str, value: str) -> Engine:
        """Return a query for a term, without score."""

    @abstractmethod
    def whole(self, name: str, text: str) -> Engine:
        """Return a query for a whole value of one of WHOLE."""

    @abstractmethod
    def cells(self, low: int, high: int) -> Engine:
        """Return a query for a range of `processors.query.values.cells`."""

    @abstractmethod
    def inside(self, terms: Sequence[str]) -> Engine:
        """Return a query for adjacent segments of a place."""

    @abstractmethod
    def prefix(self, field: str, head: str) -> Engine:
        """Return a query for words that begin so."""

    @abstractmethod
    def expressed(self, field: str, before: str, written: str) -> Engine:
        """Return a query for words that an expression, written for this engine, describes behind some literal text."""

    @abstractmethod
    def written(self, expression: regex.Expression) -> str | None:
        """Return a regular expression of words as this engine takes it; None if it cannot answer it exactly."""

    @abstractmethod
    def fuzzy(self, query: Query, text: str, errors: int, name: str) -> Engine:
        """Return a query for words with at most so many errors."""

    def compile(self, query: Query) -> Engine:
        """Return the query of a part. Raises QueryRefused."""
        match query:
            case And(parts):
                return self._and(parts)
            case Most(parts):
                return self._most(parts)
            case Or(parts):
                return self.any(list(map(self.compile, parts)))
            case Not(part):
                return self._and((Not(part),))
            case Exists(attribute):
                return self.condition("has", term(known(attribute)))
            case Every():
                return self.every()
        return self._text(query)

    def _and(self, parts: Sequence[Query]) -> Engine:
        denied = [made for part in parts if isinstance(part, Not) and (made := self._denied(part.part)) is not None]
        asked = [self.compile(part) for part in parts if not isinstance(part, Not)]
        return self.all(asked or [self.every()], denied=denied)

    def _denied(self, part: Query) -> Engine | None:
        """Return the query of a part that must not match; None if it is inexact."""
        before, self.inexact = self.inexact, None
        made = self.compile(part)
        exactly = self.inexact is None
        self.inexact = before or self.inexact
        return made if exactly else None

    def _most(self, parts: Sequence[Query]) -> Engine:
        wanted = [self.compile(part) for part in parts if bare(part)]
        if not wanted:
            return self._and(parts)
        found = self.any(wanted, enough(len(wanted)))
        rest = [part for part in parts if not bare(part)]
        return self.all([found, self._and(rest)]) if rest else found

    def _text(self, query: Query) -> Engine:
        match query:
            case Word(text, attribute) | Phrase(text, attribute) | Verbatim(text, attribute) | Whole(text, attribute) if (
                known(attribute) in WHOLE
            ):
                return self.whole(known(attribute), text)
            case Word(text, attribute):
                return self._word(text, known(attribute))
            case Phrase(text, attribute) if signed_name(text):
                return self._word(text, known(attribute))
            case Phrase(text, attribute):
                return self._phrase(words(text), known(attribute))
            case Verbatim(text, attribute):
                return self.wide(query, self._phrase(words(text), known(attribute)))
            case Whole(text, attribute):
                return self._value(query, text, known(attribute))
            case Near(asked, _, attribute):
                found = [word for text in asked for word in words(text)]
                return self.wide(query, self._together(found, known(attribute)))
        return self._pattern(query)

    def _pattern(self, query: Query) -> Engine:
        match query:
            case Wildcard(text, attribute):
                return self._wildcard(query, text, known(attribute))
            case Fuzzy(text, errors, attribute):
                return self.fuzzy(query, fold(text), errors, known(attribute))
            case Regex(text, attribute):
                return self._regex(query, regex.parse(text), known(attribute))
            case NumberRange() | MomentRange():
                low, high = values.bounds(query)
                return self.cells(low, high) if low <= high else self.nothing()
            case Site(host):
                return self.condition(facet_field("site"), places.host(f"http://{host}"))
            case Inside(place):
                return self.inside(places.segment_terms(places.wanted(place)))
        raise TypeError(f"no node of a query: {type(query).__name__}")

    def wide(self, part: Query, engine: Engine) -> Engine:
        """Return the query of a part that the engine answers too widely."""
        self.inexact = self.inexact or part
        return engine

    def _word(self, text: str, name: str) -> Engine:
        """Return a query for a word in any of its forms."""
        found, signed = words(text), signed_name(text)
        if not (signed or len(found) == 1):
            return self._phrase(found, name)
        forms = (signed,) if signed else self.analyzer.query_forms(found[0])
        if name:
            return self.best([self.run(NAMED_FORMS, [mark(name) + form], 1.0) for form in forms], 0.0)
        formed = self.best(list(map(self._formed, forms)), 0.0)
        return formed if signed or self._many else self.all([formed], wished=[self._as_written(found[0])])

    def _formed(self, form: str) -> Engine:
        return self.all([self.run(FORMS, [form], 1.0)], wished=[self.run(TITLE_FORMS, [form], self.options.title)])

    def _as_written(self, word: str) -> Engine:
        return self.best([self.run(field, [word], self.options.exact) for field in WEIGHTS], OTHER_FIELDS_SHARE)

    def _phrase(self, found: Sequence[str], name: str) -> Engine:
        """Return a query for adjacent words as they are written."""
        if not found:
            return self.nothing()
        if name:
            return self._run(*_fielded(name, found))
        asked = [(field, weight) for field, weight in WEIGHTS.items() if len(found) == 1 or field not in SETS]
        return self.best([self._run(field, found, weight) for field, weight in asked], OTHER_FIELDS_SHARE)

    def _run(self, field: str, found: Sequence[str], weight: float = 1.0) -> Engine:
        return self.nothing() if len(found) > 1 and field in SETS else self.run(field, found, weight)

    def _value(self, query: Query, text: str, name: str) -> Engine:
        """Return a query for a whole value of an attribute."""
        if name in facets.BY_VALUE:
            return self.condition(facet_field(name), facets.plain(text))
        found = words(text)
        if not found:
            return self.wide(query, self.condition("has", term(name)))
        if name in SETS:
            return self.wide(query, self.unscored(self.all([self.run(name, [word], 1.0) for word in found])))
        return self.wide(query, self.unscored(self._phrase(found, name)))

    def _together(self, found: Sequence[str], name: str) -> Engine:
        """Return a query for words that occur in one field, in any order."""
        if name:
            field, marked = _fielded(name, found)
            return self.nothing() if field in SETS else self.all([self.run(field, [word], 1.0) for word in marked])
        each = [self.all([self.run(field, [word], 1.0) for word in found]) for field in WEIGHTS if field not in SETS]
        return self.any(each)

    def worded(self, name: str, query: Callable[[str, str], Engine]) -> Engine:
        """Return a query that does not score, for a word in one of the fields: `query(field, prefix of its words)`."""
        if name in WHOLE:
            return self.nothing()
        fields = [(name, "") if name in TEXT_FIELDS else (ATTRIBUTES, mark(name))] if name else [(field, "") for field in WEIGHTS]
        return self.unscored(self.any([query(field, before) for field, before in fields]))

    def _wildcard(self, query: Query, text: str, name: str) -> Engine:
        head = fold(text).rstrip("*")
        if fold(text) == head + "*" and not set("*?") & set(head):
            return self.worded(name, lambda field, before: self.prefix(field, before + head))
        return self._regex(query, wildcard_expression(text), name)

    def _regex(self, query: Query, expression: regex.Expression, name: str) -> Engine:
        written = self.written(expression) if expression.of_words else None
        if written is not None:
            absent = expression.test()(ABSENT)
            return self.worded(name, lambda field, before: self._expressed(field, before, written, absent=absent))
        runs = [word for text in expression.required() for word in words(text)]
        if not runs:
            return self.wide(query, self.condition("has", term(name)) if name else self.every())
        return self.wide(query, self.all([self._with_letters(run, name) for run in runs]))

    def _expressed(self, field: str, before: str, written: str, *, absent: bool) -> Engine:
        """Return a query for words that an expression describes, which may describe ABSENT, too."""
        found = self.expressed(field, before, written)
        return self.all([found], denied=[self.run(field, [ABSENT], 1.0)]) if absent and not before else found

    def _with_letters(self, run: str, name: str) -> Engine:
        return self.worded(name, lambda field, before: self.expressed(field, before, f".*{run}.*"))


def _bare_words(query: Query) -> int:
    if isinstance(query, And | Or | Most):
        return sum(map(_bare_words, query.parts))
    return int(bare(query))


def _fielded(name: str, found: Sequence[str]) -> tuple[str, list[str]]:
    """Return the field in which an attribute's words are, and the words as they are there."""
    return (name, list(found)) if name in TEXT_FIELDS else (ATTRIBUTES, [mark(name) + word for word in found])
