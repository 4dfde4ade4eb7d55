"""Which keys a table may hold, in a megabyte: a bitmap by hash.

It answers "surely not" for what was never added, and is wrong the other way for a part that grows with the number of keys (a key
takes up to three places: at a million, one in nine to three in ten); that costs its user a question to the table, no more.

Which prefixes a stage scans decides what is worth knowing: those that end in the first NUL of a key (`m|url NUL`), or in its second
bar (`h|content|`). A stage whose prefixes are others is answered by the table, as rightly.
"""

from __future__ import annotations

from collections.abc import Iterable

BITS = 23
"""Of a hash that count: 8 million places."""
DIVISION = b"\0"
"""What ends a stem: a key belongs to the group of all keys that are alike up to their first one."""
BAR = b"|"
"""What ends another one: a key that has two belongs to the group of all keys that are alike up to the second, too."""


class Seen:
    """The keys that were added, and their stems; in a bitmap of 2 to the `bits` places, 8 at least."""

    def __init__(self, bits: int = BITS) -> None:
        self._bits = bytearray(1 << bits - 3)
        self._mask = len(self._bits) - 1

    def add(self, keys: Iterable[bytes]) -> None:
        """Add keys."""
        bits, mask, stem, barred = self._bits, self._mask, b"", b""
        for key in keys:
            place = hash(key)
            bits[place >> 3 & mask] |= 1 << (place & 7)
            end = key.find(DIVISION) + 1
            # Keys come in order: those of one stem one after the other.
            if end and key[:end] != stem:
                stem = key[:end]
                place = hash(stem)
                bits[place >> 3 & mask] |= 1 << (place & 7)
            end = _second(key)
            if end and key[:end] != barred:
                barred = key[:end]
                place = hash(barred)
                bits[place >> 3 & mask] |= 1 << (place & 7)

    def may_hold(self, key: bytes) -> bool:
        """Whether a key, or a stem, was perhaps added; False is sure."""
        place = hash(key)
        return bool(self._bits[place >> 3 & self._mask] & 1 << (place & 7))


def is_stem(prefix: bytes) -> bool:
    """Whether all keys that start so are of one stem, which this is."""
    return len(prefix) in (prefix.find(DIVISION) + 1, _second(prefix)) and prefix != b""


def _second(key: bytes) -> int:
    """Where the second bar of a key ends; 0 if there are not two."""
    first = key.find(BAR) + 1
    return key.find(BAR, first) + 1 if first else 0
