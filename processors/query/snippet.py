"""Snippets: the part of a summary's text that shows best why it matched.

Laws:
- Plain text of at most 300 characters, marks included; runs of white space are one space, and other controls are removed, so
  that a hostile file can neither forge a mark nor control a terminal. Ruled lines (`=====`) are removed too.
- A matched word is enclosed in U+0002 and U+0003, in whichever form it was found; the words of a phrase are marked only where they
  follow each other.
- The first window with the most different terms of the query is shown; of a text of more than LONG characters, a few parts around
  terms are compared, and the window is taken from the one with most terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from processors.query import patterns, regex
from processors.query.forms import DEFAULT, Analyzer
from processors.query.words import attribute as known
from processors.query.words import spaced, spans, words
from schemas.query import WHOLE, And, Fuzzy, Most, Near, Or, Phrase, Query, Regex, Verbatim, Whole, Wildcard, Word

OPEN, CLOSE = "\x02", "\x03"
MAX_SNIPPET = 300
"""Maximum length in characters, marks included."""
WINDOW = 240
"""Characters of text per snippet: leaves room for the marks of 29 words and for both ellipses."""

LONG = 4_000
"""Maximum number of characters that are searched word by word."""
PLACES = 5
"""Occurrences of each term that are considered in a long text."""

MOST = 50
"""Maximum number of different words of a text that are marked because of their form, or of a pattern."""

Runs = frozenset[tuple[str, ...]]
"""Words and phrases, as tuples of words."""

_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]+")
_DRAWN = re.compile(r"(?<!\S)([-=_*#~+^.:])\1{4,}(?!\S)")
"""Line drawn above or below a heading in plain text."""
_RULES = tuple(char * 5 for char in "-=_*#~+^.:")


class _Mark(NamedTuple):
    start: int
    end: int
    term: str


class Terms(NamedTuple):
    """What a matching text may contain: words and phrases as they are written, forms of words, and choices among words."""

    runs: Runs = frozenset()
    forms: frozenset[str] = frozenset()
    tests: tuple[patterns.Choice, ...] = ()
    analyzer: Analyzer = DEFAULT

    def runs_of(self, text: str) -> Runs:
        """Return the words and phrases to mark in a text."""
        if not self.forms and not self.tests:
            return self.runs
        found = dict.fromkeys(words(text))
        fitting = self.analyzer.with_forms(found.keys(), self.forms) if self.forms else set[str]()
        for test in self.tests:
            fitting.update(test(list(found)))
        return self.runs | {(word,) for word in islice(filter(fitting.__contains__, found), MOST)}


def terms(query: Query, analyzer: Analyzer = DEFAULT) -> Terms:
    """Return the terms that a matching text may contain, without negated and exact ones."""
    runs: set[tuple[str, ...]] = set()
    forms: set[str] = set()
    tests: list[patterns.Choice] = []
    for term in _terms(query):
        match term:
            case Word(text) if len(found := words(text)) == 1:
                runs.add((found[0],))
                forms.update(analyzer.query_forms(found[0]))
            case Word(text) | Phrase(text) | Verbatim(text) | Whole(text):
                runs.add(tuple(words(text)))
            case Near(asked):
                runs.update((word,) for text in asked for word in words(text))
            case Wildcard(text):
                tests.append(patterns.wildcard_expression(text).among)
            case Fuzzy(text, errors):
                tests.append(patterns.fuzzy_among(text, errors))
            case Regex(text) if (expression := regex.parse(text)).of_words:
                tests.append(expression.among)
    return Terms(frozenset(runs - {()}), frozenset(forms), tuple(tests), analyzer)


def _terms(query: Query) -> Iterator[Query]:
    """Iterate over the terms of a query that are text, without negated ones."""
    match query:
        case And(parts) | Or(parts) | Most(parts):
            for part in parts:
                yield from _terms(part)
        case Word(_, attribute) | Phrase(_, attribute) | Verbatim(_, attribute) | Whole(_, attribute) if known(attribute) in WHOLE:
            return
        case _:
            yield query


def plain(text: str) -> str:
    """Return text for display on one line: controls and runs of white space become one space."""
    if text.isprintable() and "  " not in text:  # most are
        return text.strip()
    return _CONTROL.sub(" ", text).strip()


def snippet(candidates: Sequence[str], wanted: Terms) -> str:
    """Return the best window of several texts; if none has a term, the beginning of the first that is not empty."""
    best, shown = -1, ""
    for candidate in candidates:
        runs = wanted.runs_of(candidate)
        if not (text := _part(candidate, runs)):
            continue
        marks = list(_marks(text, runs))
        start, value = _window(marks)
        if value > best:
            best, shown = value, _cut(text, start, marks)
    return shown


def marked(text: str, wanted: Terms) -> str:
    """Return a whole text for display, its terms marked."""
    shown = plain(text)
    pieces, at = [""], 0
    for mark in _marks(shown, wanted.runs_of(shown)):
        pieces += [shown[at : mark.start], OPEN, shown[mark.start : mark.end], CLOSE]
        at = mark.end
    return "".join([*pieces, shown[at:]])


def matched(values: Mapping[str, Sequence[str]], wanted: Terms, limit: int) -> list[tuple[str, str]]:
    """Return up to `limit` attributes with a term in them, and the snippet of each; `values`: as `searchable_values` returns."""
    found: list[tuple[str, str]] = []
    for name, texts in values.items():
        if len(found) < limit and OPEN in (shown := snippet([text[:LONG] for text in texts], wanted)):
            found.append((name, shown))
    return found


def _part(text: str, wanted: Runs) -> str:
    """Return a text for display; of a long one the first part, among those around terms, with the most terms."""
    if len(text) <= LONG:
        return _undrawn(text)
    folded = text.lower()
    starts = {0}
    for term in sorted(wanted)[: MOST // PLACES] if len(folded) == len(text) else ():
        at = folded.find(term[0])
        for _ in range(PLACES):
            if at < 0:
                break
            starts.add(max(at - WINDOW // 2, 0))
            at = folded.find(term[0], at + LONG // 2)
    best, start = -1, 0
    for begin in sorted(starts):
        part = f" {spaced(text[begin : begin + LONG])} "
        value = sum(f" {' '.join(term)} " in part for term in wanted)
        if value > best:
            best, start = value, begin
    return ("…" if start else "") + _undrawn(text[start : start + LONG])


def _undrawn(text: str) -> str:
    return plain(_DRAWN.sub(" ", text) if any(map(text.__contains__, _RULES)) else text)


def _marks(text: str, wanted: Runs) -> Iterator[_Mark]:
    """Return the occurrences of the terms in order, without those that overlap an earlier one."""
    if not wanted:
        return iter(())
    whole = f" {spaced(text)} "
    present = sorted((term for term in wanted if f" {' '.join(term)} " in whole), key=lambda term: (-len(term), term))
    if not present:
        return iter(())
    return _ascii_marks(text, present) if text.isascii() else _span_marks(text, present)


def _ascii_marks(text: str, present: Sequence[tuple[str, ...]]) -> Iterator[_Mark]:
    # Several times as fast as `_span_marks`, and most texts are ASCII.
    ways = "|".join("[^a-z0-9]+".join(map(re.escape, term)) for term in present)
    for found in re.finditer(f"(?<![a-z0-9])(?:{ways})(?![a-z0-9])", text.lower()):
        yield _Mark(*found.span(), " ".join(re.split("[^a-z0-9]+", found.group())))


def _span_marks(text: str, present: Sequence[tuple[str, ...]]) -> Iterator[_Mark]:
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for term in present:
        by_first.setdefault(term[0], []).append(term)
    found = list(spans(text))
    behind = 0
    for at, (start, _, word) in enumerate(found):
        for term in by_first.get(word, ()):
            run = found[at : at + len(term)]
            if start >= behind and tuple(w for _, _, w in run) == term:
                behind = run[-1][1]
                yield _Mark(start, behind, " ".join(term))


def _window(marks: Sequence[_Mark]) -> tuple[int, int]:
    """Return the start of the best window and its number of different terms."""
    start, value = 0, 0
    most = len({mark.term for mark in marks})
    for at, first in enumerate(marks):
        low = max(0, first.start - 40)
        inside = {mark.term for mark in marks[at : at + 30] if mark.end <= low + WINDOW}
        if len(inside) > value:
            start, value = low, len(inside)
        if value == most:
            break
    return start, value


def _cut(text: str, start: int, marks: Sequence[_Mark]) -> str:
    # Move an end that lies inside a word to a space nearby, if there is one.
    if start:
        space = text.find(" ", start, start + 30)
        start = space + 1 if space >= 0 else start
    end = min(len(text), start + WINDOW)
    if end < len(text):
        space = text.rfind(" ", max(start, end - 30), end)
        end = space if space > start else end
    inside = [mark for mark in marks if start <= mark.start and mark.end <= end][: (MAX_SNIPPET - WINDOW - 2) // 2]
    pieces, at = ["…" if start else ""], start
    for mark in inside:
        pieces += [text[at : mark.start], OPEN, text[mark.start : mark.end], CLOSE]
        at = mark.end
    return "".join([*pieces, text[at:end], "…" if end < len(text) else ""])
