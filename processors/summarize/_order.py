"""Whether the elements of a page are nested in order, and not deep: told of all tags at once, since most pages with many are such.

Strategy: the tags that matter are taken out of the page as arrays. A start tag is one level below what is open, an end tag ends the
level that it is on. Put in order of their levels, starts and ends take turns; where each end has the name of the start before it,
nothing ends but what was begun last, and the deepest level is how deep the parser's elements are. numpy takes 150 ns a tag for
that, a loop ten times as long.

Laws:
- True only where reading tag by tag (`_nesting`) would find nothing; False where this cannot be told.
- Memory is bounded: no more than MOST tags are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

MOST = 250_000
"""Tags of a page that are looked at: each takes some 100 bytes meanwhile."""
LONGEST = 16
"""Bytes of a name that are compared; of a page with longer ones nothing is told. Those of HTML have 14 at most."""

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


class Names:
    """A set of names, each as two numbers. Raises ValueError for one of more than LONGEST bytes."""

    def __init__(self, names: Iterable[bytes]) -> None:
        numbers = [np.frombuffer(name.ljust(LONGEST, b"\0"), dtype=np.uint64) for name in names]
        if any(len(number) > 2 for number in numbers):
            raise ValueError("a name is too long")
        self._short = np.array([first for first, second in numbers if not second], dtype=np.uint64)
        self._long = [(first, second) for first, second in numbers if second]

    def of(self, first: Words, second: Words) -> Truths:
        """Which of many names are in it."""
        found: Truths = np.isin(first, self._short) & (second == 0)
        for one, two in self._long:
            found |= (first == one) & (second == two)
        return found


class Order:
    """What is known of elements, by name.

    `passed`: they are empty, or of no concern; `loose`: others end them, without a tag; `firm`: their end tags end whatever is open
    in them. All others are words, whose end tags count for nothing where a loose element began since.
    """

    def __init__(self, passed: Iterable[bytes], loose: Iterable[bytes], firm: Iterable[bytes]) -> None:
        self._loose = Names(loose := list(loose))
        self._aside = Names((*passed, *loose))
        self._firm = Names(firm)

    def kept(self, page: bytes, most: int) -> bool:
        """Whether elements are ended in the order of their beginnings, no more than `most` are open at once, and all that is sure.

        `page`: one in which whatever looks like a tag is one, and ends at the first `>`.
        """
        raw = np.frombuffer(page + bytes(LONGEST + 2), dtype=np.uint8)
        at = np.flatnonzero(raw == ord("<"))
        if len(at) > MOST:
            return False
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
        return self._in_order(first, second, ends, most)

    def _in_order(self, first: Words, second: Words, ends: Truths, most: int) -> bool:
        begun = np.cumsum(self._loose.of(first, second) & ~ends)
        matter = ~self._aside.of(first, second)
        first, second, ends, begun = first[matter], second[matter], ends[matter], begun[matter]
        depth = np.cumsum(1 - 2 * ends.astype(np.int32))
        if not len(depth):
            return True
        if depth.min() < 0 or depth.max() > most:
            return False
        # Sixteen bits are put in order by their digits, in a tenth of the time.
        order = np.argsort((depth + ends).astype(np.int16), kind="stable")
        closing = np.flatnonzero(ends[order])
        end, start = order[closing], order[closing - 1]
        if (first[end] != first[start]).any() or (second[end] != second[start]).any():
            return False
        within = end[begun[end] != begun[start]]
        return bool(self._firm.of(first[within], second[within]).all())
