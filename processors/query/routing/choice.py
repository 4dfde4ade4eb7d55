"""Choice of the Brokers that a query is sent to, by the statistics of their words.

CORI (Callan, Lu, Croft: "Searching Distributed Collections with Inference Networks", SIGIR 1995) treats a Broker as a document: the
belief that it answers a word is 0.4 + 0.6 T I, where T grows with the number of its summaries that have the word, and I with the
number of Brokers that have not.

Laws:
- Words are those of bare words, phrases, words near each other, and values of attributes that a bare word finds too, whatever the
  attribute: a frequency is of the whole text. Words behind NOT, patterns, ranges and conditions (`type:`, `site:`) say nothing.
- A Broker whose statistics exclude that anything of it matches is chosen only if all are such.
- At least one Broker is chosen, if there is any, and the choice does not depend on their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from processors.query.forms import signed_name
from processors.query.predicate import bare, enough
from processors.query.routing.statistics import Statistics
from processors.query.words import attribute as known
from processors.query.words import words
from schemas.query import BY_NAME, WHOLE, And, Most, Near, Or, Phrase, Query, Verbatim, Word

DEFAULT_BELIEF = 0.4
"""Belief in a Broker that has none of the words."""
MOST = 10
"""Maximum number of Brokers that are asked, if nothing else is set."""
CUT = 0.1
"""A Broker is not asked if its belief beyond the default one is less than this share of the best one's."""
_HALF, _LONGER = 1, 3
"""Number of summaries with a word at which T is a half, and how much more it is in a Broker of average length.

The paper has 50 and 150, for collections of gigabytes. Brokers may be small: with 1 and 3, ten of 50 Brokers of 20 to 11,429
summaries had .96 to .98 of the best ten hits of all, with 5 and 15 .96, with 50 and 150 .90 to .93 (`make bench ARGS=routing`).
"""
_K1 = 1.2
_WEIGHT = 1.5
"""What a word can weigh in a score: in the text, in the title, and as it is written (settings `search.weights`)."""


class Chosen(NamedTuple):
    """A Broker that a query is sent to."""

    name: str
    belief: float
    """From 0, of the Broker with the least belief, to 1, of the best."""
    best: float
    """The highest score that a hit of it can have, by its statistics."""


def query_words(query: Query) -> list[str]:
    """Return the words of a query from which it is routed, each once, folded."""
    return list(dict.fromkeys(_words(query)))


def _words(query: Query) -> Iterator[str]:
    match query:
        case And(parts) | Or(parts) | Most(parts):
            for part in parts:
                yield from _words(part)
        case Word(_, attribute) | Phrase(_, attribute) | Verbatim(_, attribute) | Near(_, _, attribute):
            if _is_text(attribute):
                yield from _split(query)


def _is_text(attribute: str) -> bool:
    """Return whether the words of an attribute are among those of the statistics."""
    return not attribute or known(attribute) not in (WHOLE | BY_NAME)


def _split(term: Query) -> list[str]:
    match term:
        case Near(parts):
            return [word for part in parts for word in words(part)]
        case Word(text) | Phrase(text):
            signed = signed_name(text)
            return [signed] if signed else words(text)
        case Verbatim(text):
            return words(text)
    return []


def _forms(statistics: Statistics) -> Callable[[str], tuple[str, ...]]:
    """Return the function that returns the forms by which a word of a query is found in a Broker."""
    return lambda word: (word,) if signed_name(word) else statistics.analyzer.query_forms(word)


def may_match(query: Query, statistics: Statistics) -> bool:
    """Return whether a Broker may have a summary that matches; False is certain, as far as its statistics are current."""
    match query:
        case And(parts):
            return all(may_match(part, statistics) for part in parts)
        case Or(parts):
            return any(may_match(part, statistics) for part in parts)
        case Most(parts):
            loose = [part for part in parts if bare(part)]
            found = sum(may_match(part, statistics) for part in loose)
            return found >= enough(len(loose)) and all(may_match(part, statistics) for part in parts if not bare(part))
        case Word(_, attribute) | Phrase(_, attribute) | Verbatim(_, attribute) | Near(_, _, attribute) if _is_text(attribute):
            forms = _forms(statistics)
            return all(statistics.frequency(forms(word)) for word in _split(query))
    return True


def choose(query: Query, brokers: Mapping[str, Statistics], most: int = MOST, cut: float = CUT) -> list[Chosen]:
    """Return the Brokers to ask, the best first: at least one if there is any, at most `most`, all of them worth it by `cut`."""
    asked = query_words(query)
    frequencies = {name: _frequencies(asked, statistics) for name, statistics in brokers.items()}
    beliefs = _beliefs(asked, brokers, frequencies)
    possible = [name for name, statistics in brokers.items() if may_match(query, statistics)] or list(brokers)
    order = sorted(possible, key=lambda name: (-beliefs[name], -brokers[name].summaries, name))
    low, high = min(beliefs.values(), default=0.0), max(beliefs.values(), default=0.0)
    least = DEFAULT_BELIEF + cut * (beliefs[order[0]] - DEFAULT_BELIEF) if order else 0.0
    chosen = [name for at, name in enumerate(order[: max(1, most)]) if not at or beliefs[name] >= least]
    share = {name: (beliefs[name] - low) / (high - low) if high > low else 1.0 for name in chosen}
    return [Chosen(name, share[name], _highest(brokers[name], frequencies[name])) for name in chosen]


def _frequencies(asked: Sequence[str], statistics: Statistics) -> list[int]:
    forms = _forms(statistics)
    return [statistics.frequency(forms(word)) for word in asked]


def _beliefs(asked: Sequence[str], brokers: Mapping[str, Statistics], found: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Return CORI's belief in each Broker: the mean of those of the words."""
    if not asked or not brokers:
        return dict.fromkeys(brokers, DEFAULT_BELIEF)
    average = max(1.0, sum(statistics.occurrences for statistics in brokers.values()) / len(brokers))
    having = [sum(1 for counts in found.values() if counts[at]) for at in range(len(asked))]
    rarity = [math.log((len(brokers) + 0.5) / max(count, 0.5)) / math.log(len(brokers) + 1.0) for count in having]
    beliefs = {}
    for name, statistics in brokers.items():
        room = _HALF + _LONGER * statistics.occurrences / average
        parts = (count / (count + room) * weight for count, weight in zip(found[name], rarity, strict=True))
        beliefs[name] = DEFAULT_BELIEF + (1 - DEFAULT_BELIEF) * sum(parts) / len(asked)
    return beliefs


def _highest(statistics: Statistics, counts: Sequence[int]) -> float:
    """Return the score by BM25 of a summary that has all words, as often as can be; a word that none has is among them."""
    total = max(1, statistics.summaries, *counts)
    return sum(_WEIGHT * (_K1 + 1) * math.log1p((total - count + 0.5) / (count + 0.5)) for count in counts)
