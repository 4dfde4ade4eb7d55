"""Estimate of the states that a regular expression has in an engine, which refuses those with too many.

Strategy: build the program that tantivy's regular expressions (crate `tantivy-fst`) are compiled to, and its deterministic
automaton, but over characters instead of bytes of UTF-8; the states between the bytes of a character are added up for every state.
Like there, a state is an ordered list of places in the program. Lucene's states are sets, so there are at most as many.
The estimate is an upper bound; work is bounded, too, and where the bound is met, the answer is "too many".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from processors.query.regex_tree import Chars, Either, Node, Ranges, Repeat, Row, Text

MAX_PROGRAM = 4_000
"""Maximum number of instructions."""
MAX_STATES = 1_000
"""Maximum number of states."""
MAX_WORK = 100_000
"""Maximum number of steps; about 30 ms."""


class _TooLargeError(Exception):
    pass


class _Split:
    """Instruction to go on at two places, in this order."""

    __slots__ = ("first", "second")

    def __init__(self) -> None:
        self.first = self.second = 0


class _Program:
    """Instructions: ranges of characters to match, splits, and the end (None)."""

    def __init__(self, node: Node) -> None:
        self.code: list[Ranges | _Split | None] = []
        self.add(node)
        self.code.append(None)

    def split(self) -> _Split:
        made = _Split()
        self.code.append(made)
        return made

    def add(self, node: Node) -> None:
        if len(self.code) > MAX_PROGRAM:
            raise _TooLargeError
        match node:
            case Text(text):
                self.code += [((ord(char), ord(char)),) for char in text]
            case Chars():
                self.code.append(node.in_words())
            case Row(parts):
                for part in parts:
                    self.add(part)
            case Either(parts):
                self.either(parts)
            case Repeat(part, low, high):
                for _ in range(low):
                    self.add(part)
                self.optional(part, high and high - low)

    def either(self, parts: Sequence[Node]) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self.split()
            split.first = len(self.code)
            self.add(part)
            jumps.append(self.split())
            split.second = len(self.code)
        self.add(parts[-1])
        for jump in jumps:
            jump.first = jump.second = len(self.code)

    def optional(self, part: Node, count: int | None) -> None:
        """Add a part up to `count` times, or any number of times if that is None."""
        splits, start = [], len(self.code)
        for _ in range(1 if count is None else count):
            splits.append(split := self.split())
            split.first = len(self.code)
            self.add(part)
        if count is None:
            jump = self.split()
            jump.first = jump.second = start
        for split in splits:
            split.second = len(self.code)


class _Automaton:
    """Deterministic automaton of a program, built only to be measured."""

    def __init__(self, program: _Program) -> None:
        self.code = program.code
        self.work = 0
        self.known: dict[int, tuple[int, ...]] = {}

    def leaves(self, start: int) -> tuple[int, ...]:
        """Return the places that are reached from one without matching a character, in order."""
        if start in self.known:
            return self.known[start]
        seen: set[int] = set()
        found, stack = [], [start]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            here = self.code[at]
            if isinstance(here, _Split):
                stack += (here.second, here.first)
            else:
                found.append(at)
        self.spend(len(seen))
        self.known[start] = tuple(found)
        return self.known[start]

    def spend(self, steps: int) -> None:
        self.work += steps
        if self.work > MAX_WORK:
            raise _TooLargeError

    def following(self, state: tuple[int, ...]) -> tuple[set[tuple[int, ...]], int]:
        """Return the states after a state, and the number of those between the bytes of a character."""
        ranges = [(at, low, high) for at in state if isinstance(here := self.code[at], tuple) for low, high in here]
        bounds = sorted({bound for _, low, high in ranges for bound in (low, high + 1)})
        cells: list[list[int]] = [[] for _ in bounds]
        for at, low, high in ranges:
            cell = bisect_right(bounds, low) - 1
            while bounds[cell] <= high:
                cells[cell].append(at)
                cell += 1
                self.spend(1)
        between = sum(_between(low, high - 1) for low, high, cell in zip(bounds, bounds[1:], cells, strict=False) if cell)
        return {self.joined(cell) for cell in set(map(tuple, cells)) if cell}, between

    def joined(self, places: Sequence[int]) -> tuple[int, ...]:
        """Return the state after the characters at some places matched."""
        made: dict[int, None] = {}
        for at in places:
            leaves = self.leaves(at + 1)
            self.spend(len(leaves))
            made.update(dict.fromkeys(leaves))
        return tuple(made)

    def measure(self) -> tuple[int, int]:
        waiting = [self.leaves(0)]
        seen = set(waiting)
        between = 0
        while waiting:
            after, more = self.following(waiting.pop())
            between += more
            waiting += after - seen
            seen |= after
            if len(seen) > MAX_STATES:
                raise _TooLargeError
        return len(seen), len(seen) + between


def states(node: Node) -> tuple[int, int] | None:
    """Return the states of an expression over characters, and over bytes of UTF-8, at most; None if there are too many."""
    try:
        return _Automaton(_Program(node)).measure()
    except _TooLargeError:
        return None


@lru_cache(4_096)
def _between(low: int, high: int) -> int:
    """Return the number of states between the bytes of UTF-8 of a range of code points, at most."""
    total = 0
    for length, end in enumerate((0x7F, 0x7FF, 0xFFFF, 0x10FFFF)):
        if low <= min(high, end):
            total += length * _sequences(low, min(high, end), length)
            low = end + 1
    return total


def _sequences(low: int, high: int, following: int) -> int:
    """Return how many sequences of ranges of bytes encode a range of code points, each with so many bytes after the first."""
    for level in range(1, following + 1):
        rest = (1 << (6 * level)) - 1
        if low & ~rest != high & ~rest:
            if low & rest:
                return _sequences(low, low | rest, following) + _sequences((low | rest) + 1, high, following)
            if high & rest != rest:
                return _sequences(low, (high & ~rest) - 1, following) + _sequences(high & ~rest, high, following)
    return 1
