"""Whether the elements of a page are nested in order, and not deep: told of all tags at once, since most pages with many are such.

Strategy: the tags that matter are taken out of the page as arrays. A start tag is one level below what is open, an end tag ends the
level that it is on. Put in order of their levels, starts and ends take turns; where each end has the name of the start before it,
nothing ends but what was begun last, and the deepest level is how deep the parser's elements are, but for those that need no end
tag: of these no two kinds may take turns. numpy takes 150 ns a tag for that, a loop ten times as long.

Laws:
- True only where the parser has few elements open at once; False where this cannot be told.
- Memory is bounded: no more than MOST tags are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MOST = 250_000
"""Tags of a page that are looked at: each takes some 200 bytes meanwhile."""
LONGEST = 16
"""Bytes of a name with what ends it; of a page with longer ones nothing is told. Those of HTML and MathML have 14 at most."""

_ENDS = np.zeros(256, dtype=bool)
_ENDS[list(b"\t\n\f\r />")] = True
"""What ends a name (HTML, 13.2.5.8)."""
_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[65:91] += 32
_LETTER = np.zeros(256, dtype=bool)
_LETTER[65:91] = _LETTER[97:123] = True
_KEPT = np.tril(np.full((LONGEST, LONGEST), 255, dtype=np.uint8), -1).view(np.uint64)
"""By the length of a name, the bits of it in each of its two numbers."""

Words = NDArray[np.uint64]
Truths = NDArray[np.bool_]
Places = NDArray[np.intp]
Bits = NDArray[np.uint8]


PASSED, LOOSE, FORMATTING, FIRM, DRAWING = 1, 2, 4, 8, 16
FIRST_ITEM = 32
"""What is known of an element, each a bit; from the last on, one for each set of items."""


class Order:
    """What is known of elements, by name.

    `passed`: they are empty, or two are never open; `loose`: others end them, without a tag; `items`: sets of loose ones of which
    those of one end each other, and none of another; `firm`: their end tags end whatever is open in them, though of `formatting`
    items stay open. All others are words, whose end tags count for nothing where a loose element began since. In `drawings` nothing
    of that holds.
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
        """The bits of each of many names."""
        at = np.minimum(np.searchsorted(self._first, first), len(self._first) - 1)
        return np.where((self._first[at] == first) & (self._second[at] == second), self._bits[at], 0).astype(np.uint8)

    def kept(self, page: bytes, most: int, anew: int) -> bool:
        """Whether elements are ended in the order of their beginnings, and no more than `most`, of 32,000, are open at once.

        Nor are there more than `anew` of `formatting` that may be begun anew.

        `page`: one without NUL in which whatever looks like a tag is one, and ends at the first `>`. False where it cannot be told.
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
        # A name begins with a letter: none is of length 0 but where no end was found.
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
        # Sixteen bits are put in order by their digits, in a tenth of the time.
        order = matter[np.argsort((depth + ends)[matter].astype(np.int16), kind="stable")]
        closing = np.flatnonzero(ends[order])
        end, start = order[closing], order[closing - 1]
        if (first[end] != first[start]).any() or (second[end] != second[start]).any():
            return False
        # Each paragraph may begin anew what was open in the one before it (13.2.4.3).
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
        """Whether no element has items of two kinds right within it: each would be open in the one before."""
        found = [np.flatnonzero(((bits & item) != 0) & ~ends) for item in self._items]
        if sum(len(places) > 0 for places in found) < 2:
            return True
        # Where an element begins, by its level, then by its place: what lies right within it is behind it, on the same level.
        width = len(depth) + 1
        keys = np.sort(depth[starts].astype(np.int64) * width + starts)
        parents = [set((np.searchsorted(keys, depth[at].astype(np.int64) * width + at) * (depth[at] > 0)).tolist()) for at in found]
        return all(one.isdisjoint(other) for one, other in combinations(parents, 2))


def begins(bits: Bits, ends: Truths, kind: int) -> Places:
    """At each tag, how many elements of a kind have begun."""
    return np.cumsum(((bits & kind) != 0) & ~ends)
