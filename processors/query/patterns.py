"""Tests of words and values for the nodes of patterns: wildcards, errors, verbatim text, nearness.

Each function analyses the query's text once, and returns a test that takes time in proportion to what is tested. Words under test
are folded words of the analysis (`processors/query/words.py`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from processors.query import regex
from processors.query.words import MAX_WORD, kind, spaced

Choice = Callable[[Sequence[str]], Iterable[str]]
"""Returns those of some folded words that match."""


def wildcard_expression(text: str) -> regex.Expression:
    """Return a wildcard as a regular expression of whole words, for engines."""
    return regex.wildcards(text)


def fuzzy(text: str, errors: int) -> Callable[[str], bool]:
    """Return a test whether a folded word becomes the text by at most so many insertions, deletions and replacements."""
    wanted = spaced(text)
    distance = Levenshtein.distance
    return lambda word: distance(wanted, word, score_cutoff=errors) <= errors


def fuzzy_among(text: str, errors: int) -> Choice:
    """Return a function that chooses, among folded words, those for which `fuzzy` is true."""
    wanted = spaced(text)
    choose = partial(process.extract, wanted, scorer=Levenshtein.distance, score_cutoff=errors, limit=None)
    return lambda words: [word for word, _, _ in choose(words)]


class _Spacing(dict[int, str]):
    """Table for str.translate: code point to its text with words separated; filled on demand."""

    def __missing__(self, code: int) -> str:
        found = kind(code)
        self[code] = made = {"w": chr(code), "c": f" {chr(code)} "}.get(found, found)
        return made


_SPACING = _Spacing()


def verbatim(text: str) -> Callable[[str], bool]:
    """Return a test whether a value has the words of the text next to each other, with the same case and accents."""
    wanted = _spread(text)
    if not wanted.strip():
        return lambda _: False
    return lambda value: wanted in _spread(value)


def _spread(text: str) -> str:
    """Return the words of a text as they are written, with one blank before, between and after them."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return f" {' '.join(word[:MAX_WORD] for word in plain.translate(_SPACING).split())} "


def near(words: Sequence[str], distance: int) -> Callable[[Sequence[str]], bool]:
    """Return a test of the folded words of a value, in order: whether all `words` are there with at most `distance` others between.

    The order does not matter; a word that is asked twice must be there twice. Others are counted from the first to the last of
    the words that are asked.
    """
    wanted = Counter(words)
    widest = len(words) + distance

    def test(value: Sequence[str]) -> bool:
        missing = wanted.copy()
        lacking = len(words)
        first = 0
        for last, word in enumerate(value):
            if word in wanted:
                lacking -= missing[word] > 0
                missing[word] -= 1
            if last - first == widest:
                lost = value[first]
                first += 1
                if lost in wanted:
                    missing[lost] += 1
                    lacking += missing[lost] > 0
            if word in wanted and not lacking:
                return True
        return False

    return test
