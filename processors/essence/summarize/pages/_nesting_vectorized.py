"""Checks for all tags of a page at once whether its elements are properly nested and not deep, as most large pages are.

Strategy: the relevant tags of the page become arrays. A start tag is one level below the open elements, an end tag closes the level
that it is on. Sorted by level, starts and ends alternate; if each end has the name of the start before it, every end tag closes the
last opened element, and the deepest level is the depth of the parser's elements, except those that need no end tag: of these no two
kinds may alternate. numpy takes 150 ns a tag for that, a loop ten times as long.

Laws:
- True only if the parser has few elements open at once; False if that cannot be determined.
- Memory is bounded: at most MOST tags are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MOST = 250_000
"""Maximum tags of a page that is checked: each takes some 200 bytes during the check."""
LONGEST = 16
"""Maximum bytes of a name and its delimiter; pages with longer ones are not checked. HTML's and MathML's have at most 14."""

_ENDS = np.zeros(256, dtype=bool)
_ENDS[list(b"\t\n\f\r />")] = True
"""Delimiters that end a name (HTML, 13.2.5.8)."""
_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[65:91] += 32
_LETTER = np.zeros(256, dtype=bool)
_LETTER[65:91] = _LETTER[97:123] = True
_KEPT = np.tril(np.full((LONGEST, LONGEST), 255, dtype=np.uint8), -1).view(np.uint64)
"""Masks of a name's bytes in its two numbers, by the length of the name."""

Words = NDArray[np.uint64]
Truths = NDArray[np.bool_]
Places = NDArray[np.intp]
Bits = NDArray[np.uint8]


PASSED, LOOSE, FORMATTING, FIRM, DRAWING = 1, 2, 4, 8, 16
FIRST_ITEM = 32
"""Properties of an element, one bit each; from the last on, one bit for each set of items."""


class Order:
    """Properties of elements, by name.

    `passed`: void elements, and those of which two are never open; `loose`: closed by other elements, without an end tag; `items`:
    sets of loose elements whose members close each other, but none of another set; `firm`: their end tags close everything open in
    them, except that items in `formatting` elements stay open. All others are ordinary elements, whose end tags are ignored if a
    loose element began since. In `drawings` none of that applies.
    """

    def __init__(
        self,
        *,
        passed: Iterable[bytes],
        loose: Iterable[bytes],
        items: Sequence[Iterable[bytes]],
        formatting: Iterable[bytes],
        firm: Iterable[bytes],
        drawings: Iterable[bytes],
    ) -> None:
        sets = ((PASSED, passed), (LOOSE, loose), (FORMATTING, formatting), (FIRM, firm), (DRAWING, drawings))
        self._items = [FIRST_ITEM << number for number in range(len(items))]
        known: dict[bytes, int] = {}
        for bit, names in (*sets, *zip(self._items, items, strict=True)):
            for name in names:
                known[name] = known.get(name, 0) | bit
        numbers = np.array([np.frombuffer(name.ljust(LONGEST, b"\0"), dtype=np.uint64) for name in known])
        order = np.argsort(numbers[:, 0])
        self._first, self._second = numbers[order].T
        self._bits = np.array(list(known.values()), dtype=np.uint8)[order]
        if len(np.unique(self._first)) < len(known):
            raise ValueError("two names begin with the same 8 bytes")

    def _known(self, first: Words, second: Words) -> Bits:
        """Return the bits of each of many names."""
        at = np.minimum(np.searchsorted(self._first, first), len(self._first) - 1)
        return np.where((self._first[at] == first) & (self._second[at] == second), self._bits[at], 0).astype(np.uint8)

    def kept(self, page: bytes, most: int, anew: int) -> bool:
        """Whether elements are properly nested and at most `most`, up to 32,000, open at once; False if undetermined.

        Also at most `anew` elements of `formatting` may be reconstructed.

        `page`: without NUL; everything that looks like a tag is one, and ends at the first `>`.
        """
        if page.count(b"<") > MOST:
            return False
        raw = np.frombuffer(page + bytes(LONGEST + 2), dtype=np.uint8)
        at = np.flatnonzero(raw == ord("<"))
        ends = raw[at + 1] == ord("/")
        at += 1 + ends
        tags = _LETTER[raw[at]]
        at, ends = at[tags], ends[tags]
        names = _LOWER[np.lib.stride_tricks.sliding_window_view(raw, LONGEST)[at]]
        lengths = np.argmax(_ENDS[names], axis=1)
        # A name begins with a letter, so that length 0 means that no delimiter was found.
        if not lengths.all():
            return False
        first, second = (names.view(np.uint64) & _KEPT[lengths]).T
        return self._in_order(first, second, ends, most, anew)

    def _in_order(self, first: Words, second: Words, ends: Truths, most: int, anew: int) -> bool:
        bits = self._known(first, second)
        aside = (bits & (PASSED | LOOSE)) != 0
        depth = np.cumsum(np.where(aside, 0, 1 - 2 * ends.astype(np.int32)), dtype=np.int32)
        matter = np.flatnonzero(~aside)
        if len(matter) and (depth.min() < 0 or depth.max() > most):
            return False
        # 16-bit integers are sorted by radix, in a tenth of the time.
        order = matter[np.argsort((depth + ends)[matter].astype(np.int16), kind="stable")]
        closing = np.flatnonzero(ends[order])
        end, start = order[closing], order[closing - 1]
        if (first[end] != first[start]).any() or (second[end] != second[start]).any():
            return False
        # Each paragraph may reconstruct the formatting elements that were open in the one before it (13.2.4.3).
        fonts = np.where((bits & FORMATTING) != 0, 1 - 2 * ends.astype(np.int64), 0)
        if np.cumsum(fonts)[~ends].sum() > anew:
            return False
        drawings = (bits & DRAWING) != 0
        if 2 * np.count_nonzero(drawings & ends) != np.count_nonzero(drawings):
            return False
        items = np.bitwise_or.reduce(self._items)
        for within, element in (
            (begins(bits, ends, LOOSE), (bits & FIRM) == 0),
            (begins(bits, ends, items), (bits & FORMATTING) != 0),
            (np.cumsum(aside), drawings),
        ):
            if element[end[within[end] != within[start]]].any():
                return False
        return self._take_no_turns(bits, ends, depth, matter[~ends[matter]])

    def _take_no_turns(self, bits: Bits, ends: Truths, depth: NDArray[np.int32], starts: Places) -> bool:
        """Whether no element has items of two kinds as direct children: each would stay open inside of the one before."""
        found = [np.flatnonzero(((bits & item) != 0) & ~ends) for item in self._items]
        if sum(len(places) > 0 for places in found) < 2:
            return True
        # Start tags sorted by level, then by position: the direct children of an element follow it on the same level.
        width = len(depth) + 1
        keys = np.sort(depth[starts].astype(np.int64) * width + starts)
        parents = [set((np.searchsorted(keys, depth[at].astype(np.int64) * width + at) * (depth[at] > 0)).tolist()) for at in found]
        return all(one.isdisjoint(other) for one, other in combinations(parents, 2))


def begins(bits: Bits, ends: Truths, kind: int) -> Places:
    """Return for each tag how many elements of a kind have begun."""
    return np.cumsum(((bits & kind) != 0) & ~ends)
