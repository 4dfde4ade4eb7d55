"""Spelling: a query with its misspelled words replaced by words that the summaries have.

Laws:
- Replaced are words without a pattern or quotes, in any text attribute or none, at any depth but not under NOT. They keep their
  attribute. Words with digits or signs in them are names, and kept.
- A word is misspelled if no summary has it, or if a neighbour within one error is RARER times as frequent.
- A neighbour is a word of titles, keywords or authors with one error (words of 3 to 5 letters) or two (longer ones) that has the
  same first letter, or the first two letters in reverse order. An error is a letter inserted, deleted or replaced, or two adjacent
  letters in reverse order (Damerau, Communications of the ACM 7, 1964). Accents are no errors.
- Fewer errors are better, then a higher frequency. A missing blank is one error: of such words the best place for it is chosen.
- The corrected query finds more summaries, or more with all of the words: where most of them are enough, the others hide a
  misspelled one.
- The work is bounded: at most MAX_WORDS words, the rarest, are compared, each with at most LISTED + REVERSED words of the index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from rapidfuzz import process
from rapidfuzz.distance import OSA

from processors.query.forms import without_accents
from processors.query.words import attribute as known
from processors.query.words import fold, words
from schemas.query import TEXT_FIELDS, And, Every, Most, Or, Query, Word

SHORTEST = 3
"""Minimum length of a word that is corrected, and of each part of a split one."""
TWO_ERRORS = 6
"""Minimum length of a word that may have two errors."""
RARER = 100
MAX_WORDS = 5
LISTED = 9_000
"""Maximum number of words with the same first letter."""
REVERSED = 1_000
"""Maximum number of words with the first two letters in reverse order."""
NEIGHBOURS = 20
"""Maximum number of neighbours of a word whose frequencies are asked for."""

_Found = tuple[int, str]
"""Errors of a neighbour, and the neighbour."""


class Dictionary(Protocol):
    """Words of an index, and what it finds (part of `schemas.ports.BrokerIndex`)."""

    def complete(self, beginning: str, limit: int = 10) -> Sequence[tuple[str, int]]:
        """Return words that begin so, with the numbers of summaries, most frequent first."""
        ...

    def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        """Return how many summaries have each of some words in any form."""
        ...

    def count(self, query: Query) -> int:
        """Return the number of matching summaries."""
        ...


def corrected(query: Query, index: Dictionary) -> Query | None:
    """Return a query without misspelled words that finds more summaries; None if there is none."""
    asked = list(dict.fromkeys(filter(None, map(_plain_word, _terms(query)))))
    if not asked:
        return None
    rarest = sorted(zip(index.frequencies(asked), asked, strict=True), key=lambda pair: pair[0])[:MAX_WORDS]
    total = index.count(Every())
    found = {word: better for count, word in rarest if count * RARER <= total and (better := _better(word, count, index))}
    if not found:
        return None
    made = _replaced(query, found)
    both = [(query, made)] if (strict := _strict(query)) == query else [(query, made), (strict, _strict(made))]
    return made if any(index.count(after) > index.count(before) for before, after in both) else None


def _strict(query: Query) -> Query:
    """Return a query for what has all of the words."""
    if isinstance(query, And | Or | Most):
        parts = tuple(map(_strict, query.parts))
        return Or(parts) if isinstance(query, Or) else And(parts)
    return query


def _terms(query: Query) -> Iterator[Query]:
    """Iterate over the terms of a query that are not under NOT."""
    if isinstance(query, And | Or | Most):
        for part in query.parts:
            yield from _terms(part)
    else:
        yield query


def _plain_word(query: Query) -> str:
    """Return the word of a term that may be misspelled, as the analysis writes it; "" if the term is something else."""
    if not isinstance(query, Word) or known(query.attribute) not in ("", *TEXT_FIELDS):
        return ""
    found = words(query.text)
    plain = found == [fold(query.text)] and len(found[0]) >= SHORTEST and not any(map(str.isnumeric, found[0]))
    return found[0] if plain else ""


def _better(word: str, count: int, index: Dictionary) -> tuple[str, ...]:
    """Return the word or the two words that a word is replaced by; none if it is kept."""
    most = 1 if count or len(word) < TWO_ERRORS else 2
    found = _neighbour(word, most, max(count * RARER, 1), index)
    split = () if count or (found and found[0] < 2) else _split(word, index)
    return split or ((found[1],) if found else ())


def _neighbour(word: str, most: int, least: int, index: Dictionary) -> _Found | None:
    """Return the best neighbour with at most `most` errors that at least `least` summaries have."""
    listed = [*index.complete(word[0], LISTED), *index.complete(word[1] + word[0], REVERSED)]
    usual = [other for other, _ in listed if len(other) >= SHORTEST]
    plain = [without_accents(other) for other in usual]
    near = process.extract(without_accents(word), plain, scorer=OSA.distance, score_cutoff=most, limit=NEIGHBOURS)
    found = [(int(errors), usual[at]) for _, errors, at in near]
    counts = index.frequencies([other for _, other in found]) if found else ()
    fitting = [(errors, -count, other) for (errors, other), count in zip(found, counts, strict=True) if count >= least]
    if not fitting:
        return None
    errors, _, other = min(fitting)
    return errors, other


def _split(word: str, index: Dictionary) -> tuple[str, ...]:
    """Return the two words that a word consists of, of which the rarer one is the most frequent; none if there are no such."""
    places = range(SHORTEST, len(word) - SHORTEST + 1)
    halves = [(word[:at], word[at:]) for at in places]
    if not halves:
        return ()
    counts = iter(index.frequencies([half for pair in halves for half in pair]))
    rarer = [min(pair) for pair in zip(counts, counts, strict=True)]
    best = max(rarer)
    return halves[rarer.index(best)] if best else ()


def _replaced(query: Query, found: Mapping[str, tuple[str, ...]]) -> Query:
    """Return a query with words replaced; two words in place of one become parts of the chain that it is in."""
    match query:
        case And(parts) | Most(parts):
            return type(query)(tuple(made for part in parts for made in _parts(part, found)))
        case Or(parts):
            return Or(tuple(_replaced(part, found) for part in parts))
    made = _parts(query, found)
    return made[0] if len(made) == 1 else And(made)


def _parts(query: Query, found: Mapping[str, tuple[str, ...]]) -> tuple[Query, ...]:
    """Return what takes the place of a part of a chain."""
    if isinstance(query, And | Or | Most):
        return (_replaced(query, found),)
    better = found.get(_plain_word(query), ())
    return tuple(Word(text, query.attribute) for text in better) if isinstance(query, Word) and better else (query,)
