"""Nodes of a parsed regular expression, and the sets of characters in its classes.

Text under test is folded, so classes are closed under folding here: `[A-Z]` has the lower-case letters, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from processors.query.words import fold

ASCII = 0x7F
LAST = 0x10FFFF
"""Last code point."""

SURROGATES = (0xD800, 0xDFFF)

FOLDING = (
    (0x0000, 0x33FF),
    (0xA640, 0xA7FF),
    (0xAB30, 0xABBF),
    (0xF900, 0xFFFF),
    (0x10400, 0x10CFF),
    (0x118A0, 0x118BF),
    (0x16E40, 0x16E5F),
    (0x1BCA0, 0x1BCA3),
    (0x1D000, 0x1D7FF),
    (0x1E030, 0x1E06F),
    (0x1E900, 0x1E943),
    (0x1EE00, 0x1EEFF),
    (0x1F100, 0x1F2FF),
    (0x1FBF0, 0x1FBF9),
    (0x2F800, 0x2FA1F),
)
"""Ranges of code points outside which folding changes no character (a test checks all of Unicode)."""

Ranges = tuple[tuple[int, int], ...]
"""Code points from the first to the second, both included; sorted, and neither overlapping nor adjacent."""


@dataclass(frozen=True, slots=True)
class Text:
    """Folded text that matches itself; "" matches the empty string."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set: of `ranges`, and of letters, marks, digits and `_` if `word`; of all others if `negated`."""

    ranges: Ranges
    negated: bool = False
    word: bool = False

    def in_words(self) -> Ranges:
        r"""Return the set as ranges without surrogates. Of a word, `\w` is any character, as `.` is."""
        ranges = ANY.ranges if self.word else self.ranges
        if self.negated:
            ranges = complement(ranges)
        before, after = complement((SURROGATES,))
        return tuple(
            (max(low, part), min(high, end)) for low, high in ranges for part, end in (before, after) if low <= end and high >= part
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """Start or end of a value."""

    start: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Parts one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of at least two alternatives."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `low` to `high` times; any number of times from `low` if `high` is None."""

    part: Node
    low: int
    high: int | None


Node = Text | Chars | Edge | Row | Either | Repeat

ANY = Chars(((0, LAST),))
EMPTY = Text("")


def row(parts: Iterable[Node]) -> Node:
    """Return parts one after the other, as simple as possible."""
    kept = tuple(part for part in parts if part != EMPTY)
    return kept[0] if len(kept) == 1 else Row(kept) if kept else EMPTY


def repeat(part: Node, low: int, high: int | None) -> Node:
    """Return a repetition, as simple as possible."""
    if part == EMPTY or high == 0:
        return EMPTY
    return part if low == high == 1 else Repeat(part, low, high)


def size(node: Node) -> int:
    """Return how many characters and classes a node has when its repetitions are written out."""
    match node:
        case Row(parts) | Either(parts):
            return sum(map(size, parts))
        case Repeat(part, low, high):
            return max(low, high or 0, 1) * size(part)
        case Text(text):
            return len(text)
    return 1


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges sorted, where overlapping and adjacent ones are joined."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if made and low <= made[-1][1] + 1:
            made[-1] = made[-1][0], max(high, made[-1][1])
        else:
            made.append((low, high))
    return tuple(made)


def complement(ranges: Ranges) -> Ranges:
    """Return all code points that are not in the ranges."""
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), LAST]
    return tuple((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)


def folded(low: int, high: int) -> Iterator[tuple[int, int]]:
    r"""Iterate over a range and what its characters fold to, as far as these are single characters.

    Of a longer range, characters outside ASCII that fold to ASCII do not count: `[^à-\uffff]` has all of ASCII, although the range
    has full-width letters and the sign of Kelvin. Only if all of it moves by the same distance it does (full-width A to Z).
    """
    yield low, high
    first, last = fold(chr(low)), fold(chr(high))
    if len(first) == len(last) == 1 and ord(last) - ord(first) == high - low:
        yield ord(first), ord(last)
    if low < high:
        if low <= ord("Z") and high >= ord("A"):
            yield max(low, ord("A")) + 32, min(high, ord("Z")) + 32
        if high > ASCII:
            codes, targets = changes()
            places = range(bisect_left(codes, low), bisect_right(codes, high))
            yield from ((targets[at], targets[at]) for at in places if targets[at] > ASCII)


@lru_cache(1)
def changes() -> tuple[list[int], list[int]]:
    """Return the code points that fold to another single one, in order, and what they fold to."""
    codes = [code for low, high in FOLDING for code in range(low, high + 1)]
    # Folded in one go, which is much faster than one by one; NUL keeps neighbours from composing.
    made = fold("\0" + "\0".join(map(chr, codes[1:])) + "\0é").split("\0")[1:-1]
    pairs = [(code, ord(text)) for code, text in zip(codes[1:], made, strict=True) if len(text) == 1 and ord(text) != code]
    return [code for code, _ in pairs], [target for _, target in pairs]
