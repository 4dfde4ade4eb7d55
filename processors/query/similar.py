"""More like this: a query of the words that tell a summary from others, which a user can edit.

The choice is that of Lucene's MoreLikeThis. Taken over from it:
- A word's value is its frequency in the summary times the logarithm of its rarity, and only the best become a query (maxQueryTerms:
  25 there, MAX_WORDS here, since people read and edit them).
- Words of too few summaries (minDocFreq: 5 there) or too many (maxDocFreqPct), and those that are too short or too long, are left
  out. Here a word has to be in one more summary than this one and its copies, and in at most half of all.
- Only the beginning of a long text counts (maxNumTokensParsed: 5000), and document frequencies are asked for only of the most
  frequent words.
- Between equally frequent words the longer one is asked first: long words are rarer.

Not taken over: minTermFreq (2), since most words of a summary occur once; instead of it words of titles and keywords weigh more.
Frequencies count by their logarithm, or the function words of a long text would leave no place for others.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from processors.query.forms import DEFAULT, Analyzer, language_code
from processors.query.parser import BARE_WORDS
from processors.query.words import searchable_values, words
from schemas.query import And, Most, Not, Query, Word
from schemas.records import Summary

WEIGHTS: Mapping[str, float] = {
    "title": 3, "keywords": 2, "author": 1, "description": 1, "abstract": 1, "partial-text": 1, "full-text": 1,
}  # fmt: skip
"""Weights of the attributes that are read."""
MAX_WORDS = 12
"""Maximum number of words of the query."""
ASKED = 50
"""Maximum number of words whose document frequencies are asked for; in a long text half of them are function words."""
MAX_LETTERS = 30
"""Maximum length of a word in characters; longer ones are encoded data."""
READ = 5_000
"""Number of words that are read of an attribute."""


def similar(
    summary: Summary, frequencies: Callable[[Sequence[str]], Sequence[int]], total: int, analyzer: Analyzer = DEFAULT
) -> Query:
    """Return a query for summaries with most of the telling words of a summary, without itself and what it is a copy of.

    `frequencies` returns how many summaries have each of some words in any form, and `total` is the number of all summaries, copies
    included in both. `frequencies` is called at most once. `parse` returns the same tree for the query's text. Raises ValueError if
    the summary has no telling words.
    """
    weights = _weights(summary, analyzer)
    asked = sorted(weights, key=lambda word: (-weights[word], -len(word), word))[:ASKED]
    found = zip(asked, frequencies(asked), strict=True) if asked else ()
    alike = 1 + max(summary.copies_count, bool(summary.copy_of))
    values = {word: weights[word] * math.log(total / count) for word, count in found if alike < count <= total / 2}
    chosen = sorted(values, key=lambda word: (-values[word], word))[:MAX_WORDS]
    if not chosen:
        raise ValueError("nothing similar can be searched: each word of this summary is in no other one, or in most of them")
    oids = [oid for oid in (summary.oid, summary.copy_of) if oid]
    parts = (*map(Word, chosen), *(Not(Word(oid, "oid")) for oid in oids))
    return Most(parts) if len(chosen) >= BARE_WORDS else And(parts)


def _weights(summary: Summary, analyzer: Analyzer) -> dict[str, float]:
    """Return the weighted frequencies of the words of a summary; of words with one form, the usual one has those of all."""
    values = searchable_values(summary)
    language = language_code(values)
    weights: defaultdict[str, float] = defaultdict(float)
    written: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, weight in WEIGHTS.items():
        found = list(filter(_is_candidate, words("\n".join(values.get(name, ())))[:READ]))
        forms = analyzer.forms(found, language)
        for form, word in zip(forms, found, strict=True):
            written[form][word] += 1
        for form, count in Counter(forms).items():
            weights[form] += weight * (1 + math.log(count))
    return {_usual(counts): weights[form] for form, counts in written.items()}


def _usual(counts: Counter[str]) -> str:
    return min(counts, key=lambda word: (-counts[word], word))


def _is_candidate(word: str) -> bool:
    """Return whether a word may be telling: no number, no data, and no single letter except for an ideograph."""
    if len(word) == 1:
        return unicodedata.name(word, "").startswith("CJK UNIFIED")
    return len(word) <= MAX_LETTERS and not word[0].isdigit()
