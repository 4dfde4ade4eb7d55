"""Runs of letters that every match of a regular expression contains, by which an engine narrows its search.

Strategy: for each node, the text that every match begins with, the one that every match ends with, and runs in between; where two
nodes meet, the end of one and the beginning of the other are one run. At last, runs are cut at characters that separate words,
since the index has words. A character that is a word by itself (Han, Thai) is a run of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from processors.query.regex_tree import Chars, Edge, Either, Node, Repeat, Row, Text
from processors.query.words import MAX_WORD, kind

MAX_RUNS = 16
"""Maximum number of runs; of more, the longest are taken."""

LETTERS = 2
"""Minimum number of letters of a run."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What all matches of a node have: beginning, end and runs; `whole` if they are all the same text, which is all of these."""

    head: str = ""
    tail: str = ""
    runs: tuple[str, ...] = ()
    whole: bool = False

    def texts(self) -> tuple[str, ...]:
        return tuple(text for text in dict.fromkeys((self.head, *self.runs, self.tail)) if text)


def required(node: Node) -> tuple[str, ...]:
    """Return runs that every match has, in order; () if no run has two letters."""
    return _words(_known(node).texts())


def _known(node: Node) -> _Known:
    match node:
        case Text(text):
            return _of_text(text)
        case Edge():
            return _of_text("")
        case Row(parts):
            return reduce(_joined, map(_known, parts), _of_text(""))
        case Either(parts):
            return _common([_known(part) for part in parts])
        case Repeat(part, low, high) if low:
            return _repeated(_known(part), low, high)
        case Chars(((low, high),), False, False) if low == high:
            return _of_text(chr(low))
    return _Known()


def _of_text(text: str) -> _Known:
    return _Known(text, text, (), whole=True)


def _joined(first: _Known, second: _Known) -> _Known:
    """Return what two nodes have, one after the other."""
    bridge = first.tail + second.head
    if first.whole and second.whole:
        return _of_text(bridge)
    head = bridge if first.whole else first.head
    tail = bridge if second.whole else second.tail
    return _Known(head, tail, (*first.runs, bridge, *second.runs))


def _repeated(known: _Known, low: int, high: int | None) -> _Known:
    made = reduce(_joined, [known] * low)
    return made if low == high else _Known(made.head, made.tail, made.texts())


def _common(all_known: Sequence[_Known]) -> _Known:
    """Return what all alternatives have."""
    if all(known.whole and known.head == all_known[0].head for known in all_known):
        return all_known[0]
    head = _common_start([known.head for known in all_known])
    tail = _common_start([known.tail[::-1] for known in all_known])[::-1]
    texts = [known.texts() for known in all_known]
    kept = (run for each in texts for run in each if all(any(run in other for other in others) for others in texts))
    return _Known(head, tail, tuple(dict.fromkeys(kept)))


def _common_start(texts: Sequence[str]) -> str:
    """Return the longest text that all texts begin with."""
    first, last = min(texts), max(texts)
    at = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:at]


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the runs of texts that are within words; none that is a part of another one."""
    runs = list(dict.fromkeys(run for text in texts for run in _pieces(text)))
    runs = [run for run in runs if not any(run != other and run in other for other in runs)]
    if len(runs) > MAX_RUNS:
        longest = set(sorted(runs, key=len, reverse=True)[:MAX_RUNS])
        runs = [run for run in runs if run in longest]
    return tuple(runs)


def _pieces(text: str) -> list[str]:
    kinds = "".join(kind(ord(char)) or " " for char in text)
    found = ((match.group(), text[match.start() : match.end()]) for match in re.finditer("w+|c", kinds))
    return [piece[:MAX_WORD] for kinds, piece in found if kinds == "c" or len(piece) >= LETTERS]
