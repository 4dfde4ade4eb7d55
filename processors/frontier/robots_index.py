"""Finds the rule of a robots.txt that decides on a path, without trying all of them: a file may have 40,000 patterns.

Strategy: rules without asterisks are looked up by the beginnings of the path. One with asterisks is tried only if the path contains
the first characters of its longest piece behind an asterisk; few patterns have no such piece, and those are always tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

GRAM = 4
"""Characters of a piece by which a rule is found."""


class Pattern(Protocol):
    """A pattern, split at its asterisks."""

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the pieces between the asterisks."""
        ...

    @property
    def anchored(self) -> bool:
        """Return whether it matches only up to the end of a path."""
        ...

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches a path."""
        ...


R = TypeVar("R", bound=Pattern)


class RuleIndex(Generic[R]):
    """An index of rules in order of precedence."""

    def __init__(self, rules: Sequence[R]) -> None:
        self._rules = rules
        self._exact: dict[str, int] = {}
        self._beginnings: dict[str, int] = {}
        self._grams: dict[str, list[int]] = defaultdict(list)
        self._others: list[int] = []
        for number, rule in enumerate(rules):
            first, *later = rule.pieces
            longest = max(later, key=len, default="")
            if not later:
                (self._exact if rule.anchored else self._beginnings).setdefault(first, number)
            elif len(longest) >= GRAM:
                self._grams[longest[:GRAM]].append(number)
            else:
                self._others.append(number)
        self._lengths = sorted({len(beginning) for beginning in self._beginnings})

    def decisive(self, path: str) -> R | None:
        """Return the first rule that matches a path, or None."""
        best = min(self._plain(path), default=len(self._rules))
        for number in sorted(self._candidates(path)):
            if number >= best:
                break
            if self._rules[number].matches(path):
                return self._rules[number]
        return self._rules[best] if best < len(self._rules) else None

    def _plain(self, path: str) -> Iterator[int]:
        if (number := self._exact.get(path)) is not None:
            yield number
        for length in self._lengths:
            if length > len(path):
                return
            if (number := self._beginnings.get(path[:length])) is not None:
                yield number

    def _candidates(self, path: str) -> Iterator[int]:
        yield from self._others
        if self._grams:
            for gram in {path[at : at + GRAM] for at in range(len(path) - GRAM + 1)}:
                yield from self._grams.get(gram, ())
